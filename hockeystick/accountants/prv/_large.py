"""Other ways to ask where a tilt does not bring out what matters: which losses count as large.

All here is for steering: an estimate that is off costs width, never soundness. That a single run
goes far is the likeliest way of going far where large losses are rare, so that delta is about
``sum n E[(1 - exp(eps - L))+]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick._solve import increasing_root, minimum
from hockeystick.accountants._orders import log_kappa
from hockeystick.losses._cells import points_of, reach

if TYPE_CHECKING:
    from hockeystick._kernels.series import Array
    from hockeystick.accountants.prv._refine import Question
    from hockeystick.losses import CellLoss

# How much likelier than delta large losses are, as logarithms: the rarer, the less is rounded off.
_SHARES: Final = (14.0, 18.0, 23.0, 27.0)
# They are not rare beyond this.
_OFTEN: Final = -1.0
# Round-off hides a smaller delta than this if nothing is tilted.
_FAINTEST: Final = -27.0
# With more different losses than this none is looked at.
_MOST_LOSSES: Final = 16
_FARTHEST: Final = 1e9
# A tilt that is hardly any lifts the farthest loss by no more than exp of this.
_STEEP: Final = 5.0
_TINY: Final = 1e-300


class _Points(NamedTuple):
    """A loss merged to points, ascending, and how often it runs."""

    at: Array
    log_p: Array
    runs: int

    def tail(self, threshold: float) -> float:
        """Return how likely a run is above a threshold, over all runs."""
        return self.runs * float(np.exp(self.log_p[self.at > threshold]).sum())

    def jumps(self, epsilon: float) -> float:
        """Return what single runs contribute to delta."""
        above = self.at > epsilon
        return self.runs * float(
            (np.exp(self.log_p[above]) * -np.expm1(epsilon - self.at[above])).sum()
        )

    def small(self, threshold: float) -> Callable[[float], float]:
        """Return ``n K(order)`` of what lies below a threshold, as a function."""
        kept = self.at <= threshold
        at, log_p = self.at[kept], self.log_p[kept]

        def moment(order: float) -> float:
            exponent = log_p + order * at
            top = float(exponent.max(initial=-math.inf))
            if top == -math.inf:
                return -math.inf
            return self.runs * (top + math.log(float(np.exp(exponent - top).sum())))

        return moment


def apart(question: Question, epsilon: float | None, log_hidden: float) -> Question | None:
    """Return the question with rare large losses apart, None where they are not what matters.

    The threshold is the highest of a few below which all outcomes without a large loss contribute
    no more than a share ``exp(log_hidden)`` of delta.
    """
    if len(question.upper) > _MOST_LOSSES:
        return None
    points = [_points(loss, count) for loss, count in question.upper]
    log_delta = question.log_delta
    if epsilon is None:
        epsilon = _jump(points, log_delta)
    else:
        log_delta = min(log_delta, math.log(max(sum(p.jumps(epsilon) for p in points), _TINY)))
    for share in _SHARES:
        if epsilon <= 0.0 or log_delta + share > _OFTEN:
            return None
        threshold = _above(points, log_delta + share, epsilon)
        if threshold and _hidden(points, threshold, epsilon) < log_delta + log_hidden:
            tilt = 1.0 / threshold
            return question._replace(tilt=tilt, log_delta=log_delta, threshold=threshold)
    return None


def flat(question: Question) -> Question | None:
    """Return the question with hardly any tilt, None where round-off would hide the answer."""
    if question.log_delta < _FAINTEST or len(question.upper) > _MOST_LOSSES:
        return None
    least = question.log_delta + math.log(question.tolerance) - math.log(question.runs)
    farthest = max(reach(loss, least)[1] for loss, _ in question.upper)
    tilt = _STEEP / farthest if 0.0 < farthest < _FARTHEST else math.inf
    return question._replace(tilt=tilt) if tilt < 0.5 * question.tilt else None


def _points(loss: CellLoss, count: int) -> _Points:
    """Return a loss merged to points."""
    at, log_p = points_of(loss)
    order = np.argsort(at)
    return _Points(at[order], log_p[order], count)


def _jump(points: list[_Points], log_delta: float) -> float:
    """Return the epsilon that single runs alone have at a delta."""

    def less(epsilon: float) -> float:
        return log_delta - math.log(max(sum(p.jumps(max(epsilon, 0.0)) for p in points), _TINY))

    if less(0.0) >= 0.0:
        return 0.0
    return increasing_root(less, 1e-3, tolerance=1e-6)


def _above(points: list[_Points], log_mass: float, epsilon: float) -> float:
    """Return the threshold above which there is so much, 0 where that is beyond epsilon."""

    def less(log_threshold: float) -> float:
        tail = sum(p.tail(math.exp(log_threshold)) for p in points)
        return log_mass - math.log(max(tail, _TINY))

    end = math.log(epsilon)
    if less(end) <= 0.0 or less(end - 12.0) >= 0.0:
        return 0.0
    low, high = end - 12.0, end
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if less(middle) >= 0.0 else (middle, high)
    return math.exp(high)


def _hidden(points: list[_Points], threshold: float, epsilon: float) -> float:
    """Return Chernoff's estimate of what outcomes without a large loss contribute to delta."""
    moments = [p.small(threshold) for p in points]

    def bound(log_order: float) -> float:
        order = math.exp(log_order)
        return math.fsum(m(order) for m in moments) - order * epsilon + log_kappa(order)

    start = -math.log(epsilon)
    return bound(minimum(bound, start, start + 8.0, tolerance=0.1))
