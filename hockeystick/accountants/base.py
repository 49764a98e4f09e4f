"""What every accountant is: a way of reading the cost of a plan."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from hockeystick.accountants._cost import Cost, Counted
from hockeystick.errors import UnsupportedError

if TYPE_CHECKING:
    from hockeystick.results import Quantity

Kind = Literal["exact", "bound", "approximation"]


class Interval(NamedTuple):
    """Proven ends and an estimate between them; floats, or mpmath numbers."""

    lower: float
    estimate: float
    upper: float

    @classmethod
    def point(cls, value: float) -> Interval:
        """Return an interval of one known number."""
        return cls(value, value, value)

    def ordered(self) -> Interval:
        """Return the same with the estimate moved inside."""
        return Interval(self.lower, min(max(self.estimate, self.lower), self.upper), self.upper)


class Accountant(ABC):
    """A way of reading the cost of a plan as an epsilon or a delta.

    ``kind`` says what its answers are: "exact" (an interval around the truth as narrow as floats
    allow), "bound" (an interval whose upper end has a theorem but is not tight) or
    "approximation" (a number without any guarantee). ``has_digits`` says whether it can answer in
    arbitrary precision.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]
    summary: ClassVar[str]
    has_digits: ClassVar[bool] = False

    @abstractmethod
    def epsilon(self, cost: Cost, delta: float) -> Interval:
        """Return epsilon at a delta in (0, 1)."""

    @abstractmethod
    def delta(self, cost: Cost, epsilon: float) -> Interval:
        """Return delta at a finite epsilon >= 0."""

    def digits(self, cost: Cost, quantity: Quantity, value: float, digits: int) -> Interval:
        """Return epsilon (at a delta) or delta (at an epsilon) to so many digits, as mpf."""
        raise self.refuse("the plan", "it has no arbitrary-precision form; use accountant='auto'")

    def refuse(self, path: str, reason: str) -> UnsupportedError:
        """Return the error that says why this accountant has no answer."""
        return UnsupportedError(self.name, path, reason)


class DirectedAccountant(Accountant):
    """An accountant that reads each direction on its own; the worse one is the answer."""

    @abstractmethod
    def epsilon_of(self, terms: Counted, delta: float) -> Interval:
        """Return epsilon of one direction."""

    @abstractmethod
    def delta_of(self, terms: Counted, epsilon: float) -> Interval:
        """Return delta of one direction."""

    def epsilon(self, cost: Cost, delta: float) -> Interval:
        """Return the larger of the two directions."""
        return worse([self.epsilon_of(terms, delta) for terms in cost.directions])

    def delta(self, cost: Cost, epsilon: float) -> Interval:
        """Return the larger of the two directions."""
        return worse([self.delta_of(terms, epsilon) for terms in cost.directions])


def worse(intervals: list[Interval]) -> Interval:
    """Return the interval that holds the larger of the numbers that the given ones hold."""
    return Interval(*(max(ends) for ends in zip(*intervals, strict=True)))


def up(value: float) -> float:
    """Return the next float above."""
    return math.nextafter(value, math.inf)


def down(value: float) -> float:
    """Return the next float below, at least 0."""
    return max(math.nextafter(value, -math.inf), 0.0)
