"""Sinh-normal noise on the grid: the integer of each word, and a proven bound for vectors."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.mechanisms import SinhNormal
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import sinh_normal, sinh_normal_divergences, sinh_normal_vector
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


def test_without_noise_the_numbers_come_out() -> None:
    assert sinh_normal(SinhNormal(math.inf, 1.0), [0.1], 1, bits=none_left).tolist() == [0.1]


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


@pytest.mark.parametrize(("rho", "width"), CASES[:3])
def test_the_bound_is_near_one_entrys_own_divergence(rho: Any, width: Any) -> None:
    found = sinh_normal_divergences(SinhNormal(rho, width)).divergences
    for order, bound in found[:: len(found) // 5]:
        assert bound <= 1.15 * divergence(rho, width, order, 1.0)


@pytest.mark.parametrize("entries", [1, 4, 64])
@pytest.mark.parametrize(("rho", "width"), [(0.1, 10.0), (0.5, 3.0)])
def test_what_is_charged_covers_vectors_whose_cost_is_exact(
    rho: Any, width: Any, entries: Any
) -> None:
    """A shift of 1/sqrt(n) in each of n entries is n runs of a scaled mechanism."""
    bound = sinh_normal_divergences(SinhNormal(rho, width))
    spread = SinhNormal(rho / entries, width * math.sqrt(entries)) ** entries
    for delta in (1e-2, 1e-5, 1e-9):
        assert hs.epsilon(spread, delta).lower <= hs.epsilon(bound, delta).upper


@pytest.mark.parametrize(
    ("rho", "width", "epsilon"), [(0.1, 10.0, 0), (0.1, 5.0, 0), (0.5, 3, 0.5)]
)
def test_the_account_of_one_number_is_no_bound_for_vectors(
    rho: Any, width: Any, epsilon: Any
) -> None:
    one = SinhNormal(rho, width)
    spread = SinhNormal(rho / 16, width * 4) ** 16
    assert hs.delta(spread, epsilon).lower > hs.delta(one, epsilon).upper


def test_at_the_same_variance_the_gaussian_costs_many_entries_less() -> None:
    rho, width = 0.1, 5.0
    arsinh = stats.norm(scale=math.sqrt(0.5 / rho)).expect(
        lambda n: (width * math.asinh(n / width)) ** 2
    )
    spread = SinhNormal(rho / 64, width * 8) ** 64
    same = hs.Gaussian(math.sqrt(arsinh))
    for delta in (0.1, 1e-2, 1e-5, 1e-9):
        assert hs.epsilon(same, delta).upper < hs.epsilon(spread, delta).lower


def test_wide_noise_costs_what_gaussian_noise_does() -> None:
    found = sinh_normal_divergences(SinhNormal(0.25, 1e6)).divergences
    assert all(0.25 * order <= bound <= 0.25 * order * (1 + 1e-3) for order, bound in found[:40])


def test_more_noise_costs_less_at_every_order() -> None:
    least = dict(sinh_normal_divergences(SinhNormal(0.2, 10)).divergences)
    for other in (SinhNormal(0.3, 10), SinhNormal(0.2, 8)):
        more = dict(sinh_normal_divergences(other).divergences)
        shared = least.keys() & more.keys()
        assert len(shared) > 5
        assert all(least[order] < more[order] for order in shared)


def test_one_entry_is_drawn_as_a_number_is() -> None:
    noise = SinhNormal(0.3, 5)
    one, many = (
        release(noise, [2.5], 1, bits=seeded(1)) for release in (sinh_normal, sinh_normal_vector)
    )
    assert np.array_equal(one, many)


def test_the_noise_covers_what_rounding_to_the_grid_adds_to_the_distance() -> None:
    """With the same bits, an entry of 100 has noise for 10 steps more than S, and one for 1."""
    noise = SinhNormal(0.3, 5)
    one = sinh_normal(noise, [0.0], 1, bits=seeded(1))[0]
    many = sinh_normal_vector(noise, np.zeros(100), 1, bits=seeded(1))[0]
    assert abs(one) > 0.3
    assert many / one - 1 == pytest.approx(9 / 2**20, rel=0.2)


def test_each_entry_has_the_noise_of_its_width_and_rho() -> None:
    rho, width, sensitivity = 0.3, 2.0, 4.0
    drawn = sinh_normal_vector(
        SinhNormal(rho, width), np.full(400, 7.0), sensitivity, bits=seeded(2)
    )
    normal = np.sinh((drawn - 7) / (width * sensitivity)) * width * math.sqrt(2 * rho)
    assert stats.kstest(normal, "norm").pvalue > 1e-6
    assert 1e-6 < stats.chi2.sf(float((normal**2).sum()), 400) < 1 - 1e-6


@pytest.mark.parametrize(
    ("budget", "error"),
    [
        (hs.RenyiDP({2.0: 0.01}), BudgetExhausted),
        (hs.ApproxDP(epsilon=0.1, delta=1e-6), IncompatibleError),
    ],
)
def test_a_filter_that_refuses_leaves_nothing_released(budget: Any, error: Any) -> None:
    """By a filter of divergences; one of epsilon and delta has no account of a few orders."""
    charge = hs.calibration.Filter(budget)
    with pytest.raises(error):
        sinh_normal_vector(SinhNormal(0.3, 5), [1.0], 1, charge=charge, bits=none_left)


@pytest.mark.parametrize(
    "mechanism",
    [hs.Gaussian(1), SinhNormal(math.inf, 3), SinhNormal(10.0, 0.4), SinhNormal(0.1, 1e13)],
)
def test_noise_that_the_bound_does_not_cover_is_refused(mechanism: Any) -> None:
    with pytest.raises(ParameterError, match=r"^mechanism"):
        sinh_normal_divergences(mechanism)
    with pytest.raises(ParameterError, match=r"^mechanism"):
        sinh_normal_vector(mechanism, [1.0], 1, bits=none_left)
