"""An interval that holds a tilted sum but for a given mass on either side (Chernoff).

Estimates of the cgf of truncated losses, from which the lattice's tilt is chosen.

A tail that is too unlikely to matter at a delta may still dominate a moment, as in a mixture over
the number of times that a record was drawn. The tilt is that of the loss without such a tail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.numerics import Ball
from hockeystick.privacy_loss import CellLoss, CGFEstimate, PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import effective_range, merged_points
from hockeystick.privacy_loss.core.composition import TermSequence

if TYPE_CHECKING:
    from hockeystick.accountants.prv._discretise import TiltedMasses
    from hockeystick.kernels.series import Array


# With more losses than this none is truncated.
_MOST_LOSSES: Final = 16
# A tilted loss is truncated if its mean is within this many standard deviations of the tail.
_WITHIN: Final = 2.0
# Larger losses have no cells.
_LARGEST_LOSS: Final = 1e9
# ln of delta per run over the probability of the tail, and the tolerance at which it is that.
_UNLIKELY: Final = 14.0
# Where ln of the tail's probability is less, few cells are too far apart near it.
_LEAST_FOR_FEW: Final = -100.0
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
        return _truncated_estimate(loss, high, c, few=self.log_least > _LEAST_FOR_FEW)

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
    high = effective_range(loss, log_least)[1]
    return math.inf if high >= min(loss.supremum, _LARGEST_LOSS) else high


@lru_cache(maxsize=256)
def _truncated_estimate(loss: CellLoss, high: float, c: float, *, few: bool) -> CGFEstimate:
    point, log_p = merged_points(loss, few=few)
    kept = point <= max(high, float(point.min()))
    point, exponent = point[kept], log_p[kept] + c * point[kept]
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    value = top + math.log(float(weight.sum()))
    weight /= weight.sum()
    first = float((weight * point).sum())
    return CGFEstimate(value, first, float((weight * (point - first) ** 2).sum()))


NO_TRUNCATION: Final = Truncation(-math.inf)


# The approximate number of points that moments are taken over.
_COARSE_POINTS: Final = 256
_ROUNDING: Final = 1e-12
# The tilts at which Chernoff's bound is tried, over the best one of a normal sum.
_TILTS: Final = np.exp(np.arange(-6.0, 3.1, 0.3))


class Window(NamedTuple):
    """Two ends, and a bound on the tilted mass that lies outside them."""

    low: float
    high: float
    outside: float


def window(weights: Sequence[tuple[TiltedMasses, int]], step: float, log_outside: float) -> Window:
    """Return the interval that holds the sum but for ``exp(log_outside)`` on either side."""
    known = coarsened(weights, step)
    # That of a normal sum, and others around it.
    s = np.sqrt(-2.0 * log_outside / max(known.variance, 1e-300)) * _TILTS
    ends, outside = [], 0.0
    for side in (-1.0, 1.0):
        parts = np.array_split(s, 1 + len(known.runs) // 64)
        log_moment = np.concatenate([known.log_moment(side * part) for part in parts])
        needed = float(((log_moment - log_outside) / s).min())
        farthest, reached = known.farthest(side), needed + 1e-9 * abs(needed)
        ends.append(side * min(farthest, reached))
        outside += 0.0 if farthest <= reached else math.exp(log_outside)
    return Window(min(ends), max(ends), outside * (1.0 + 1e-6))


class CoarseLosses(NamedTuple):
    """Losses on few points each, a row for a loss: convexly larger, with the same means.

    ``weight`` has the masses of the points, 0 where a row has fewer; ``runs`` the numbers of runs.
    """

    point: Array
    weight: Array
    runs: Array

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        mean = (self.weight * self.point).sum(axis=1, keepdims=True)
        one = (self.weight * (self.point - mean) ** 2).sum(axis=1)
        return float((self.runs * one).sum())

    def farthest(self, side: float) -> float:
        """Return the largest sum on the side 1, minus the smallest on the side -1."""
        reach = np.where(self.weight > 0.0, side * self.point, -math.inf).max(axis=1)
        return float((self.runs * reach).sum())

    def log_moment(self, s: Array | float) -> Array:
        """Return ``ln E exp(s S)`` of the sum S for each s, rounded up."""
        exponent = np.where(self.weight > 0.0, np.multiply.outer(s, self.point), -math.inf)
        top = exponent.max(axis=-1)
        sums = (self.weight * np.exp(exponent - top[..., None])).sum(axis=-1)
        values = top + np.log(sums) + _ROUNDING * (1.0 + np.abs(top))
        return np.asarray((self.runs * values).sum(axis=-1))


def coarsened(
    weights: Sequence[tuple[TiltedMasses, int]], step: float, most: int = _COARSE_POINTS
) -> CoarseLosses:
    """Return all losses on few points each, padded to rows of the same length."""
    rows = [_coarsen(one, step, most) for one, _ in weights]
    size = max(point.size for point, _ in rows)
    point, weight = (np.zeros((len(rows), size)) for _ in range(2))
    for k, (at, mass) in enumerate(rows):
        point[k, : at.size], weight[k, : at.size] = at, mass
    return CoarseLosses(point, weight, np.array([float(count) for _, count in weights]))


def _coarsen(one: TiltedMasses, step: float, most: int) -> tuple[Array, Array]:
    """Return masses split between the two coarse points next to each, with the same mean.

    The result is larger in convex order: the mean of any convex function rises. The outermost
    coarse points are the outermost masses' own, or beyond them.
    """
    kept = np.flatnonzero(one.weight > 0.0)
    first, last = int(kept[0]), int(kept[-1])
    stride = max(-(-(last - first) // most), 1)
    count = -(-(last - first) // stride)
    padded = np.zeros((max(count, 1), stride))
    padded.ravel()[: last - first + 1] = one.weight[first : last + 1][: padded.size]
    share = np.arange(stride) / stride
    weight = np.zeros(padded.shape[0] + 1)
    weight[:-1] = (padded * (1.0 - share)).sum(axis=1)
    weight[1:] += (padded * share).sum(axis=1)
    if last - first == padded.size:
        weight[-1] += one.weight[last]
    index = first + stride * np.arange(weight.size)
    return one.offset + step * (one.first + index.astype(np.float64)), weight
