"""The trade-off function of a plan against points of it in many digits."""

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import hockeystick as hs

TRAINING = hs.PoissonSubsampled(hs.Gaussian(1.0), 0.01) ** 1000
PLANS = {
    "sampled": TRAINING,
    "mixed": hs.PoissonSubsampled(hs.Gaussian(1.5), 0.1) ** 50 @ hs.Gaussian(4.0),
}
# Coefficients of the central difference of order 8.
STENCIL = ((1, "4/5"), (2, "-1/5"), (3, "4/105"), (4, "-1/280"))


@cache
def point(plan: hs.Mechanism, epsilon: float) -> tuple[float, float]:
    """Return alpha and f(alpha) where the slope of f is -e^epsilon, by differences of delta."""
    step = 2.0**-9

    def delta(k: int) -> Any:
        return hs.delta(plan, epsilon + k * step, digits=18).estimate

    with mp.workdps(30):
        fall = (
            sum(
                mp.mpf(Fraction(c).numerator) / Fraction(c).denominator * (delta(-k) - delta(k))
                for k, c in STENCIL
            )
            / step
        )
        alpha = mp.exp(-mp.mpf(epsilon)) * fall
        return float(alpha), float(1 - delta(0) - mp.exp(mp.mpf(epsilon)) * alpha)


@pytest.mark.parametrize("plan", [TRAINING, PLANS["mixed"]], ids=PLANS.keys())
@pytest.mark.parametrize("epsilon", [0.25, 2.5])
def test_a_point_of_the_curve_lies_within_the_bounds(plan: hs.Mechanism, epsilon: float) -> None:
    f = hs.tradeoff(plan)
    alpha, value = point(plan, epsilon)
    lower, upper = f.bounds([alpha, value])
    # The mirrored point lies on the flat side.
    for k, truth in enumerate((value, alpha)):
        assert lower[k] <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= upper[k]
        assert upper[k] - lower[k] <= 1e-7 * truth
        assert f((alpha, value)[k]) == pytest.approx(truth, rel=1e-9)
    assert f.power(alpha) == pytest.approx(1 - value, rel=1e-9)


def test_gaussians_are_gaussian() -> None:
    f = hs.tradeoff(hs.Gaussian(2) ** 16)
    assert isinstance(f, hs.tradeoffs.GaussianTradeOff)
    assert f.mu == 2.0
    assert hs.tradeoffs.GaussianTradeOff(3) @ hs.tradeoffs.GaussianTradeOff(
        4
    ) == hs.tradeoffs.GaussianTradeOff(5)
    assert hs.tradeoffs.GaussianTradeOff(0.3) ** 4 == hs.tradeoffs.GaussianTradeOff(0.6)
    assert hs.tradeoffs.GaussianTradeOff(2) ** 0 == hs.tradeoffs.GaussianTradeOff(0)


def test_nothing_released_is_the_identity() -> None:
    assert np.allclose(hs.tradeoff(TRAINING**0)([0.1, 0.7]), [0.9, 0.3], rtol=1e-12)


def test_a_release_without_noise_leaves_nothing() -> None:
    f = hs.tradeoff(hs.Gaussian(0))
    assert f(0.0) == 0.0
    assert f.delta(3.0).lower >= 1.0 - 1e-12


def test_a_sampled_release_without_noise_shows_as_often_as_it_is_sampled() -> None:
    f = hs.tradeoff(hs.PoissonSubsampled(hs.Gaussian(0), 0.1))
    lower, upper = f.bounds([0.0, 0.2])
    assert lower == pytest.approx([0.9, 0.7], rel=1e-6)
    assert upper == pytest.approx([0.9, 0.7], rel=1e-6)


def test_noise_out_of_reach_of_any_line_has_valid_bounds() -> None:
    lower, upper = hs.tradeoff(hs.PoissonSubsampled(hs.Gaussian(1e9), 0.1) ** 5).bounds(0.3)
    assert 0.69 <= lower <= upper <= np.nextafter(0.7, 1)


def test_what_is_no_plan_is_refused() -> None:
    wrong: Any = 3
    with pytest.raises(hs.errors.ParameterError, match="plan must be a mechanism"):
        hs.tradeoff(wrong)
