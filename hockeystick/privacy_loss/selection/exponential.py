"""The pairs of losses of the exponential mechanism and of noisy maxima.

With a candidate whose probability is p and, where scores move, p e^-l or more, the pair that tells
this candidate from all others has the loss l with probability p. By its scores of D, equal to all
others', and of D', as far below them as two sensitivities, this is attained for one of

- two candidates of permute-and-flip, of which it is p = 1/2 and ``q = e^-epsilon / 2``;
- m + 1 with Laplace noise, ``p = 1/(m+1)`` and, by integrating over its noise y scales below the
  others, ``q = a e^-y - b e^(-m y)`` with ``a = (1 - 2^-(m+1))/(m+1) + 2^-(m+1)/(m-1)`` and
  ``b = 2^-(m+1) (1/(m-1) - 1/(m+1))`` at ``y = epsilon``.

A lesser move has a larger q, so that q may be rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np

from hockeystick.mechanisms.selection.exponential import (
    Exponential,
    MaxNoise,
    PermuteAndFlip,
    ReportNoisyMax,
)
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss.core.base import Array, DominatingPair, PrivacyLoss, dominating_pair
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.mixtures import NO_PRIVACY, RandomizedResponsePairLoss
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.guarantees import BoundedRangeLoss

# What the few roundings below may add.
_INWARD: Final = 1.0 - 2.0**-45
# What roundings of a probability may add, those of an epsilon up to 700 in its exponent included.
_UPWARD: Final = 1.0 + 2.0**-40
# The least probability; how many others there are where one candidate's Laplace noise is told.
_LEAST: Final = 1e-290
_OTHERS: Final = 16
# Lattices: how far they reach, in root mean squares of a loss; terms; points for each range.
_REACH: Final = 6.0
_MOST_TERMS: Final = 2e7
_FEWEST_SHARES: Final = 5
_MOST_SHARES: Final = 256
_LARGEST: Final = 600.0
_ROUND: Final = 1.0 + 2.0**-42


@dominating_pair.register
def _(mechanism: Exponential) -> DominatingPair:
    return selection_pair(mechanism.epsilon, MaxNoise.GUMBEL)


@dominating_pair.register
def _(mechanism: ReportNoisyMax) -> DominatingPair:
    return selection_pair(mechanism.epsilon, mechanism.noise)


def selection_pair(epsilon: float, noise: MaxNoise) -> DominatingPair:
    """Return the losses of the largest noisy score, edge cases included.

    Candidates, their scores and so the directions are free: one loss serves both.
    """
    if epsilon == 0.0:
        return DominatingPair(None, None)
    if epsilon == math.inf:
        return NO_PRIVACY
    loss: CellLoss = BoundedRangeLoss(epsilon)
    if noise is MaxNoise.EXPONENTIAL:
        loss = _pure(epsilon, _flipped(epsilon), 1, 0.5 * math.exp(-epsilon))
    elif noise is MaxNoise.LAPLACE:
        lost = 2.0 ** -(_OTHERS + 1)
        first, second = lost / (_OTHERS - 1), (1.0 - lost) / (_OTHERS + 1)
        far = (lost / (_OTHERS + 1) - first) * math.exp(-_OTHERS * epsilon)
        moved = (first + second) * math.exp(-epsilon) + far
        loss = _pure(epsilon, _laplace_difference(epsilon), _OTHERS, moved)
    return DominatingPair(loss, loss)


def _pure(epsilon: float, exchanged: float, others: int, moved: float) -> DominatedLoss:
    """Return the loss of an epsilon-DP selection that at times is randomized response.

    Of so many others and one, the one's probability falls from an equal share to ``moved``.
    """
    attained, also = None, tuple[PrivacyLoss, ...]()
    if exchanged * _INWARD > 0.0:
        attained = RandomizedResponsePairLoss(exchanged * _INWARD)
    p, q = Fraction(1, others + 1), Fraction(max(moved, _LEAST) * _UPWARD)
    if q < p:
        also = (OutcomesLoss(((1 - p, 1 - q), (p, q))),)
    return DominatedLoss(RandomizedResponsePairLoss(epsilon), attained, also, False, True)


def _flipped(epsilon: float) -> float:
    """Return the loss of permute-and-flip between two candidates that change places.

    The scores differ by one sensitivity. The worse candidate is released where it is first (1/2)
    and accepted (``exp(-epsilon/2)``): odds of ``2 exp(epsilon/2) - 1``, and those reversed.
    """
    half = 0.5 * epsilon
    return half + math.log1p(-math.expm1(-half))


def _laplace_difference(epsilon: float) -> float:
    """Return the loss of the larger of two noisy scores that change places.

    The scores differ by one sensitivity, ``x = epsilon/2`` scales of the noise, and the difference
    of two Laplace variables exceeds x scales with probability ``p = exp(-x) (2 + x) / 4``: the
    loss is ``ln((1-p)/p)``, for small x from ``1 - 2p >= x/2 - x^3/12``.
    """
    x = 0.5 * epsilon
    if x >= 1.0:
        wide = 0.25 * (2.0 + x)
        return x - math.log(wide) + math.log1p(-wide * math.exp(-x))
    likely = -math.expm1(-x) * (1.0 + 0.5 * x) - 0.5 * x
    if x < 0.01:
        likely = 0.5 * x * (1.0 - x * x / 6.0)
    return math.log1p(likely) - math.log1p(-likely)


@dominating_pair.register
def _(mechanism: PermuteAndFlip) -> DominatingPair:
    return selection_pair(mechanism.epsilon, MaxNoise.EXPONENTIAL)


@final
@dataclass(frozen=True, slots=True)
class AdaptiveRange:
    """Ends of the profile of k runs with losses in an interval of length e, chosen one by one.

    With ``H_0(x) = (1 - x)_+`` for ``x = e^epsilon``, and ``f(r) = r H_k(x/r)``, which is convex,

        H_(k+1)(x) = max of ((1/u - e^-e) f(u) + (1 - 1/u) f(u e^-e)) / (1 - e^-e),  1 <= u <= e^e:

    of likelihood ratios from ``u e^-e`` to u, of mean 1 under Q, these two are the worst, and two
    candidates have them. x and u stand on a lattice ``e^(j h)`` with ``e = n h``.

    - ``lower``: some u alone, a choice by earlier outcomes; H falls, so that the next x is below.
    - ``upper``: between two u both f are below their chords, and u times the term below a quadratic
      in u. Over u its value is a mean, with positive weights, of the quotients of its Bernstein
      coefficients and those of u. Between two x the profile, as it is convex, is below its chord.

    All terms are positive: each round in floats errs by less than it is moved outward.

    References:
        Dong, Durfee and Rogers, "Optimal Differential Privacy Composition for Exponential
        Mechanisms", ICML 2020: the two outcomes, and the recursion.
    """

    step: float
    lower: Array
    upper: Array

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, epsilon: float, runs: int) -> AdaptiveRange | None:
        """Return the ends; None where a lattice for so many runs is coarse or out of range."""
        far = 1.0 + min(runs, runs * epsilon / 8.0 + _REACH * math.sqrt(runs))
        shares = min(math.floor(math.sqrt(_MOST_TERMS / (runs * far))), _MOST_SHARES)
        if shares < _FEWEST_SHARES or not _LEAST < epsilon < _LARGEST / far:
            return None
        step, size = epsilon / shares, math.ceil(far * shares)
        lattices = step * (1.0 - 2.0**-50), step * (1.0 + 2.0**-50)
        ends = (_composed(one, shares, size, runs, up=one > step) for one in lattices)
        return cls(step, *ends)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return the upper end (1), the lower one (-1), or what lies between (0)."""
        if not perturbation:
            return (self.delta(epsilon, 1) + self.delta(epsilon, -1)) / 2
        place, last = float(epsilon) / self.step, self.upper.size - 1
        place += 0.5 * last - perturbation * (1e-10 + 1e-14 * place)
        if perturbation < 0:
            return mp.mpf(float(self.lower[math.ceil(place)])) if place <= last else mp.zero
        left = min(math.floor(place), last - 1)
        share = math.expm1(min(place - left, 1.0) * self.step) / math.expm1(self.step)
        value = self.upper[left] + share * (self.upper[left + 1] - self.upper[left])
        return mp.mpf(float(value) * _UPWARD + _LEAST)


