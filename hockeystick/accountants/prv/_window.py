"""An interval that holds a tilted sum but for a given mass on either side (Chernoff)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.numerics.roots import minimum

if TYPE_CHECKING:
    from hockeystick.accountants.prv._discretise import TiltedMasses
    from hockeystick.kernels.series import Array

# The approximate number of points that moments are taken over.
_COARSE_POINTS: Final = 256
_ROUNDING: Final = 1e-12


class Window(NamedTuple):
    """Two ends, and a bound on the tilted mass that lies outside them."""

    low: float
    high: float
    outside: float


def window(weights: Sequence[tuple[TiltedMasses, int]], step: float, log_outside: float) -> Window:
    """Return the interval that holds the sum but for ``exp(log_outside)`` on either side."""
    known = coarsened(weights, step)
    start = -0.5 * math.log(max(known.variance, 1e-300))
    ends, outside = [], 0.0
    for side in (-1.0, 1.0):

        def needed(log_s: float, side: float = side) -> float:
            s = math.exp(log_s)
            return (known.log_moment(side * s) - log_outside) / s

        best = minimum(needed, start - 8.0, start + 10.0, tolerance=0.1)
        farthest, reached = known.farthest(side), needed(best) * (1.0 + 1e-9)
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

    def log_moment(self, s: float) -> float:
        """Return ``ln E exp(s S)`` of the sum S, rounded up."""
        exponent = np.where(self.weight > 0.0, s * self.point, -math.inf)
        top = exponent.max(axis=1)
        sums = (self.weight * np.exp(exponent - top[:, None])).sum(axis=1)
        values = top + np.log(sums) + _ROUNDING * (1.0 + np.abs(top))
        return float((self.runs * values).sum())


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
