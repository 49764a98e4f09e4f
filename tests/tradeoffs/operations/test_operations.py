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
from hockeystick.tradeoffs.operations.group import FunctionProfile, GroupTradeOff
from hockeystick.tradeoffs.operations.mixture import mixture
from hockeystick.tradeoffs.operations.order import at_least
from hockeystick.tradeoffs.operations.renyi_integral import renyi_divergence

G = hs.tradeoffs.GaussianTradeOff
RATES = np.array([1e-250, 1e-12, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 1 - 1e-6, 1 - 1e-12])


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_walk_agrees_with_the_gaussian_closed_form(size: int) -> None:
    walk = GroupTradeOff(SampledGaussianTradeOff(0.3, 1.0), size)
    closed = G(0.3).group(size)
    for ours, theirs in (
        (walk.bounds(RATES), closed.bounds(RATES)),
        (walk._power(RATES), closed._power(RATES)),
    ):
        assert (ours[0] <= theirs[1]).all()
        assert (theirs[0] <= ours[1]).all()
        assert np.allclose(ours[0], ours[1], rtol=1e-8, atol=0.0)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
def test_no_test_of_a_group_beats_its_profile(epsilon: float) -> None:
    walk = GroupTradeOff(SampledGaussianTradeOff(0.9, 0.9), 3)
    upper = walk.forward.at(np.array([epsilon])).upper[0]
    rates = np.exp(np.linspace(-40.0, 0.0, 60))
    assert (1.0 - walk.bounds(rates)[1] - math.exp(epsilon) * rates <= upper).all()


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


@pytest.mark.parametrize("mu", [0.1, 0.3, 1.7])
def test_the_mu_of_a_group_is_rounded_up(mu: float) -> None:
    for size in range(2, 100):
        grown = G(mu).group(size)
        assert isinstance(grown, hs.tradeoffs.GaussianTradeOff)
        exact = size * Fraction(mu)
        assert exact <= Fraction(grown.mu) <= exact * (1 + Fraction(2) ** -51)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 3.0, 20.0])
def test_the_profile_from_the_function_is_that_of_the_closed_form(epsilon: float) -> None:
    for f in (G(0.9), SampledGaussianTradeOff(1.0, 0.2), LaplaceTradeOff(0.5)):
        ours = FunctionProfile(f).at(np.array([epsilon]))
        theirs = f.forward.at(np.array([epsilon]))
        assert ours.lower[0] <= theirs.upper[0]
        assert theirs.lower[0] <= ours.upper[0]
        assert ours.upper[0] - ours.lower[0] <= 1e-8 * theirs.upper[0] + 1e-250


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


def test_the_sum_of_the_weights_widens_the_ends() -> None:
    f = mixture([(0.1 + 1e-14, ApproxTradeOff(1.0, 0.1)), (0.9, ApproxTradeOff(1.0, 0.2))])
    values = f.forward.at(np.array([2.0]))
    assert values.lower[0] < 0.19 < values.upper[0]
    assert values.upper[0] - values.lower[0] >= 1e-15


def by_profile(mu: float) -> hs.tradeoffs.TradeOff:
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


LOPSIDED = discrete_tradeoff([0.5, 0.5, 0.0], [0.25, 0.5, 0.25])
GROUP = SampledGaussianTradeOff(0.5, 0.1).group(3)
TOUCHING = PiecewiseLinearTradeOff([0.25, 0.5, 0.625], [0.25, 1 / 6, 0.125])


@pytest.mark.parametrize(
    ("f", "g", "known"),
    [
        (by_profile(1.0), ApproxTradeOff(1.0, 0.01), False),
        (ApproxTradeOff(1.0, 0.01), by_profile(1.0), False),
        (ApproxTradeOff(1.0, 0.2), LOPSIDED, False),
        (LOPSIDED.inverse(), LOPSIDED, False),
        (G(1.0), G(1.0), True),
        (G(1.0), G(1.0 + 2**-52), True),
        (G(1.0 + 2**-52), G(1.0), False),
        (SampledGaussianTradeOff(1.0, 0.999), G(1.0), True),
        (GROUP, G(1.5), True),
        (GROUP, G(0.1), False),
        (SampledGaussianTradeOff(1.0, 0.2), SampledGaussianTradeOff(1.0, 0.2), True),
        (discrete_tradeoff([0.25, 0.75], [0.75, 0.25]), TOUCHING, None),
    ],
)
def test_what_is_proven_refuted_or_left_open(
    f: hs.tradeoffs.TradeOff, g: hs.tradeoffs.TradeOff, known: bool | None
) -> None:
    assert at_least(f, g) is known


def test_a_dent_between_the_points_of_any_coarse_grid_is_found() -> None:
    # g is f but for one corner cut off by a hair's breadth in rate.
    alpha = np.linspace(0.05, 0.45, 9)
    beta = G(1.0)(alpha)
    f = PiecewiseLinearTradeOff(alpha, beta)
    middle = 0.5 * (alpha[3] + alpha[4])
    lower = 0.5 * (beta[3] + beta[4]) * (1 - 1e-6)
    g = PiecewiseLinearTradeOff(np.r_[alpha, middle], np.r_[beta, lower])
    assert at_least(g, f) is False


def assert_holds(ends: Any, truth: Any, width: float = 1e-6) -> None:
    assert ends.lower <= truth <= ends.upper
    assert ends.upper - ends.lower <= width * truth


@pytest.mark.parametrize("mu", [0.01, 1.0])
@pytest.mark.parametrize("order", [1.01, 2.0, 8.0])
def test_a_gaussian_s_profile_has_its_divergence(mu: float, order: float) -> None:
    f = ProfileTradeOff((GaussianProfile(mu), GaussianProfile(mu)))
    truth = mp.mpf(order) * mp.mpf(mu) ** 2 / 2
    assert_holds(renyi_divergence(f, order), truth)
    assert_holds(renyi_divergence(G(mu), order), truth, 1e-14)


@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("order", [1.001, 3.0, 40.0, 1000.0])
def test_laplace_has_mironov_s_closed_form(scale: float, order: float) -> None:
    with mp.workdps(40):
        a, e = mp.mpf(order), 1 / mp.mpf(scale)
        inside = a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)
        assert_holds(renyi_divergence(LaplaceTradeOff(scale), order), mp.log(inside) / (a - 1))


@pytest.mark.parametrize("f", [ApproxTradeOff(1.0, 1e-9), discrete_tradeoff([0, 1], [0.1, 0.9])])
def test_it_is_infinite_where_delta_stays(f: hs.tradeoffs.TradeOff) -> None:
    assert renyi_divergence(f, 2.0) == (math.inf, math.inf)