def _composed(step: float, shares: int, size: int, runs: int, *, up: bool) -> Array:
    """Return H of so many runs at ``e^(j step)``, ``|j| <= size``, at most (up) or at least."""
    value = np.maximum(-np.expm1(step * np.arange(-size, size + 1)), 0.0)
    j, points, outward = np.arange(shares + 1), value.size, _ROUND if up else 2.0 - _ROUND
    u, one, other = np.exp(j * step), -np.expm1((j - shares) * step), np.expm1(j * step)
    other_down, whole = other * math.exp(-shares * step), one[0] / outward
    for _ in range(runs):
        # Below the points H is at most 1, above them at most what it is at the last.
        beyond = (1.0, float(value[-1])) if up else (0.0, 0.0)
        padded = np.pad(value, shares, constant_values=beyond)
        value, before = np.zeros(points), (value, value)
        for k in j:
            f, g = padded[shares - k :][:points], padded[2 * shares - k :][:points]
            np.maximum(value, (one[k] * f + other_down[k] * g) / whole, out=value)
            if up and k:
                middle = u[k] * (one[k - 1] * f + other_down[k - 1] * g)
                middle += u[k - 1] * (one[k] * before[0] + other_down[k] * before[1])
                np.maximum(value, middle / (whole * (u[k - 1] + u[k])), out=value)
            before = f, g
    return np.asarray(value)
