"""Multivariate Laplace noise is drawn exactly, however few bits of its Gaussians are known."""

from typing import Any

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.release.samplers import radial_laplace, rounded_multivariate_laplace
from tests.release.bits import replay, seeded


def real(word: int) -> Any:
    """Return the Gaussian of the middle of a word's uniform numbers."""
    size = mp.sqrt(2) * mp.erfinv(1 - mp.ldexp(2 * (word >> 1) + 1, -64))
    return -size if word & 1 else size


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_coordinates_are_the_rounded_products_of_the_words_gaussians(dimension: int) -> None:
    words = [(k * 2654435761 + 12345) * 2**30 % 2**64 | k for k in range(1, 2 * dimension + 2)]
    found = rounded_multivariate_laplace(2.0**20 / 3, dimension, bits=replay(words))
    with mp.workprec(300):
        numbers = [real(word) for word in words]
        length = mp.sqrt(sum(x * x for x in numbers[: dimension + 1]))
        for out, x in zip(found.tolist(), numbers[dimension + 1 :], strict=True):
            assert out == int(mp.floor(mp.mpf(2.0**20 / 3) * length * x + 0.5))


def test_what_few_bits_leave_open_is_decided_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [seeded(k)(5) for k in range(40)]
    usual = [rounded_multivariate_laplace(1e4, 2, bits=replay(one.tolist())) for one in words]
    monkeypatch.setattr(radial_laplace, "_FINE", 10)
    refined = list[int]()
    original = radial_laplace._refined

    def counting(*arguments: Any) -> Any:
        refined.append(1)
        return original(*arguments)

    monkeypatch.setattr(radial_laplace, "_refined", counting)
    again = [rounded_multivariate_laplace(1e4, 2, bits=replay(one.tolist())) for one in words]
    assert np.array_equal(usual, again)
    assert len(refined) > 20
