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
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from hockeystick.mechanisms.selection.exponential import (
    Exponential,
    MaxNoise,
    PermuteAndFlip,
    ReportNoisyMax,
)
from hockeystick.mechanisms.selection.sparse_vector import AboveThreshold
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.base import Array, DominatingPair, both, dominating_pair
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.mixtures import NO_PRIVACY, RandomizedResponsePairLoss
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
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
# What a round is moved outward by.
_ROUND: Final = 1.0 + 2.0**-42


@dominating_pair.register(Exponential)
@dominating_pair.register(PermuteAndFlip)
@dominating_pair.register(ReportNoisyMax)
def _selected(mechanism: Exponential | PermuteAndFlip | ReportNoisyMax) -> DominatingPair:
    """Return one loss for both directions, as candidates and their scores are free."""
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


@lru_cache(maxsize=64)
def adaptive_ends(epsilon: float, runs: int) -> tuple[float, Array, Array] | None:
    """Return h and ends of H_runs at ``x = e^(j h)``, ``|j| <= m``, as in ``Exponential``.

    None where a lattice is coarse or out of range. Points x and u divide e in equal parts. Below:
    some u alone, which earlier outcomes may choose. Above: ``r H(x/r)`` is convex in r, and below
    its chords between two u. u times the term is then a quadratic in u, and its value a mean, with
    positive weights, of the quotients of the Bernstein coefficients of the quadratic and of u.
    """
    far = 1.0 + min(runs, runs * epsilon / 8.0 + _REACH * math.sqrt(runs))
    shares = min(math.floor(math.sqrt(_MOST_TERMS / (runs * far))), _MOST_SHARES)
    if shares < _FEWEST_SHARES or not _LEAST < epsilon < _LARGEST / far:
        return None
    step, size = epsilon / shares, math.ceil(far * shares)
    lower = _composed(step * (1.0 - 2.0**-50), shares, size, runs, up=False)
    return step, lower, _composed(step * (1.0 + 2.0**-50), shares, size, runs, up=True)


def _composed(step: float, shares: int, size: int, runs: int, *, up: bool) -> Array:
    """Return H at ``e^(j step)``, ``|j| <= size``, at most (up) or at least: all terms are >= 0."""
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
