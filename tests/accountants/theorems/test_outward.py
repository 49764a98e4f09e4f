"""Directed twins: what is rounded outward, beside its own formula in fifty digits."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

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
from hockeystick.privacy_loss import ConcentratedLoss, GaussianLoss, PrivacyLoss, Terms
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.base import CGFEstimate
from hockeystick.privacy_loss.core.terms import sum_of_bounds

DRAWS = 120


@dataclass(frozen=True)
class Known(PrivacyLoss):
    """A loss with one K, known to a radius."""

    k: Ball
    supremum = math.inf

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return CGFEstimate(self.k.midpoint, 1.0, 1.0)

    def cgf_bounds(self, c: float) -> Ball:
        return self.k


def drawn(seed: int) -> list[tuple[Terms, mpf, float, float]]:
    """Return losses, the upper end of their K, an order and a size, all at random."""
    draw = np.random.default_rng(seed)
    found: list[tuple[Terms, mpf, float, float]] = []
    for _ in range(DRAWS):
        ranges = (-6, 2), (-2, 4), (-2, 3)
        mid, order, size = (float(10 ** draw.uniform(*ends)) for ends in ranges)
        radius, count = mid * float(draw.choice([0.0, 1e-3])), int(draw.integers(1, 50))
        most = count * (mp.mpf(mid) + radius)
        found.append((((Known(Ball(mid, radius)), count),), most, order, size))
    return found


def test_epsilon_of_an_order_is_rounded_up() -> None:
    with mp.workdps(50):
        for terms, k, c, size in drawn(1):
            truth = (k + size + log_cks_factor(mp.mpf(c), mp)) / c
            scale = abs(truth) + (size + abs(log_cks_factor(c))) / c
            assert truth <= _epsilon_upper(terms, -size, c) <= truth + 1e-9 * scale


def test_delta_of_an_order_is_rounded_up() -> None:
    with mp.workdps(50):
        for terms, k, c, size in drawn(2):
            truth = k - mp.mpf(c) * size + log_cks_factor(mp.mpf(c), mp)
            scale = k + c * size + abs(log_cks_factor(c))
            assert truth <= _log_delta_upper(terms, size, c) <= truth + 1e-9 * scale


def test_sums_of_moments_are_upper_ends() -> None:
    with mp.workdps(50):
        for terms, k, _, _ in drawn(3):
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
