"""The trade-off function of a plan against points of it in many digits."""

from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import hockeystick as hs
from tests.oracles.added_integers import masses_of_sum

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


def test_noise_out_of_reach_of_any_line_has_valid_bounds() -> None:
    lower, upper = hs.tradeoff(hs.PoissonSubsampled(hs.Gaussian(1e9), 0.1) ** 5).bounds(0.3)
    assert 0.69 <= lower <= upper <= np.nextafter(0.7, 1)


def test_what_is_no_plan_is_refused() -> None:
    wrong: Any = 3
    with pytest.raises(hs.errors.ParameterError, match="plan must be a mechanism"):
        hs.tradeoff(wrong)


SIGMA, RUNS = 2.5, 7
RATES = (1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.2, 0.5)


def best_tests() -> list[tuple[Fraction, Fraction]]:
    """Return both errors of each test that rejects for a large sum of the outputs.

    The loss rises with the sum, which a record moves by the number of runs.
    """
    _, mass = masses_of_sum(SIGMA, RUNS)
    below = [Fraction(0), *accumulate(mass)]
    above = [Fraction(0), *accumulate(mass[::-1])][::-1]
    return [(above[k], below[max(k - RUNS, 0)]) for k in range(len(above))][::-1]


def type_ii(tests: list[tuple[Fraction, Fraction]], rate: float) -> Fraction:
    """Return the type II error of the best test, which flips a coin at one sum."""
    k = next(k for k, (alpha, _) in enumerate(tests) if alpha > rate)
    (a, f), (b, g) = tests[k - 1], tests[k]
    return f + (g - f) * (Fraction(rate) - a) / (b - a)


def test_bounds_hold_the_errors_of_the_best_tests_and_are_near() -> None:
    f = hs.tradeoff(hs.DiscreteGaussian(SIGMA) ** RUNS)
    lower, upper = f.bounds(RATES)
    tests = best_tests()
    for k, rate in enumerate(RATES):
        truth = type_ii(tests, rate)
        assert lower[k] <= truth <= upper[k]
        assert upper[k] - lower[k] < 5e-5
        assert truth * (1 - Fraction(1, 10**10)) <= f(rate) <= truth
        assert 1 - truth <= f.power(rate) <= (1 - truth) * (1 + Fraction(1, 10**9))


SIX_RATES = np.array([1e-12, 1e-6, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12])
COIN = hs.tradeoffs.discrete_tradeoff([0.2, 0.5, 0.3], [0.4, 0.45, 0.15])
FUNCTIONS = {
    "G_1": hs.tradeoffs.G(1.0),
    "C_p(G_1)": hs.tradeoffs.G(1.0).subsample(0.1),
    "of a plan": hs.tradeoff(hs.PoissonSubsampled(hs.Gaussian(1.0), 0.02) ** 400),
    "1-DP": hs.tradeoffs.ApproxTradeOff(1.0, 1e-6),
    "Laplace": hs.tradeoffs.LaplaceTradeOff(2.0),
    "an asymmetric coin": COIN,
}
each = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())


def assert_agree(f: hs.tradeoffs.TradeOff, g: hs.tradeoffs.TradeOff) -> None:
    """The proven ends of both overlap, for f and for its inverse."""
    for one, other in ((f, g), (f.inverse(), g.inverse())):
        for ends, others in (
            (one.bounds(SIX_RATES), other.bounds(SIX_RATES)),
            (one.power_bounds(SIX_RATES), other.power_bounds(SIX_RATES)),
        ):
            assert (ends[0] <= others[1]).all()
            assert (others[0] <= ends[1]).all()


@each
def test_no_factor_at_all_is_the_identity(f: hs.tradeoffs.TradeOff) -> None:
    assert_agree(f**0, hs.tradeoffs.IDENTITY)


def test_gaussians_are_exact() -> None:
    assert hs.tradeoffs.G(3) @ hs.tradeoffs.G(4) == hs.tradeoffs.G(5)
    assert hs.tradeoffs.G(0.3) ** 4 == hs.tradeoffs.G(0.6)
    assert hs.tradeoffs.G(2) ** 0 == hs.tradeoffs.G(0)


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_a_discrete_product_holds_the_product_distribution(runs: int) -> None:
    p, q = np.ones(1), np.ones(1)
    for _ in range(runs):
        p, q = np.outer(p, [0.2, 0.5, 0.3]).ravel(), np.outer(q, [0.4, 0.45, 0.15]).ravel()
    assert_agree(COIN**runs, hs.tradeoffs.discrete_tradeoff(p, q))


def test_only_trade_off_functions_multiply() -> None:
    with pytest.raises(
        hs.errors.ParameterError, match="the right side of @ must be a trade-off function"
    ):
        hs.tradeoffs.G(1) @ hs.Gaussian(1)
    with pytest.raises(hs.errors.ParameterError, match="count must be an integer"):
        hs.tradeoffs.G(1) ** 0.5
