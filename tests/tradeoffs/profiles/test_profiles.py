"""Profiles of samples, of groups by a chain, by a table and by a function."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.kernels.series import Array
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs import IntervalProfile, TableProfile
from hockeystick.tradeoffs.attack_words import up
from hockeystick.tradeoffs.operations.group import _concave_maximum
from hockeystick.tradeoffs.profiles.profile import ChainProfile


def test_a_maximum_between_rates_next_to_zero_is_bounded_without_a_warning() -> None:
    # The lines through neighbours so close are steeper than the largest float.
    x = np.array([[0.0], [5e-324], [1e-310], [0.5], [1.0]])
    values = np.array([[0.0], [0.3], [0.4], [0.6], [0.0]])
    bound = _concave_maximum(x, values, values + 1e-16)
    assert np.all(bound >= 0.6)
    assert np.all(np.isfinite(bound))


EPSILONS = np.array([0.0, 1e-300, 1e-13, 1e-11, 1e-3, 0.1, 1.0, 3.7, 20.0, 300.0])


class Unknown(hs.tradeoffs.Profile):
    """A profile of which nothing is known but the lower end."""

    supremum = math.inf

    def at(self, epsilon: np.ndarray) -> object:  # type: ignore[override]
        ones = np.ones_like(epsilon)
        found = hs.tradeoffs.PerfectPrivacy().at(epsilon)
        return found._replace(estimate=ones, upper=ones)


@pytest.mark.parametrize("size", [2, 3, 40, 10**6])
@pytest.mark.parametrize("mu", [1e-9, 0.01, 0.5])
def test_the_bound_is_the_sum_of_a_chain_rounded_up(size: int, mu: float) -> None:
    one = hs.tradeoffs.GaussianProfile(mu)
    found = ChainProfile(Unknown(), one, size)
    for epsilon, upper in zip(EPSILONS, found.at(EPSILONS).upper, strict=True):
        link = one.precisely(epsilon / size)[2]
        with mp.workdps(40):
            part = mp.mpf(float(epsilon)) / size
            terms = size if part == 0 else mp.expm1(size * part) / mp.expm1(part)
            exact = min(terms * mp.mpf(link), 1)
            assert upper >= exact * (1 - mp.mpf(10) ** -12)
            assert upper <= exact * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -300
        assert found.precisely(float(epsilon))[2] == upper


STEEPNESS = 1000


class Steep(hs.tradeoffs.Profile):
    """A delta that falls so fast that each unit of epsilon's last place counts."""

    supremum = math.inf

    def at(self, epsilon: Array) -> hs.tradeoffs.ProfileValues:
        with mp.workdps(50):
            exact = [mp.exp(-STEEPNESS * mp.mpf(one)) for one in epsilon.tolist()]
            high = np.array([*map(up, exact)])
            low = high * (1.0 - 2.0**-51)
        return hs.tradeoffs.ProfileValues(low, low, high, -STEEPNESS * low)


def drawn(seed: int) -> Iterator[tuple[float, float]]:
    """Yield rates and epsilons at which little is left, but something."""
    draw = np.random.default_rng(seed)
    for _ in range(60):
        rate = float(10 ** draw.uniform(-3, -0.01))
        yield rate, rate * float(draw.uniform(0.0, 0.3))


def test_a_sample_s_profile_is_its_formula_within_its_ends() -> None:
    with mp.workdps(50):
        for rate, epsilon in drawn(1):
            found = hs.tradeoffs.SampledProfile(Steep(), rate).at(np.array([epsilon]))
            inner = mp.log1p(mp.expm1(mp.mpf(epsilon)) / mp.mpf(rate))
            truth = rate * mp.exp(-STEEPNESS * inner)
            assert found.lower[0] <= truth <= found.upper[0] <= found.lower[0] * (1 + 1e-9)


def test_the_other_direction_s_profile_is_its_formula_within_its_ends() -> None:
    with mp.workdps(50):
        for rate, epsilon in drawn(2):
            found = hs.tradeoffs.SwappedSampledProfile(Steep(), rate).at(np.array([epsilon]))
            w = 1 - (1 - mp.mpf(rate)) * mp.exp(mp.mpf(epsilon))
            truth = w * mp.exp(-STEEPNESS * (epsilon + mp.log(rate / w)))
            assert found.lower[0] <= truth <= found.upper[0] <= found.lower[0] * (1 + 1e-6)


def test_a_gaussian_s_profile_is_its_formula_within_its_ends() -> None:
    draw = np.random.default_rng(3)
    with mp.workdps(50):
        for _ in range(4):
            mu, share = float(10 ** draw.uniform(-2, 1)), float(draw.uniform(-3.0, 8.0))
            epsilon = max(mu * (share + 0.5 * mu), 0.0)
            found = hs.tradeoffs.GaussianProfile(mu).at(np.array([epsilon]))
            a = mp.mpf(epsilon) / mu - mp.mpf(mu) / 2
            truth = mp.ncdf(-a) - mp.exp(epsilon) * mp.ncdf(-a - mu)
            assert found.lower[0] <= truth <= found.upper[0]
            assert found.upper[0] - found.lower[0] <= 1e-9 * found.upper[0]


@pytest.mark.parametrize("mu", [0.05, 1.0, 6.0, 60.0])
@pytest.mark.parametrize("count", [1, 2, 3, 20, 200])
def test_the_profile_lies_within_its_table(mu: float, count: int) -> None:
    knots = (40.0 * mu + mu * mu) * np.linspace(0.0, 1.0, count) ** 2 if count > 1 else np.zeros(1)
    exact = hs.tradeoffs.GaussianProfile(mu)
    values = exact.at(knots)
    table = TableProfile(knots, values.lower, values.upper, math.inf, 0.0)
    points = np.r_[knots, np.linspace(0.0, 1.2 * knots[-1] + 0.1, 1001)]
    found, truth = table.at(points), exact.at(points)
    assert (found.lower <= truth.upper).all()
    assert (truth.lower <= found.upper).all()
    assert (found.lower >= 0.0).all()
    assert (found.slope <= 0.0).all()


def test_beyond_the_largest_loss_nothing_is_left_and_before_it_at_least_the_least() -> None:
    table = TableProfile(np.array([0.0, 1.0]), np.array([0.3, 0.2]), np.array([0.4, 0.3]), 3.0, 0.1)
    found = table.at(np.array([0.5, 1.0, 2.0, 3.0, 4.0]))
    assert found.lower == pytest.approx([0.2, 0.2, 0.1, 0.0, 0.0])
    assert found.upper[2:].tolist() == pytest.approx([0.3, 0.0, 0.0])
    assert table.infinity_mass_lower == 0.1


def test_parameters_known_within_ends_widen_both() -> None:
    wide = IntervalProfile(hs.tradeoffs.GaussianProfile(0.9), hs.tradeoffs.GaussianProfile(1.1))
    found = wide.at(np.array([0.5]))
    assert found.lower == hs.tradeoffs.GaussianProfile(0.9).at(np.array([0.5])).lower
    assert found.upper == hs.tradeoffs.GaussianProfile(1.1).at(np.array([0.5])).upper
    assert wide.infinity_mass_lower == 0.0
    assert wide.supremum == math.inf
