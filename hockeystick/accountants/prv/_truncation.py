"""Estimates of the cgf of truncated losses, from which the lattice's tilt is chosen.

A tail that is too unlikely to matter at a delta may still dominate a moment, as in a mixture over
the number of times that a record was drawn. The tilt is that of the loss without such a tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from hockeystick.numerics import Ball
from hockeystick.privacy_loss import CellLoss, CGFEstimate, PrivacyLoss
from hockeystick.privacy_loss.core.interval_masses import effective_range, merged_points
from hockeystick.privacy_loss.core.terms import TermSequence

# With more losses than this none is truncated.
_MOST_LOSSES: Final = 16
# A tilted loss is truncated if its mean is within this many standard deviations of the tail.
_WITHIN: Final = 2.0
# Larger losses have no cells.
_LARGEST_LOSS: Final = 1e9
# ln of delta per run over the probability of the tail, and the tolerance at which it is that.
_UNLIKELY: Final = 14.0
_USUAL: Final = 1e-4


@dataclass(frozen=True)
class Truncation:
    """Losses truncated where the tail is less likely than ``exp(log_least)``; it proves nothing."""

    log_least: float

    @classmethod
    def at(cls, terms: TermSequence, log_delta: float, tolerance: float = _USUAL) -> Truncation:
        """Return the truncation for about a delta, later where the tolerance is smaller."""
        if len(terms) > _MOST_LOSSES:
            return cls(-math.inf)
        runs = math.fsum(count for _, count in terms)
        finer = max(math.log(_USUAL / tolerance), 0.0)
        return cls(round(log_delta - math.log(max(runs, 1.0)) - finer) - _UNLIKELY)

    def cgf_estimate(self, loss: PrivacyLoss, c: float) -> CGFEstimate:
        """Return K and two derivatives at c of the truncated loss."""
        whole = loss.cgf_estimate(c)
        if self.log_least == -math.inf or not isinstance(loss, CellLoss):
            return whole
        high = _tail_start(loss, self.log_least)
        spread = _WITHIN * math.sqrt(max(whole.second_derivative, 0.0))
        if high == math.inf or whole.first_derivative + spread < high < math.inf:
            return whole
        return _truncated_estimate(loss, high, c)

    def terms(self, terms: TermSequence) -> list[tuple[PrivacyLoss, int]]:
        """Return the truncated losses."""
        if self.log_least == -math.inf:
            return list(terms)
        cells = [(isinstance(loss, CellLoss), loss, count) for loss, count in terms]
        return [
            (_TruncatedLoss(loss, self) if known else loss, count) for known, loss, count in cells
        ]


@dataclass(frozen=True)
class _TruncatedLoss(PrivacyLoss):
    """A loss whose cgf estimate is that of the truncated loss."""

    loss: PrivacyLoss
    truncation: Truncation

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return self.truncation.cgf_estimate(self.loss, c)

    @property
    def supremum(self) -> float:
        return self.loss.supremum

    def cgf_bounds(self, c: float) -> Ball:
        return self.loss.cgf_bounds(c)


@lru_cache(maxsize=256)
def _tail_start(loss: CellLoss, log_least: float) -> float:
    """Return the start of the tail; inf where the loss ends before it, or at too large a loss."""
    high = effective_range(loss, log_least)[1]
    return math.inf if high >= min(loss.supremum, _LARGEST_LOSS) else high


def _truncated_estimate(loss: CellLoss, high: float, c: float) -> CGFEstimate:
    """Return K and two derivatives of the loss up to an end."""
    point, log_p = merged_points(loss)
    kept = point <= max(high, float(point.min()))
    point, exponent = point[kept], log_p[kept] + c * point[kept]
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    value = top + math.log(float(weight.sum()))
    weight /= weight.sum()
    first = float((weight * point).sum())
    return CGFEstimate(value, first, float((weight * (point - first) ** 2).sum()))


NO_TRUNCATION: Final = Truncation(-math.inf)
