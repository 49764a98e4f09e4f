"""Constants that a loss is larger by, set apart: of outcomes that only one distribution has.

With d the profile of the rest and a the sum of the constants, ``delta(eps) = d(eps - a)``; for a
negative argument x, ``d(x) = 1 - e^x + e^x d'(-x)`` with d' the profile of the other direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from hockeystick.accountants._cost import Terms
from hockeystick.accountants._interval import Interval
from hockeystick.privacy_loss import PartlyShownLoss

# Covers the few roundings of each step below.
_SLACK: Final = 2.0**-48
# So narrow an epsilon is searched for where the loss of the rest is negative.
_NARROW: Final = 1e-8
_HALVINGS: Final = 40

Reading: TypeAlias = Callable[[Terms, float], Interval]


@dataclass(frozen=True, slots=True)
class Shifted:
    """The constants of one direction, between two ends, and the rest, in both directions.

    ``opposite`` is None where the rest alone does not tell the other direction.
    """

    low: float
    high: float
    rest: Terms
    opposite: Terms | None

    def delta(self, epsilon: float, read: Reading) -> Interval:
        """Return delta at an epsilon, delta of lists of losses being read."""
        near = self._at(math.nextafter(epsilon - self.high, -math.inf), read)
        far = self._at(math.nextafter(epsilon - self.low, math.inf), read)
        return Interval(far.lower, near.estimate, near.upper).ordered()

    def epsilon(self, delta: float, read: Reading, delta_of: Reading) -> Interval:
        """Return epsilon at a delta, both of lists of losses being read."""
        of_rest = read(self.rest, delta)
        ends = (of_rest.lower + self.low, of_rest.estimate + self.high, of_rest.upper + self.high)
        upper = max(ends[2] + _SLACK * abs(ends[2]), 0.0)
        if of_rest.lower > 0.0 or self.high <= 0.0 or upper == math.inf:
            lower = ends[0] - _SLACK * abs(ends[0]) if of_rest.lower > 0.0 else 0.0
            return Interval(max(lower, 0.0), max(ends[1], 0.0), upper).ordered()
        at = cache(lambda epsilon: self.delta(epsilon, delta_of))
        low, middle = _crossing(lambda epsilon: at(epsilon).lower > delta, upper)
        _, high = _crossing(lambda epsilon: at(epsilon).upper > delta, upper)
        return Interval(low, middle, high).ordered()

    def _at(self, x: float, read: Reading) -> Interval:
        """Return the rest's delta at an epsilon, negative ones included."""
        if x >= 0.0:
            return read(self.rest, x) if self.rest else Interval.point(0.0)
        if self.opposite is None:
            at_zero = read(self.rest, 0.0)
            other = Interval(0.0, at_zero.estimate, at_zero.upper)
        else:
            other = read(self.opposite, -x) if self.opposite else Interval.point(0.0)
        share, less = math.exp(x), -math.expm1(x)
        lower, middle, upper = (less + share * end for end in other)
        return Interval(lower * (1.0 - _SLACK), middle, min(upper * (1.0 + _SLACK), 1.0)).ordered()


def _crossing(above: Callable[[float], bool], most: float) -> tuple[float, float]:
    """Return epsilons next to each other: at the first delta is above what is asked, or it is 0."""
    low, high = 0.0, most
    if not above(0.0):
        return 0.0, 0.0
    for _ in range(_HALVINGS):
        if high - low <= _NARROW * high:
            break
        middle = 0.5 * (low + high)
        low, high = (middle, high) if above(middle) else (low, middle)
    return low, high


def split_shifts(terms: Terms) -> Shifted | None:
    """Return the constants apart from the rest, None where there are none."""
    moved = [(loss, count) for loss, count in terms if isinstance(loss, PartlyShownLoss)]
    if not moved:
        return None
    counts = {loss: n for loss, n in terms if not isinstance(loss, PartlyShownLoss)}
    for loss, count in moved:
        if loss.common is not None:
            counts[loss.common] = counts.get(loss.common, 0) + count
    rest = tuple(counts.items())
    ends = [(loss.shift, count) for loss, count in moved]
    low, high = (math.fsum(count * end[side] for end, count in ends) for side in (0, 1))
    rounding = _SLACK * max(abs(low), abs(high))
    return Shifted(low - rounding, high + rounding, rest, _opposite(rest))


def _opposite(terms: Terms) -> Terms | None:
    """Return the losses in the other direction, None where one of them does not tell it."""
    turned = [(loss.opposite, count) for loss, count in terms]
    known = tuple((loss, count) for loss, count in turned if loss is not None)
    return known if len(known) == len(terms) else None
