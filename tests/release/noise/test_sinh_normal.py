"""Sinh-normal noise on the grid: the integer of each word is that of the real numbers."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import SinhNormal
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import sinh_normal
from tests.release.bits import none_left, replay, seeded

NOISE = SinhNormal(rho=0.25, width=8)


def real(word: Any, rho: Any, width: Any, steps: Any) -> Any:
    """Return the noise of the middle of a word's uniform numbers, in steps."""
    u = mp.ldexp(2 * (word >> 1) + 1, -64)
    normal = mp.sqrt(2) * mp.erfinv(1 - u) * (-1 if word & 1 else 1)
    return width * (steps + 1) * mp.asinh(normal / (width * mp.sqrt(2 * mp.mpf(rho))))


@pytest.mark.parametrize(("rho", "width"), [(0.25, 8.0), (0.5, 2.0), (1e-3, 1e3), (4.0, 1e6)])
def test_what_comes_out_is_the_rounded_value_plus_rounded_noise(rho: Any, width: Any) -> None:
    words = [(k * 0x9E3779B97F4A7C15 + 5) % 2**64 for k in range(1, 9)]
    values = np.linspace(-3.7, 1e4, 8)
    found = sinh_normal(SinhNormal(rho, width), values, 1, bits=replay(words))
    with mp.workprec(300):
        for value, word, out in zip(values, words, found, strict=True):
            steps = round(Fraction(float(value)) * 2**20)
            steps += int(mp.nint(real(word, rho, width, 2**20)))
            assert Fraction(float(out)) == Fraction(steps, 2**20)


def test_a_word_on_a_boundary_takes_more_bits() -> None:
    """The word at which the real noise is half way between two steps."""
    with mp.workprec(400):
        z = mp.sinh((mp.mpf(2**20) - 0.5) / (8 * (2**20 + 1))) * 8 * mp.sqrt(0.5)
        exact = mp.ldexp(mp.erfc(z / mp.sqrt(2)), 63)
        word = 2 * int(mp.floor(exact))
        rest = int(mp.floor(mp.ldexp(exact - mp.floor(exact), 64)))
    found = [
        float(sinh_normal(NOISE, 0.0, 1, bits=replay([word, more]))) * 2**20
        for more in (rest - 2, rest + 2)
    ]
    # the larger u has the smaller noise
    assert found == [2.0**20, 2.0**20 - 1]


def test_the_distribution_is_the_mechanisms(chi_square: Any) -> None:
    drawn = sinh_normal(NOISE, np.zeros(1000), 1, bits=seeded(6))
    scaled = 1 + 2.0**-20

    def below(x: Any) -> Any:
        return mp.ncdf(8 * mp.sinh(x / scaled / 8) * mp.sqrt(0.5))

    found = chi_square(
        np.floor(drawn * 2).astype(int), lambda k: float(below((k + 1) / 2) - below(k / 2))
    )
    assert found > 1e-6


def test_the_account_is_charged_first_and_for_all_entries() -> None:
    account = hs.Accountant()
    sinh_normal(NOISE, [1.0, 2.0], 1, entries=2, charge=account)
    assert account.plan == NOISE**2
    spending = hs.calibration.Filter(hs.ApproxDP(0.1, 1e-6))
    with pytest.raises(hs.errors.HockeystickError):
        sinh_normal(NOISE, [1.0, 2.0], 1, charge=spending, bits=none_left)


def test_without_noise_the_numbers_come_out() -> None:
    assert sinh_normal(SinhNormal(math.inf, 1.0), [0.1], 1, bits=none_left).tolist() == [0.1]


@pytest.mark.parametrize(
    ("wrong", "arguments"),
    [
        ("mechanism", (hs.Gaussian(1), 1.0, 1)),
        ("mechanism", (SinhNormal(2.0**-100, 2.0**60), 1.0, 1)),
        ("value", (NOISE, math.nan, 1)),
        ("value", (NOISE, 1e300, 1)),
        ("sensitivity", (NOISE, 1.0, 0)),
    ],
)
def test_bad_arguments_are_named(wrong: Any, arguments: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{wrong} must be"):
        sinh_normal(*arguments, bits=none_left)
    with pytest.raises(ParameterError, match=r"^entries must be"):
        sinh_normal(NOISE, 1.0, 1, entries=0, bits=none_left)
