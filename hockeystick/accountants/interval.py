"""The answer of an accountant: proven ends, and an estimate between them."""

from __future__ import annotations

import math
from typing import Final, NamedTuple, final

from hockeystick.numerics import up

# An interval of this relative width is narrow at any tolerance.
_NARROW: Final = 1e-9


class Interval(NamedTuple):
    """Proven ends and an estimate between them; floats, or mpmath numbers."""

    lower: float
    estimate: float
    upper: float

    @classmethod
    def point(cls, value: float) -> Interval:
        """Return an interval of one known number."""
        return cls(value, value, value)

    @property
    def relative_width(self) -> float:
        """The width over the upper end: 0 for a single number, 1 where nothing is known."""
        if self.upper <= self.lower:
            return 0.0
        return float((self.upper - self.lower) / self.upper) if self.upper < math.inf else 1.0

    def is_narrow(self, tolerance: float) -> bool:
        """Return whether the relative width is as asked, or no float lies between the ends.

        The latter is so where delta is below all floats.
        """
        return self.relative_width <= max(tolerance, _NARROW) or up(self.lower) >= self.upper

    def within(self, other: Interval) -> Interval:
        """Return the intersection of both intervals; the estimate is this one's, moved inside."""
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        return Interval(lower, self.estimate, upper).ordered()

    def ordered(self) -> Interval:
        """Return the same with the estimate moved inside."""
        return Interval(self.lower, min(max(self.estimate, self.lower), self.upper), self.upper)


@final
class SettledInterval(Interval):
    """An interval between an attained and a dominating pair, both of whose ends are sharp.

    However wide it is, no accountant narrows it: it is narrow at any tolerance.
    """

    __slots__ = ()

    def is_narrow(self, tolerance: float) -> bool:
        """Return True: what is left open is what the two pairs leave open."""
        return True


def worse(intervals: list[Interval]) -> Interval:
    """Return the interval that holds the larger of the numbers that the given ones hold.

    It is settled where all of them are.
    """
    if len(intervals) == 1:
        return intervals[0]
    settled = all(isinstance(one, SettledInterval) for one in intervals)
    kind = SettledInterval if settled else Interval
    return kind(*(max(ends) for ends in zip(*intervals, strict=True)))
