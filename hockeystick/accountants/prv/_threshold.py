"""Which losses count as large, where a tilt does not bring out what matters.

All here is an unproven guess: an estimate that is off costs width, never soundness. That a single
run goes far is the likeliest way of going far where large losses are rare, so that delta is about
``sum n E[(1 - exp(eps - L))+]``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.accountants.prv._points import is_atomic
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss.core.interval_masses import points_of, reach

if TYPE_CHECKING:
    from hockeystick.accountants.prv._refine import Question
    from hockeystick.kernels.series import Array
    from hockeystick.privacy_loss import CellLoss

# How much likelier than delta large losses are, as a logarithm: the rarer, the less is rounded off.
_SHARE: Final = 16.0
# With a delta that is not so much smaller than certain, nothing is rounded off that matters.
_LEAST: Final = 9.0
# A smaller delta is that of masses which are too small to be normal numbers.
_FAINTEST: Final = -650.0
# A threshold is no less than exp of minus this of epsilon.
_DEEPEST: Final = 4.0
# They are not rare beyond this.
_OFTEN: Final = -1.0
# Of large losses, a tilt lifts the farthest that counts by no more than exp of this.
_STEEP: Final = 4.0
# With more different losses than this none is looked at.
_MOST_LOSSES: Final = 16
_TINY: Final = 1e-300


class _Points(NamedTuple):
    """A loss merged to points, ascending, and how often it runs."""

    at: Array
    log_p: Array
    runs: int

    def tail(self, threshold: float) -> float:
        """Return how likely a run is above a threshold, over all runs."""
        return self.runs * float(np.exp(self.log_p[self.at > threshold]).sum())

    def tail_delta(self, epsilon: float) -> float:
        """Return the single runs' contribution to delta: ``sum n E[(1 - exp(eps - L))+]``."""
        above = self.at > epsilon
        return self.runs * float(
            (np.exp(self.log_p[above]) * -np.expm1(epsilon - self.at[above])).sum()
        )


def split_tail(question: Question, epsilon: float | None) -> Question | None:
    """Return the question with its rare large losses separate, None where none are rare.

    Atoms are left on the lattice that suits them.
    """
    hopeless = epsilon is None and question.log_delta + _LEAST > _OFTEN
    if hopeless or len(question.upper) > _MOST_LOSSES:
        return None
    if any(is_atomic(loss) for loss, _ in question.upper):
        return None
    points = [_points(loss, count) for loss, count in question.upper]
    log_delta = question.log_delta
    if epsilon is None:
        epsilon = _tail_epsilon(points, log_delta)
    else:
        log_delta = min(log_delta, math.log(max(sum(p.tail_delta(epsilon) for p in points), _TINY)))
    if epsilon <= 0.0 or not _FAINTEST < log_delta <= _OFTEN - _LEAST:
        return None
    threshold = _above(points, min(log_delta + _SHARE, _OFTEN), epsilon)
    if threshold <= 0.0:
        return None
    least = log_delta + math.log(question.tolerance) - math.log(question.runs)
    farthest = max(threshold, *(reach(loss, least)[1] for loss, _ in question.upper))
    tilt = min(1.0 / threshold, _STEEP / farthest)
    return question._replace(tilt=tilt, log_delta=log_delta, threshold=threshold)


def _points(loss: CellLoss, count: int) -> _Points:
    """Return a loss merged to points."""
    at, log_p = points_of(loss)
    order = np.argsort(at)
    return _Points(at[order], log_p[order], count)


def _tail_epsilon(points: list[_Points], log_delta: float) -> float:
    """Return the epsilon that single runs alone have at a delta."""

    def less(epsilon: float) -> float:
        return log_delta - math.log(
            max(sum(p.tail_delta(max(epsilon, 0.0)) for p in points), _TINY)
        )

    if less(0.0) >= 0.0:
        return 0.0
    return increasing_root(less, 1e-3, tolerance=1e-6)


def _above(points: list[_Points], log_mass: float, epsilon: float) -> float:
    """Return the threshold above which there is so much, 0 where that is beyond epsilon."""

    def less(log_threshold: float) -> float:
        tail = sum(p.tail(math.exp(log_threshold)) for p in points)
        return log_mass - math.log(max(tail, _TINY))

    high = math.log(epsilon)
    low = high - _DEEPEST
    if less(high) <= 0.0:
        return 0.0
    if less(low) >= 0.0:
        return math.exp(low)
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if less(middle) >= 0.0 else (middle, high)
    return math.exp(high)
