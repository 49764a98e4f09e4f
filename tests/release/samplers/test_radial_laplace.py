"""Multivariate Laplace noise is drawn exactly, however few bits of its Gaussians are known."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from hockeystick.errors import ParameterError
from hockeystick.numerics.multiprecision import mp
from hockeystick.release.samplers import rounded, rounded_multivariate_laplace
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


def test_coarse_and_refined_gaussians_give_the_same_numbers() -> None:
    bits = seeded(3)
    for _ in range(20):
        words = bits(9)
        ends = rounded._coarse(words)
        coarse = rounded._rounded(Fraction(1000), ends[:5], ends[5:], 45)
        assert coarse == rounded._refined(Fraction(1000), words, bits)


def test_what_few_bits_leave_open_is_decided_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """With Gaussians known to 2^-11 only; the same words decide as with all their bits."""
    words = [seeded(k)(5) for k in range(40)]
    usual = [rounded_multivariate_laplace(1e4, 2, bits=replay(one.tolist())) for one in words]
    monkeypatch.setattr(rounded, "_FINE", 10)
    refined = list[int]()
    original = rounded._refined

    def counting(*arguments: Any) -> Any:
        refined.append(1)
        return original(*arguments)

    monkeypatch.setattr(rounded, "_refined", counting)
    again = [rounded_multivariate_laplace(1e4, 2, bits=replay(one.tolist())) for one in words]
    assert np.array_equal(usual, again)
    assert len(refined) > 20


def test_frequencies_are_those_of_the_density_in_the_plane(chi_square: Any) -> None:
    """Of the first coordinate, whose marginal density in R^2 is ``|x| K_1(|x|/b) / (pi b^2)``."""
    bits, scale = seeded(5), 2.0
    drawn = np.array([rounded_multivariate_laplace(scale, 2, bits=bits)[0] for _ in range(6000)])

    def density(y: float, x: float) -> float:
        return math.exp(-math.hypot(x, y) / scale) / (2 * math.pi * scale**2)

    def probability(k: int) -> float:
        found: float = 2 * integrate.dblquad(density, k - 0.5, k + 0.5, 0, 60)[0]
        return found

    inside = drawn[np.abs(drawn) <= 6]
    share = sum(probability(k) for k in range(-6, 7))
    assert abs(len(inside) / 6000 - share) < 4.5 * math.sqrt(share * (1 - share) / 6000)
    assert chi_square(inside, lambda k: probability(k) / share) > 1e-4


@pytest.mark.parametrize("dimension", [1, 3, 40])
def test_lengths_are_gamma(dimension: int) -> None:
    bits = seeded(11)
    lengths = [
        np.linalg.norm(rounded_multivariate_laplace(1e5, dimension, bits=bits)) / 1e5
        for _ in range(600)
    ]
    assert stats.kstest(lengths, stats.gamma(dimension).cdf).pvalue > 1e-4


@pytest.mark.parametrize(("scale", "dimension"), [(0.0, 2), (math.inf, 2), (1.0, 0), (1.0, 1.5)])
def test_arguments_outside_their_domains_are_told(scale: Any, dimension: Any) -> None:
    with pytest.raises(ParameterError, match=r"scale|dimension"):
        rounded_multivariate_laplace(scale, dimension)
