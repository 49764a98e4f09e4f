"""Renyi divergences and moments: published formulas, by another route, rounded outward."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import best_order
from hockeystick.accountants.classical import ZeroConcentrated
from hockeystick.accountants.rdp import (
    MOMENTS,
    Moments,
    _epsilon_upper,
    _log_delta_upper,
    log_moment_upper,
)
from hockeystick.numerics import Ball
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss import ConcentratedLoss, GaussianLoss, Terms
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.composition import sum_of_bounds
from tests.conversions.test_directed_twins import Known
from tests.precision.twins import sampled_gaussian_cumulant


@pytest.mark.parametrize(
    ("plan", "delta"),
    [(hs.Gaussian(1) ** 0, 1e-6), (hs.Gaussian(1), 1.0), (hs.PureDP(0.1), 1e-300)],
)
def test_where_no_order_decides_it_is_infinite(plan: hs.Mechanism, delta: float) -> None:
    assert best_order(plan, delta) == math.inf


Moment = Callable[[int], mpf]


def of_sampled(rate: float, noise: float, runs: int) -> Moment:
    return lambda k: runs * sampled_gaussian_cumulant(rate, noise, k + 1)


def of_gaussian(noise: float, runs: int) -> Moment:
    return lambda k: runs * mp.mpf(k) * (k + 1) / (2 * mp.mpf(repr(noise)) ** 2)


def of_response(epsilon: float, runs: int) -> Moment:

    def moment(k: int) -> mpf:
        e = mp.mpf(repr(epsilon))
        return runs * mp.log((mp.exp((k + 1) * e) + mp.exp(-k * e)) / (1 + mp.exp(e)))

    return moment


STEP = hs.PoissonSubsampled(hs.Gaussian(1.1), 0.01)
PLANS: list[tuple[hs.Mechanism, Moment]] = [
    (STEP**1000, of_sampled(0.01, 1.1, 1000)),
    (hs.PoissonSubsampled(hs.Gaussian(0.6), 0.2) ** 3, of_sampled(0.2, 0.6, 3)),
    (hs.Gaussian(10.0) ** 20, of_gaussian(10.0, 20)),
    (hs.Gaussian(0.3), of_gaussian(0.3, 1)),
    (hs.PureDP(0.1) ** 100, of_response(0.1, 100)),
    (
        STEP**300 @ hs.PureDP(0.2) @ hs.Gaussian(4.0),
        lambda k: of_sampled(0.01, 1.1, 300)(k) + of_response(0.2, 1)(k) + of_gaussian(4.0, 1)(k),
    ),
]
each_plan = pytest.mark.parametrize(("plan", "moment"), PLANS, ids=[str(p) for p, _ in PLANS])


@each_plan
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-12, 1e-200])
def test_epsilon_is_the_least_over_32_moments(
    plan: hs.Mechanism, moment: Moment, delta: float
) -> None:
    with mp.workdps(40):
        exact = min((moment(k) - mp.log(mp.mpf(delta))) / k for k in range(1, 33))
        # No loss exceeds the sum of the largest.
        exact = min(exact, mp.mpf(hs.epsilon(plan, 0.0).lower))
    found = hs.epsilon(plan, delta, accountant="moments")
    assert exact <= found.upper
    assert found.upper == found.estimate == pytest.approx(float(exact), rel=1e-11)


def test_where_no_moment_is_known_nothing_is_promised() -> None:
    plan = hs.TCDP(0.1, 1.5)
    assert hs.epsilon(plan, 1e-5, accountant="moments").upper == math.inf
    assert hs.delta(plan, 1.0, accountant="moments").upper == 1.0
    assert log_moment_upper(((ConcentratedLoss(0.1, 1.5), 3),), 1) == math.inf
    two = hs.TCDP(0.1, 2.5)
    assert hs.epsilon(two, 1e-5, accountant="moments").upper == pytest.approx(
        0.2 - math.log(1e-5), rel=1e-12
    )


DRAWS = 120


def drawn() -> list[tuple[Terms, mpf, float, float]]:
    """Return losses, the upper end of their K, an order and a size, all at random."""
    draw = np.random.default_rng(1)
    found: list[tuple[Terms, mpf, float, float]] = []
    for _ in range(DRAWS):
        ranges = (-6, 2), (-2, 4), (-2, 3)
        mid, order, size = (float(10 ** draw.uniform(*ends)) for ends in ranges)
        radius, count = mid * float(draw.choice([0.0, 1e-3])), int(draw.integers(1, 50))
        most = count * (mp.mpf(mid) + radius)
        found.append((((Known(Ball(mid, radius)), count),), most, order, size))
    return found


def test_what_is_known_of_an_order_is_rounded_up() -> None:
    with mp.workdps(50):
        for terms, k, c, size in drawn():
            factor, near = log_cks_factor(mp.mpf(c), mp), abs(log_cks_factor(c))
            truth = (k + size + factor) / c
            most = truth + 1e-9 * (abs(truth) + (size + near) / c)
            assert truth <= _epsilon_upper(terms, -size, c) <= most
            truth = k - mp.mpf(c) * size + factor
            assert truth <= _log_delta_upper(terms, size, c) <= truth + 1e-9 * (k + c * size + near)
            assert k * (1 - 1e-15) <= sum_of_bounds(terms, 2.0) <= k * (1 + 1e-9)
            assert k <= log_moment_upper(terms, 2) <= k * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(9))
def test_the_moments_accountant_rounds_up(seed: int) -> None:
    draw = np.random.default_rng(seed)
    with mp.workdps(50):
        for _ in range(3):
            mu, size = float(10 ** draw.uniform(-6, 0)), float(10 ** draw.uniform(-3, 1))
            terms = ((GaussianLoss(1.0 / mu), 3),)
            own = mp.mpf(terms[0][0].mu)
            k = {order: 3 * own**2 * order * (order + 1) / 2 for order in MOMENTS}
            delta = math.exp(-size)
            truth = min((k[order] - mp.log(mp.mpf(delta))) / order for order in MOMENTS)
            assert truth <= Moments().epsilon_of(terms, delta).upper <= truth * (1 + 1e-9)
            epsilon = 0.1 * size
            least = min(mp.exp(k[order] - order * mp.mpf(epsilon)) for order in MOMENTS)
            assert min(least, 1) <= Moments().delta_of(terms, epsilon).upper <= least * (1 + 1e-9)


def test_rhos_add_up_to_no_less_than_their_sum() -> None:
    draw = np.random.default_rng(5)
    for _ in range(DRAWS):
        losses = [ConcentratedLoss(float(draw.uniform(0.0, 1.0))) for _ in range(3)]
        terms = [(loss, int(draw.integers(1, 100))) for loss in losses]
        line = ZeroConcentrated()._line(tuple(terms))
        assert line is not None
        exact = sum(count * Fraction(loss.zcdp_line().rho) for loss, count in terms)
        assert exact <= Fraction(line.rho) <= exact * (1 + Fraction(1, 10**9))
