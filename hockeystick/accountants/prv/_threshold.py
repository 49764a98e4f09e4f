"""The threshold above which losses are split off as rare and large.

All here is an unproven estimate: a poor one costs width, never soundness. Where large losses are
rare, a sum is most often large because a single loss is, so that delta is about
``sum n E[(1 - exp(eps - L))+]``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.accountants.prv._points import is_atomic
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss.core.interval_masses import effective_range, merged_points

if TYPE_CHECKING:
    from hockeystick.accountants.prv._refine import LatticeTarget
    from hockeystick.kernels.series import Array
    from hockeystick.privacy_loss import CellLoss

# ln of the tail's probability over delta: round-off is relative to that probability.
_LOG_TAIL_OVER_DELTA: Final = 16.0
# The least ln of the tail's probability over delta at which splitting pays.
_LEAST_LOG_RATIO: Final = 9.0
# The masses behind a smaller delta are subnormal numbers.
_LEAST_LOG_DELTA: Final = -650.0
# The threshold is at least exp of minus this of epsilon.
_LOWEST_LOG_THRESHOLD: Final = 4.0
# ln of the largest probability of a tail that counts as rare.
_MOST_LOG_TAIL: Final = -1.0
# A tilt scales the largest loss that counts by at most exp of this.
_MOST_LIFT: Final = 4.0
# With more different losses than this none is split.
_MOST_LOSSES: Final = 16
_TINY: Final = 1e-300


class _MergedLoss(NamedTuple):
    """A loss approximated by atoms, ascending, and its number of runs."""

    at: Array
    log_p: Array
    runs: int

    def tail(self, threshold: float) -> float:
        """Return the expected number of runs whose loss is above a threshold."""
        return self.runs * float(np.exp(self.log_p[self.at > threshold]).sum())

    def tail_delta(self, epsilon: float) -> float:
        """Return the single runs' contribution to delta: ``sum n E[(1 - exp(eps - L))+]``."""
        above = self.at > epsilon
        return self.runs * float(
            (np.exp(self.log_p[above]) * -np.expm1(epsilon - self.at[above])).sum()
        )


def split_tail(target: LatticeTarget, epsilon: float | None) -> LatticeTarget | None:
    """Return the target with a threshold for the tail, None where no large losses are rare.

    Atomic losses are not split: a lattice holds their atoms exactly.
    """
    hopeless = epsilon is None and target.log_delta + _LEAST_LOG_RATIO > _MOST_LOG_TAIL
    if hopeless or len(target.upper) > _MOST_LOSSES:
        return None
    if any(is_atomic(loss) for loss, _ in target.upper):
        return None
    points = [_merged(loss, count) for loss, count in target.upper]
    log_delta = target.log_delta
    if epsilon is None:
        epsilon = _tail_epsilon(points, log_delta)
    else:
        log_delta = min(log_delta, math.log(max(sum(p.tail_delta(epsilon) for p in points), _TINY)))
    if epsilon <= 0.0 or not _LEAST_LOG_DELTA < log_delta <= _MOST_LOG_TAIL - _LEAST_LOG_RATIO:
        return None
    threshold = _threshold(points, min(log_delta + _LOG_TAIL_OVER_DELTA, _MOST_LOG_TAIL), epsilon)
    if threshold <= 0.0:
        return None
    least = log_delta + math.log(target.tolerance) - math.log(target.runs)
    farthest = max(threshold, *(effective_range(loss, least)[1] for loss, _ in target.upper))
    tilt = min(1.0 / threshold, _MOST_LIFT / farthest)
    return target._replace(tilt=tilt, log_delta=log_delta, threshold=threshold)


def _merged(loss: CellLoss, count: int) -> _MergedLoss:
    """Return a loss approximated by atoms."""
    at, log_p = merged_points(loss)
    order = np.argsort(at)
    return _MergedLoss(at[order], log_p[order], count)


def _tail_epsilon(points: list[_MergedLoss], log_delta: float) -> float:
    """Return the epsilon at which the single runs' contribution alone is a delta."""

    def less(epsilon: float) -> float:
        return log_delta - math.log(
            max(sum(p.tail_delta(max(epsilon, 0.0)) for p in points), _TINY)
        )

    if less(0.0) >= 0.0:
        return 0.0
    return increasing_root(less, 1e-3, tolerance=1e-6)


def _threshold(points: list[_MergedLoss], log_mass: float, epsilon: float) -> float:
    """Return the threshold above which the tail has a probability, 0 if beyond epsilon."""

    def less(log_threshold: float) -> float:
        tail = sum(p.tail(math.exp(log_threshold)) for p in points)
        return log_mass - math.log(max(tail, _TINY))

    high = math.log(epsilon)
    low = high - _LOWEST_LOG_THRESHOLD
    if less(high) <= 0.0:
        return 0.0
    if less(low) >= 0.0:
        return math.exp(low)
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if less(middle) >= 0.0 else (middle, high)
    return math.exp(high)
