"""Sinh-normal noise on the grid: the integer of each word, and a proven bound for vectors."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import SinhNormal
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import sinh_normal, sinh_normal_divergences, sinh_normal_vector
from tests.release.bits import exact, none_left, replay, seeded

NOISE = SinhNormal(rho=0.25, width=8)


def real(word: Any, rho: Any, width: Any, steps: Any) -> Any:
    """Return the noise of the middle of a word's uniform numbers, in steps."""
    return (
        width * (steps + 1) * mp.asinh(exact("gaussian", word) / (width * mp.sqrt(2 * mp.mpf(rho))))
    )


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


CASES = [(0.1, 40.0), (0.1, 10.0), (0.5, 5.0), (0.04, 5.0), (0.9, 2.0), (3.0, 1.0)]


def divergence(rho: Any, width: Any, order: Any, shift: Any) -> float:
    """Return one entry's divergence by quadrature in the noise's own unit."""

    def log_density(z: Any) -> Any:
        square = rho * width**2 * np.sinh(z / width) ** 2
        return 0.5 * math.log(rho / math.pi) + np.log(np.cosh(z / width)) - square

    def both(z: Any) -> Any:
        return order * log_density(z - shift) + (1 - order) * log_density(z)

    reach = width * math.asinh(40 / math.sqrt(2 * rho) / width)
    points = np.linspace(-reach, reach + shift, 20_001)
    top = float(both(points).max())
    total = float(integrate.simpson(np.exp(both(points) - top), x=points))
    return float((top + math.log(total)) / (order - 1))


@pytest.mark.parametrize(("rho", "width"), CASES)
@pytest.mark.parametrize("entries", [1, 2, 9])
def test_the_bound_covers_a_shift_however_it_is_spread(rho: Any, width: Any, entries: Any) -> None:
    found = sinh_normal_divergences(SinhNormal(rho, width)).divergences
    for order, bound in found[:: len(found) // 5]:
        own = entries * divergence(rho, width, order, 1 / math.sqrt(entries))
        assert own <= bound * (1 + 1e-9)
        assert entries > 1 or (rho, width) not in CASES[:3] or bound <= 1.15 * own


def test_the_account_of_one_number_is_no_bound_for_vectors() -> None:
    spread = SinhNormal(0.5 / 16, 12) ** 16
    assert hs.delta(spread, 0.5).lower > hs.delta(SinhNormal(0.5, 3), 0.5).upper


def test_wide_noise_costs_what_gaussian_noise_does() -> None:
    found = sinh_normal_divergences(SinhNormal(0.25, 1e6)).divergences
    assert all(0.25 * order <= bound <= 0.25 * order * (1 + 1e-3) for order, bound in found[:40])


def test_the_noise_covers_what_rounding_to_the_grid_adds_to_the_distance() -> None:
    """With the same bits, an entry of 100 has noise for 10 steps more than S, and one for 1."""
    noise = SinhNormal(0.3, 5)
    one = sinh_normal(noise, [0.0], 1, bits=seeded(1))[0]
    many = sinh_normal_vector(noise, np.zeros(100), 1, bits=seeded(1))[0]
    assert abs(one) > 0.3
    assert many / one - 1 == pytest.approx(9 / 2**20, rel=0.2)


@pytest.mark.parametrize(
    "mechanism",
    [hs.Gaussian(1), SinhNormal(math.inf, 3), SinhNormal(10.0, 0.4), SinhNormal(0.1, 1e13)],
)
def test_noise_that_the_bound_does_not_cover_is_refused(mechanism: Any) -> None:
    with pytest.raises(ParameterError, match=r"^mechanism"):
        sinh_normal_divergences(mechanism)
    with pytest.raises(ParameterError, match=r"^mechanism"):
        sinh_normal_vector(mechanism, [1.0], 1, bits=none_left)
