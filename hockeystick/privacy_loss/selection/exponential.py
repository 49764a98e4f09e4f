"""The pairs of losses of the exponential mechanism and of noisy maxima."""

from __future__ import annotations

import math
from typing import Final

from hockeystick.mechanisms.selection.exponential import (
    Exponential,
    MaxNoise,
    PermuteAndFlip,
    ReportNoisyMax,
)
from hockeystick.privacy_loss.core.base import DominatingPair, dominating_pair
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.mixtures import NO_PRIVACY, RandomizedResponsePairLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.guarantees import BoundedRangeLoss

# What the few roundings below may add.
_INWARD: Final = 1.0 - 2.0**-45


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
        loss = _pure(epsilon, _flipped(epsilon))
    elif noise is MaxNoise.LAPLACE:
        loss = _pure(epsilon, _laplace_difference(epsilon))
    return DominatingPair(loss, loss)


def _pure(epsilon: float, attained_epsilon: float) -> DominatedLoss:
    """Return the loss of an epsilon-DP selection that at times is randomized response."""
    attained = (
        RandomizedResponsePairLoss(attained_epsilon * _INWARD)
        if attained_epsilon * _INWARD > 0.0
        else None
    )
    return DominatedLoss(RandomizedResponsePairLoss(epsilon), attained)


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
