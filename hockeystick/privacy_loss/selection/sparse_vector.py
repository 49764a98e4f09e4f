"""The dominating pair of one run of the sparse vector technique, up to its first positive.

Let r be the threshold's noise and f(r, i) the probability, given r, that query i is the first to
reach the threshold (or that none does). Shift the neighbour's r by 1: as each answer moves by at
most 1, what stays below still does, and the distance of the one answer above grows by at most 2 (by
1 where all answers move the same way).

- Laplace query noise: ``f(r, i) <= e^s f'(r + 1, i)`` with ``s = 2/b`` or ``1/b`` for any number of
  queries. Lesser shifts take less of the threshold's noise: see ``threshold_bound``.
- Gaussian query noise, at most N queries: joint convexity of ``(a, b) -> a^alpha b^(1-alpha)``
  takes r out of the moment, and the last query's two outcomes are of Gaussians at distance 2/b, so
  that ``E[(P/Q)^(alpha-1)]`` is at most that of Gaussians with ``mu^2 = 1/b_threshold^2 +
  (2/b_query)^2`` times the sum over i of the probabilities that all before i stay below, at most N.
  All N noisy answers are another bound; up to 2,000 queries ``threshold_bound`` says more.

Attained: a few queries (``threshold_attacks``), or for extreme scales one whose answers lie half a
unit above and below the threshold, and no other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Final, final

from hockeystick.mechanisms.selection.sparse_vector import AboveThreshold, ComparisonNoise
from hockeystick.numerics import ULP, least_reading
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import OUTWARD_32, float_up
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, outward
from hockeystick.privacy_loss.core.base import (
    CGFEstimate,
    DominatingPair,
    PrivacyLoss,
    both,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.mixtures import RandomizedResponsePairLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.guarantees import RenyiBoundLoss
from hockeystick.privacy_loss.selection.threshold_attacks import attacked, nearly_largest
from hockeystick.privacy_loss.selection.threshold_bound import (
    gaussian_bound,
    gaussian_queries_bound,
    laplace_bound,
)

_INWARD: Final = 1.0 - 2.0**-45
_DIGITS: Final = 60
# Scales above this, and below its reciprocal, have simpler bounds.
_LARGEST_SCALE: Final = 1e15


@final
@dataclass(frozen=True, slots=True)
class UnknownLoss(RenyiBoundLoss):
    """A loss without any known bound."""

    largest_order: ClassVar[float] = 0.0

    def bound(self, c: float) -> float:
        return 0.0

    def estimate(self, c: float) -> CGFEstimate:
        return CGFEstimate(0.0, 0.0, 0.0)


@final
@dataclass(frozen=True, slots=True)
class AboveThresholdRenyiLoss(RenyiBoundLoss):
    """``K(c)`` at most ``rho_all c (c+1)`` and at most ``rho c (c+1) + log_queries``.

    The first releases all noisy answers, the second shifts the threshold. K is convex, so that it
    also lies below the common tangent of both parabolas (or the tangent of the second one through
    0), between ``left_tangent`` and ``_right_tangent``.
    """

    rho_all: float
    rho: float
    log_queries: float
    attained: PrivacyLoss | None = field()
    also_attained: tuple[PrivacyLoss, ...] = ()

    largest_order: ClassVar[float] = math.inf

    @property
    def left_tangent(self) -> float:
        """The point of the first parabola on the common tangent; infinite where there is none."""
        if not self.rho_all > self.rho:
            return math.inf
        ratio = self.rho_all / self.rho
        root = 1.0 / ratio + 4.0 * self.log_queries / (self.rho * ratio * (ratio - 1.0))
        return max(0.5 * (math.sqrt(root) - 1.0), 0.0)

    @property
    def _right_tangent(self) -> float:
        left = self.left_tangent
        if left in (0.0, math.inf):
            return math.sqrt(self.log_queries / self.rho) if left == 0.0 else math.inf
        return 0.5 * (self.rho_all / self.rho * (2.0 * left + 1.0) - 1.0)

    def bound(self, c: float) -> float:
        return self.cgf_estimate(c).value * (1.0 + 32.0 * ULP)

    def zcdp_line(self) -> ZCDPLine:
        # The tangent of ``rho c (c+1) + ln N`` through 0 touches at ``c = sqrt(ln N / rho)``.
        chord = self.rho + 2.0 * math.sqrt(self.rho) * math.sqrt(self.log_queries)
        return ZCDPLine(outward(min(self.rho_all, chord)))

    def estimate(self, c: float) -> CGFEstimate:
        left, right = self.left_tangent, self._right_tangent
        if c <= left or not left < right:
            slope = self.rho_all * (2.0 * c + 1.0)
            return CGFEstimate(self._all_answers(c), slope, 2.0 * self.rho_all)
        if c >= right:
            return CGFEstimate(self._first_positive(c), self.rho * (2.0 * c + 1.0), 2.0 * self.rho)
        share = (c - left) / (right - left)
        low, high = self._all_answers(left), self._first_positive(right)
        slope = (high - low) / (right - left)
        return CGFEstimate(low * (1.0 - share) + high * share, slope, 0.0)

    def _all_answers(self, c: float) -> float:
        return self.rho_all * c * (c + 1.0)

    def _first_positive(self, c: float) -> float:
        return self.rho * c * (c + 1.0) + self.log_queries


@dominating_pair.register
def _(mechanism: AboveThreshold) -> DominatingPair:
    if mechanism.query_scale == math.inf:
        return DominatingPair(None, None)
    return both(_loss(mechanism))


def _loss(mechanism: AboveThreshold) -> PrivacyLoss:
    threshold, query = mechanism.threshold_scale, mechanism.query_scale
    if not 1.0 / _LARGEST_SCALE <= query or not 1.0 / _LARGEST_SCALE <= threshold:
        return UnknownLoss()
    single = single_query(mechanism)
    attained = attacked(mechanism) or single
    also = tuple(one for one in (single, nearly_largest(mechanism)) if one)
    if mechanism.query_noise is ComparisonNoise.GAUSSIAN:
        sensitivity = Fraction(1 if mechanism.monotone else 2)
        renyi = replace(renyi_bound(mechanism, sensitivity, attained), also_attained=also)
        least = None if threshold == math.inf else least_reading(threshold)
        most = float_up(1 / least_reading(query))
        bound = gaussian_queries_bound(least, most, mechanism.monotone, mechanism.queries or 1)
        if bound is None:
            return renyi
        above: CellLoss = replace(bound, line=renyi.zcdp_line())
    else:
        rate, known = float_up(1 / least_reading(query)), threshold == math.inf
        if mechanism.threshold_noise is ComparisonNoise.GAUSSIAN and not known:
            above = gaussian_bound(least_reading(threshold), rate, mechanism.monotone)
        else:
            own = 0.0 if known else float_up(1 / least_reading(threshold))
            above = laplace_bound(own, rate, mechanism.monotone)
    return DominatedLoss(above, attained, also, attained_in_samples=True)


def renyi_bound(
    mechanism: AboveThreshold, sensitivity: Fraction, attained: PrivacyLoss | None
) -> AboveThresholdRenyiLoss:
    """Return the Renyi bound for Gaussian noise of both, with a bounded number of queries."""
    queries = mechanism.queries or 1
    own = 1 / least_reading(mechanism.query_scale) ** 2
    shared = sensitivity * sensitivity * own
    if mechanism.threshold_scale < math.inf:
        shared += 1 / least_reading(mechanism.threshold_scale) ** 2
    rho_all, rho = float_up(queries * own / 2), float_up(shared / 2)
    return AboveThresholdRenyiLoss(rho_all, rho, math.log(queries) * (1.0 + OUTWARD_32), attained)


def single_query(mechanism: AboveThreshold) -> RandomizedResponsePairLoss | None:
    """Return the loss of one query half a unit above or below the threshold, rounded down.

    The noises' difference exceeds 1/2 with some probability p: the loss is ``ln((1-p)/p)``.
    """
    threshold, query = mechanism.threshold_scale, mechanism.query_scale
    if max(threshold, query) > _LARGEST_SCALE:
        return None
    lost = math.ceil(abs(math.log10(threshold)) + abs(math.log10(query)))
    with working_digits(_DIGITS + 4 * lost):
        first, second = mp.mpf(threshold), mp.mpf(query)
        if mechanism.query_noise is ComparisonNoise.GAUSSIAN:
            p = mp.ncdf(-1 / (2 * mp.sqrt(first**2 + second**2)))
        elif mechanism.threshold_noise is ComparisonNoise.GAUSSIAN:
            p = _normal_and_laplace(first, second)
        else:
            p = _two_laplaces(first, second)
        loss = float(mp.log((1 - p) / p)) * _INWARD
    return RandomizedResponsePairLoss(loss) if loss > 0.0 else None


def _two_laplaces(first: mpf, second: mpf) -> mpf:
    """Return the probability that the sum of two Laplace variables of these scales exceeds 1/2."""
    if first == second:
        return (2 + 1 / (2 * first)) * mp.exp(-1 / (2 * first)) / 4
    high, low = (scale**2 * mp.exp(-1 / (2 * scale)) for scale in (first, second))
    return (high - low) / (2 * (first**2 - second**2))


def _normal_and_laplace(deviation: mpf, scale: mpf) -> mpf:
    half, ratio = 1 / (2 * deviation), deviation / scale
    grown = mp.exp(-1 / (2 * scale)) * mp.ncdf(half - ratio)
    fallen = mp.exp(1 / (2 * scale)) * mp.ncdf(-half - ratio)
    return mp.ncdf(-half) + mp.exp(ratio * ratio / 2) * (grown - fallen) / 2
