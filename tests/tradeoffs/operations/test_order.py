"""Comparisons: proven, refuted, or honestly neither."""

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.tradeoffs import GaussianProfile, ProfileTradeOff
from hockeystick.tradeoffs.functions.laplace import LaplaceTradeOff
from hockeystick.tradeoffs.functions.piecewise import (
    IDENTITY,
    ApproxTradeOff,
    PiecewiseLinearTradeOff,
    discrete_tradeoff,
)
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
from hockeystick.tradeoffs.operations.mixture import mixture
from hockeystick.tradeoffs.operations.order import at_least


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
