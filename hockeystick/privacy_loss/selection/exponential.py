"""The pairs of losses of the exponential mechanism and of noisy maxima.

**Permute-and-flip and Laplace noise cost at most what a Laplace query of the scale 1/e does.** In
units of the noise's scale a set S of candidates rises by at most ``e = epsilon`` against the others
between neighbours. Let p(t) be its probability once it rose by t: p is continuous, and at most
``e^t p(0)``, as a candidate's own noise may make up for its rise, and that of the rest of S is but
in its way. So is 1 - p as S falls. With ``x = e^eps`` and ``y^2 = x e^-e``

    P(S) - x Q(S) <= p(e) - x p(0) <= 1 - y,    the profile of that query for |eps| <= e:

where p crosses 1/2 at a t, ``p(0) >= e^-t / 2`` and ``1 - p(e) >= e^(t - e) / 2``, whose product
is at least ``e^-e / 4``; where ``p(e) <= 1/2`` it is at most ``(1 - y^2)/2``; where ``p(0) >= 1/2``
at most ``1 - x/2 - e^-e / 2``. Two candidates of permute-and-flip, the first ahead by
``(e - eps)/2`` and behind by ``(e + eps)/2``, attain it: ``p(e) = 1 - y/2``, ``x p(0) = y/2``.

With Laplace noise one of 17 candidates with equal scores falls by e: it is y scales below m others
with the probability ``a e^-y - b e^(-m y)``, ``a = (1 - 2^-(m+1))/(m+1) + 2^-(m+1)/(m-1)`` and
b > 0, where ``17 a < 1 + 2^-19``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from hockeystick.mechanisms import Exponential, MaxNoise, PermuteAndFlip, ReportNoisyMax
from hockeystick.mechanisms.selection.sparse_vector import AboveThreshold
from hockeystick.numerics import decimal
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss.core.base import Array, DominatingPair, both, dominating_pair
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.mixtures import NO_PRIVACY, RandomizedResponsePairLoss
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss, chord
from hockeystick.privacy_loss.guarantees import BoundedRangeLoss
from hockeystick.privacy_loss.noise.laplace import LaplaceLoss
from hockeystick.privacy_loss.selection.sparse_vector import single_query

# What the few roundings below may take or add.
_INWARD: Final = 1.0 - 2.0**-45
_FALLEN: Final = 1.0 + 2.0**-18
_LEAST: Final = 1e-290
# Lattices: how far they reach, in units of sqrt(runs); terms; points of u; logarithms of points.
_REACH: Final = 6.0
_MOST_TERMS: Final = 2e7
_FEWEST_SHARES: Final = 5
_MOST_SHARES: Final = 256
_LARGEST: Final = 600.0
# Points of u of which one may be that of all runs.
_FIXED: Final = 64
# What a round, and parameters, are moved outward by.
_ROUND: Final = 1.0 + 2.0**-42
_LESS: Final = 1.0 - 2.0**-46
_MORE: Final = 1.0 + 2.0**-46


@dominating_pair.register(Exponential)
@dominating_pair.register(PermuteAndFlip)
@dominating_pair.register(ReportNoisyMax)
def _selected(mechanism: Exponential | PermuteAndFlip | ReportNoisyMax) -> DominatingPair:
    # One loss for both directions, as candidates and their scores are free.
    epsilon = mechanism.epsilon
    if epsilon == 0.0:
        return DominatingPair(None, None)
    if epsilon == math.inf:
        return NO_PRIVACY
    noise = mechanism.noise if isinstance(mechanism, ReportNoisyMax) else MaxNoise.GUMBEL
    if isinstance(mechanism, PermuteAndFlip) or noise is MaxNoise.EXPONENTIAL:
        # The worse one is the first (1/2) and accepted: odds of ``2 exp(epsilon/2) - 1``.
        odds = (0.5 * epsilon + math.log1p(-math.expm1(-0.5 * epsilon))) * _INWARD
        exchanged = RandomizedResponsePairLoss(odds) if odds > 0.0 else None
        return both(DominatedLoss(_as_laplace(epsilon), exchanged, (), True, True))
    if noise is MaxNoise.LAPLACE:
        # The difference of scores is that of a query and a threshold with the same noise.
        compared = single_query(AboveThreshold(1.0 / epsilon, 1.0 / epsilon))
        p, kept = Fraction(1, 17), Fraction(max(math.exp(-epsilon), _LEAST) * _FALLEN)
        alone = (OutcomesLoss(((1 - p, 1 - p * kept), (p, p * kept))),) if kept < 1 else ()
        return both(DominatedLoss(_as_laplace(epsilon), compared, alone, False, True))
    return both(BoundedRangeLoss(epsilon))


def _as_laplace(epsilon: float) -> CellLoss:
    if epsilon < _LEAST:
        return RandomizedResponsePairLoss(epsilon)
    return LaplaceLoss(1 / decimal(epsilon))


@dataclass(frozen=True, slots=True)
class RangeProfile:
    """The profile of so many adaptive selections, or of their Poisson samples, as ``Exponential``.

    On samples of a rate r a likelihood ratio l is ``m = 1 - r + r l``. The terms are means of
    ``m H(x/m)`` where the example is removed and of ``H(x m)`` where it is added, convex in l: two
    outcomes are the worst still, and some example attains them at each step.
    Below: one u for all runs, a binomial sum, or without sampling H on a lattice.
    """

    epsilon: float
    runs: int
    rate: float
    removing: bool
    step: float
    lower: Array
    upper: Array

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, epsilon: float, runs: int, rate: float, removing: bool) -> RangeProfile | None:
        """Return the profile; None where a lattice is coarse or out of range."""
        if not _LEAST < epsilon < _LARGEST:
            return None
        most = math.log1p(rate * math.expm1(epsilon))
        far = 1.0 + min(runs, runs * most / 8.0 + _REACH * math.sqrt(runs))
        shares = min(math.floor(math.sqrt(_MOST_TERMS / (runs * far))), _MOST_SHARES)
        if shares < _FEWEST_SHARES or not _LEAST < most < _LARGEST / far:
            return None
        step, more, size = most / shares, min(rate * (1.0 + 2.0**-50), 1.0), math.ceil(far * shares)
        upper = _composed(step * _MORE, more, shares, size, runs, removing, up=True)
        lower = np.zeros(1)
        if rate == 1.0:
            lower = _composed(step * _LESS, rate, shares, size, runs, removing, up=False)
        return cls(epsilon, runs, rate, removing, step, lower, upper)

    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        """Return the upper end (1), the lower one (-1), or what lies between (0)."""
        largest = self.runs * math.log1p(self.rate * math.expm1(self.epsilon))
        if epsilon > largest * (1.0 + 2.0**-49):
            return mp.zero
        if not perturbation:
            return (self.delta(epsilon, 1) + self.delta(epsilon, -1)) / 2
        place = float(epsilon) / self.step + 0.5 * (self.upper.size - 1) - perturbation * 1e-8
        if perturbation < 0:
            at = math.ceil(place)
            return mp.mpf(max(self._fixed(float(epsilon)), *self.lower[at : at + 1].tolist(), 0.0))
        return mp.mpf(chord(self.upper, self.step, place) * _ROUND + _LEAST)

    def _fixed(self, epsilon: float) -> float:
        """Return the largest delta of runs of one u, rounded down by more than all roundings."""
        from scipy.special import gammaln

        n, e, side = self.runs, self.epsilon, 1.0 if self.removing else -1.0
        t, k = e * np.arange(1, _FIXED)[:, None] / _FIXED, np.arange(n + 1.0)
        losses = (np.log1p(self.rate * np.expm1(one)) for one in (t, t - e))
        logs = (np.log(one / -np.expm1(-e)) - t for one in (-np.expm1(t - e), np.expm1(t)))
        loss, log_q = (k * one + (n - k) * other for one, other in (losses, logs))
        log_q = log_q + gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
        above = epsilon * (1.0 + 1e-11) + 1e-11 * float(np.abs(loss).max()) - side * loss
        p = np.exp(log_q + loss if self.removing else log_q)
        found = (p * -np.expm1(np.minimum(above, 0.0))).sum(axis=1)
        return float(found.max()) * (1.0 - 1e-9)


def _composed(
    step: float, rate: float, shares: int, size: int, runs: int, removing: bool, *, up: bool
) -> Array:
    """Return H at ``e^(j step)``, ``|j| <= size``, at most (up) or at least: all terms are >= 0.

    Points u have ``m = e^(j step)``, the other outcome's lies between points: H is below chords
    there. Between two u its parts are below chords, and u times the term a quadratic in u, its
    value a mean, with positive weights, of the quotients of the Bernstein coefficients of the
    quadratic and of u. The lower end has no samples, so that all is at points.
    """
    value = np.maximum(-np.expm1(step * np.arange(-size, size + 1)), 0.0)
    j, points, outward = np.arange(shares + 1), value.size, _ROUND if up else 2.0 - _ROUND
    own, rise, side = np.exp(j * step), np.expm1(j * step), 1 if removing else -1
    most = math.expm1(shares * step)
    whole = rate + most
    one, two = own * np.expm1((shares - j) * step) / whole, rise / rate
    scale, other = (1.0 + two) * (most / whole), ((1.0 - rate) * most + rate * own) / whole
    places = -np.log1p(-np.minimum(rate * one, 0.5))
    places = side * np.where(rate * one < 0.5, places, -np.log(other)) / step
    to = np.floor(places * (1.0 - side * 2.0**-48) + (0 if up else 0.5)).astype(int)
    share = np.expm1(np.maximum(places - to, 0.0) * step) / math.expm1(step) * up
    if not removing:
        own, other = np.ones(shares + 1), np.ones(shares + 1)
    for _ in range(runs):
        # Below the points H is at most 1, above them at most what it is at the last.
        beyond = (1.0, float(value[-1])) if up else (0.0, 0.0)
        padded = np.pad(value, shares + 2, constant_values=beyond)
        value, before = np.zeros(points), (value, value)
        for k in j:
            here, there = shares + 2 - side * k, shares + 2 + to[k]
            f = own[k] * padded[here : here + points]
            g = other[k] * (1.0 - share[k]) * padded[there : there + points]
            if share[k]:
                g += other[k] * share[k] * padded[there + 1 : there + 1 + points]
            np.maximum(value, (one[k] * f + two[k] * g) * (outward / scale[k]), out=value)
            if up and k:
                middle = one[k - 1] * f + two[k - 1] * g + one[k] * before[0] + two[k] * before[1]
                np.maximum(value, middle * (outward / (scale[k - 1] + scale[k])), out=value)
            before = f, g
    return np.asarray(value)
