"""Groups, mixtures, comparisons and Renyi divergences of trade-off functions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs import GaussianProfile, ProfileTradeOff
from hockeystick.tradeoffs.functions.closed_forms import LaplaceTradeOff
from hockeystick.tradeoffs.functions.piecewise import (
    IDENTITY,
    ApproxTradeOff,
    PiecewiseLinearTradeOff,
    discrete_tradeoff,
)
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
from hockeystick.tradeoffs.operations.group import GroupTradeOff
from hockeystick.tradeoffs.operations.mixture import mixture
from hockeystick.tradeoffs.operations.order import at_least
from hockeystick.tradeoffs.operations.renyi_integral import renyi_divergence
from hockeystick.tradeoffs.profiles.one_order import FunctionProfile

RATES = np.array([1e-250, 1e-12, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 1 - 1e-6, 1 - 1e-12])
EXAMPLES: dict[str, hs.tradeoffs.TradeOff] = {
    "identity": IDENTITY,
    "G_1": hs.tradeoffs.GaussianTradeOff(1.0),
    "Laplace": LaplaceTradeOff(2.0),
    "C_p(G_1)": SampledGaussianTradeOff(1.0, 0.3),
    "budget": ApproxTradeOff(0.5, 1e-3),
    "discrete": discrete_tradeoff([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "one-sided": discrete_tradeoff([0.5, 0.3, 0.2], [0.1, 0.7, 0.2]),
    "of a group": GroupTradeOff(SampledGaussianTradeOff(1.0, 0.3), 2),
}


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_walk_agrees_with_the_gaussian_closed_form(size: int) -> None:
    walk = GroupTradeOff(SampledGaussianTradeOff(0.3, 1.0), size)
    lower, upper = walk.bounds(RATES)
    low, high = hs.tradeoffs.GaussianTradeOff(0.3).group(size).bounds(RATES)
    assert (lower <= high).all()
    assert (low <= upper).all()
    assert np.allclose(lower, upper, rtol=1e-8, atol=0.0)
    power, closed = (
        walk._power(RATES),
        hs.tradeoffs.GaussianTradeOff(0.3).group(size)._power(RATES),
    )
    assert (power.lower <= closed.upper).all()
    assert (closed.lower <= power.upper).all()
    assert np.allclose(power.lower, power.upper, rtol=1e-8, atol=0.0)


@pytest.mark.parametrize("size", [2, 5])
def test_the_walk_agrees_with_the_laplace_closed_form(size: int) -> None:
    walk, closed = GroupTradeOff(LaplaceTradeOff(2.0), size), LaplaceTradeOff(2.0).group(size)
    assert isinstance(closed, LaplaceTradeOff)
    assert 2.0 / size * (1 - 2**-51) <= closed.scale <= 2.0 / size
    lower, upper = walk.bounds(RATES)
    low, high = closed.bounds(RATES)
    assert (lower <= high).all()
    assert (low <= upper).all()
    assert np.allclose(lower, upper, rtol=1e-11, atol=0.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [2, 4])
def test_it_is_the_function_iterated(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    f = discrete_tradeoff(rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5)))
    for alpha in rng.random(8):
        low, high = alpha, alpha
        for _ in range(size):
            low, high = 1.0 - f.bounds(low)[1], 1.0 - f.bounds(high)[0]
        lower, upper = f.group(size).bounds(alpha)
        assert lower <= 1.0 - low + 1e-15
        assert upper >= 1.0 - high - 1e-15
        assert upper - lower <= 1e-12


@pytest.mark.parametrize("f", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_a_group_of_one_is_the_function_and_groups_of_groups_multiply(
    f: hs.tradeoffs.TradeOff,
) -> None:
    assert f.group(1) is f
    lower, upper = f.group(2).group(3).bounds(RATES)
    low, high = f.group(6).bounds(RATES)
    assert (lower <= high).all()
    assert (low <= upper).all()


@pytest.mark.parametrize("mu", [0.1, 0.3, 1.7])
def test_the_mu_of_a_group_is_rounded_up(mu: float) -> None:
    for size in range(2, 100):
        grown = hs.tradeoffs.GaussianTradeOff(mu).group(size)
        assert isinstance(grown, hs.tradeoffs.GaussianTradeOff)
        exact = size * Fraction(mu)
        assert exact <= Fraction(grown.mu) <= exact * (1 + Fraction(2) ** -51)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 3.0, 20.0])
def test_the_profile_from_the_function_is_that_of_the_closed_form(epsilon: float) -> None:
    for f in (
        hs.tradeoffs.GaussianTradeOff(0.9),
        SampledGaussianTradeOff(1.0, 0.2),
        LaplaceTradeOff(0.5),
    ):
        ours = FunctionProfile(f).at(np.array([epsilon]))
        theirs = f.forward.at(np.array([epsilon]))
        assert ours.lower[0] <= theirs.upper[0]
        assert theirs.lower[0] <= ours.upper[0]
        assert ours.upper[0] - ours.lower[0] <= 1e-8 * theirs.upper[0] + 1e-250


def test_a_group_of_a_budget_has_the_known_profile() -> None:
    f = ApproxTradeOff(1.0, 1e-6).group(3)
    value = 1.11073379273896954625907e-5
    values = f.forward.at(np.array([3.0, 4.0, 700.0]))
    assert (values.lower <= value * (1 + 1e-9)).all()
    assert (values.upper >= value * (1 - 1e-15)).all()
    assert np.allclose(values.upper, value, rtol=1e-9)
    assert f.forward.supremum == pytest.approx(3.0)


def test_a_group_of_a_plan_is_of_its_own_form_and_a_sample_written_out_has_none() -> None:
    training = hs.DPSGD(noise_multiplier=1.1, rate=0.004, steps=100)
    assert hs.tradeoff(training).group(4).release == training.for_group(4)
    written_out = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.004) ** 100
    assert hs.tradeoff(written_out).group(4).release is None


PLACES = np.array([0.0, 1e-6, 0.01, 0.2, 0.5, 0.9, 0.999, 1.0])


@pytest.mark.parametrize("seed", range(4))
def test_a_public_coin_is_part_of_the_output(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q, r, s = (rng.dirichlet(np.ones(4)) for _ in range(4))
    parts = [(0.25, discrete_tradeoff(p, q)), (0.75, discrete_tradeoff(r, s))]
    joint = discrete_tradeoff(np.r_[0.25 * p, 0.75 * r], np.r_[0.25 * q, 0.75 * s])
    f = mixture(parts)
    lower, upper = f.bounds(PLACES)
    low, high = joint.bounds(PLACES)
    assert (lower <= high).all()
    assert (low <= upper).all()
    epsilon = np.array([0.0, 0.5, 2.0])
    for ours, theirs in ((f.forward, joint.forward), (f.backward, joint.backward)):
        assert np.allclose(ours.at(epsilon).upper, theirs.at(epsilon).upper, rtol=1e-12)


def test_the_largest_loss_is_that_of_any_part() -> None:
    f = mixture([(0.5, ApproxTradeOff(0.5, 0.0)), (0.5, ApproxTradeOff(2.0, 0.0))])
    assert f.forward.supremum >= 2.0
    found, worst = f.delta(1.0), ApproxTradeOff(2.0, 0.0).delta(1.0)
    assert found.upper >= 0.5 * worst.lower > 0.0
    assert found.lower <= 0.5 * worst.upper


def test_equal_parts_are_one() -> None:
    f = hs.tradeoffs.GaussianTradeOff(1.0)
    assert mixture([(0.3, f), (0.7, hs.tradeoffs.GaussianTradeOff(1.0))]) is f
    assert mixture([(1.0, f), (0.0, IDENTITY)]) is f


def test_the_sum_of_the_weights_widens_the_ends() -> None:
    f = mixture([(0.1 + 1e-14, ApproxTradeOff(1.0, 0.1)), (0.9, ApproxTradeOff(1.0, 0.2))])
    values = f.forward.at(np.array([2.0]))
    assert values.lower[0] < 0.19 < values.upper[0]
    assert values.upper[0] - values.lower[0] >= 1e-15


def by_profile(mu: float) -> hs.tradeoffs.TradeOff:
    """Return G_mu, whose kind is not seen."""
    return ProfileTradeOff((GaussianProfile(mu), GaussianProfile(mu)))


ABOVE: dict[str, tuple[hs.tradeoffs.TradeOff, hs.tradeoffs.TradeOff]] = {
    "less distance": (by_profile(1.0), by_profile(1.001)),
    "far apart": (by_profile(10.0), by_profile(20.0)),
    "tiny": (by_profile(1e-4), by_profile(1.001e-4)),
    "rarer": (SampledGaussianTradeOff(3.0, 1e-4), SampledGaussianTradeOff(3.0, 2e-4)),
    "sampled": (SampledGaussianTradeOff(2.0, 0.3), by_profile(2.0)),
    "nothing told": (IDENTITY, by_profile(1e-3)),
    "smaller budget": (ApproxTradeOff(1.0, 1e-5), ApproxTradeOff(1.1, 2e-5)),
    "same budget of 0": (ApproxTradeOff(1.0, 0.0), ApproxTradeOff(2.0, 0.0)),
    "a mechanism in its budget": (LaplaceTradeOff(1.01), ApproxTradeOff(1.0, 0.0)),
    "a mixture": (mixture([(0.5, by_profile(1.0)), (0.5, by_profile(2.0))]), by_profile(2.0)),
}


@pytest.mark.parametrize(("f", "g"), ABOVE.values(), ids=ABOVE.keys())
def test_what_lies_above_is_proven_and_the_reverse_refuted(
    f: hs.tradeoffs.TradeOff, g: hs.tradeoffs.TradeOff
) -> None:
    assert at_least(f, g) is True
    assert at_least(g, f) is False


def test_curves_that_cross_are_refuted_both_ways() -> None:
    f, g = by_profile(1.0), ApproxTradeOff(1.0, 0.01)
    assert at_least(f, g) is False
    assert at_least(g, f) is False


def test_one_worse_direction_refutes() -> None:
    g = discrete_tradeoff([0.5, 0.5, 0.0], [0.25, 0.5, 0.25])
    f = ApproxTradeOff(1.0, 0.2)
    assert at_least(f, g) is False
    assert at_least(g.inverse(), g) is False
    assert at_least(g, g.inverse()) is False


@pytest.mark.parametrize(("first", "second"), [(1.0, 1.0), (0.5, 1.0), (1.0, 1.0 + 2**-52)])
def test_gaussians_are_compared_by_mu(first: float, second: float) -> None:
    f, g = hs.tradeoffs.GaussianTradeOff(first), hs.tradeoffs.GaussianTradeOff(second)
    assert at_least(f, g) is True
    assert at_least(g, f) is (first == second)


def test_what_is_at_least_a_gaussian_by_its_making_is_so() -> None:
    assert at_least(SampledGaussianTradeOff(1.0, 0.999), hs.tradeoffs.GaussianTradeOff(1.0)) is True
    assert (
        at_least(SampledGaussianTradeOff(0.5, 0.1).group(3), hs.tradeoffs.GaussianTradeOff(1.5))
        is True
    )
    assert (
        at_least(SampledGaussianTradeOff(0.5, 0.1).group(3), hs.tradeoffs.GaussianTradeOff(0.1))
        is False
    )


def test_equal_ones_are_at_least_each_other() -> None:
    f = SampledGaussianTradeOff(1.0, 0.2)
    assert at_least(f, f) is True
    assert at_least(f, SampledGaussianTradeOff(1.0, 0.2)) is True


def test_what_touches_is_left_open() -> None:
    almost = discrete_tradeoff([0.25, 0.75], [0.75, 0.25])
    same = PiecewiseLinearTradeOff([0.25, 0.5, 0.625], [0.25, 1 / 6, 0.125])
    assert at_least(almost, same) is None


def test_a_dent_between_the_points_of_any_coarse_grid_is_found() -> None:
    # g is f but for one corner cut off by a hair's breadth in rate.
    alpha = np.linspace(0.05, 0.45, 9)
    beta = hs.tradeoffs.GaussianTradeOff(1.0)(alpha)
    f = PiecewiseLinearTradeOff(alpha, beta)
    middle = 0.5 * (alpha[3] + alpha[4])
    lower = 0.5 * (beta[3] + beta[4]) * (1 - 1e-6)
    g = PiecewiseLinearTradeOff(np.r_[alpha, middle], np.r_[beta, lower])
    assert at_least(g, f) is False


def assert_holds(ends: Any, truth: Any, width: float = 1e-6) -> None:
    """Assert that ends hold the truth within a relative width."""
    assert ends.lower <= truth <= ends.upper
    assert ends.upper - ends.lower <= width * truth


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 8.0])
def test_a_gaussian_s_profile_has_its_divergence(mu: float, order: float) -> None:
    f = ProfileTradeOff((GaussianProfile(mu), GaussianProfile(mu)))
    truth = mp.mpf(order) * mp.mpf(mu) ** 2 / 2
    assert_holds(renyi_divergence(f, order), truth)
    assert_holds(renyi_divergence(hs.tradeoffs.GaussianTradeOff(mu), order), truth, 1e-14)


@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("order", [1.001, 3.0, 40.0, 1000.0])
def test_laplace_has_mironov_s_closed_form(scale: float, order: float) -> None:
    with mp.workdps(40):
        a, e = mp.mpf(order), 1 / mp.mpf(scale)
        inside = a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)
        assert_holds(renyi_divergence(LaplaceTradeOff(scale), order), mp.log(inside) / (a - 1))


@pytest.mark.parametrize(
    ("mu", "rate", "order", "value"),
    [
        (1.0, 0.01, 2.0, "2.806392913427391081e-4"),
        (1.0, 0.01, 8.0, "1.25882771219992459e-3"),
        (0.25, 0.01, 8.0, "3.0822617622888758e-5"),
    ],
)
def test_the_sampled_gaussian_has_the_known_values(
    mu: float, rate: float, order: float, value: str
) -> None:
    assert_holds(renyi_divergence(SampledGaussianTradeOff(mu, rate), order), mp.mpf(value))


@pytest.mark.parametrize(("epsilon", "order"), [(1.0, 2.0), (0.5, 8.0), (30.0, 1.5)])
def test_a_pure_budget_has_that_of_randomized_response(epsilon: float, order: float) -> None:
    with mp.workdps(40):
        e, a = mp.mpf(epsilon), mp.mpf(order)
        truth = e - mp.log((1 + mp.exp(-e)) / (1 + mp.exp(-(2 * a - 1) * e))) / (a - 1)
        assert_holds(renyi_divergence(ApproxTradeOff(epsilon, 0.0), order), truth)


@pytest.mark.parametrize("seed", range(4))
def test_discrete_outcomes_have_the_sum_of_the_worse_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    a = 3.5
    with mp.workdps(40):
        pairs = list(zip(map(mp.mpf, p), map(mp.mpf, q), strict=True))
        sums = [
            mp.fsum(x**a * y ** (1 - a) for x, y in pairs),
            mp.fsum(y**a * x ** (1 - a) for x, y in pairs),
        ]
        ways = [mp.log(one) / (a - 1) for one in sums]
    assert_holds(renyi_divergence(discrete_tradeoff(p, q), a), max(ways))


@pytest.mark.parametrize("f", [ApproxTradeOff(1.0, 1e-9), discrete_tradeoff([0, 1], [0.1, 0.9])])
def test_it_is_infinite_where_delta_stays(f: hs.tradeoffs.TradeOff) -> None:
    assert renyi_divergence(f, 2.0) == (math.inf, math.inf)
