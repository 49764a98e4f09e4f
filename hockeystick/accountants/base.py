"""What every accountant is: a way of reading the composition of a plan."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeVar

from hockeystick.accountants._cost import Composition, Terms
from hockeystick.accountants._failed import Failed, are_finite, split_failures
from hockeystick.accountants._interval import Interval, worse
from hockeystick.accountants._revealed import Reading, Revealed, split
from hockeystick.accountants._shifted import split_shifts
from hockeystick.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hockeystick.results import Quantity

# Beyond this epsilon only the monotonicity of delta is used.
_FARTHEST: Final = 1e15

# The relative width that an accountant goes for unless asked for another.
TOLERANCE: Final = 1e-4

_Part = TypeVar("_Part")

Kind = Literal["exact", "bound", "approximation"]


class Accountant(ABC):
    """A way of reading the composition of a plan as an epsilon or a delta.

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
    def epsilon(self, composition: Composition, delta: float) -> Interval:
        """Return epsilon at a delta in (0, 1)."""

    @abstractmethod
    def delta(self, composition: Composition, epsilon: float) -> Interval:
        """Return delta at a finite epsilon >= 0."""

    def digits(
        self, composition: Composition, quantity: Quantity, value: float, digits: int
    ) -> Interval:
        """Return epsilon (at a delta) or delta (at an epsilon) to so many digits, as mpf."""
        raise self.refuse("the plan", "it has no arbitrary-precision form; use accountant='auto'")

    def within(self, tolerance: float) -> Accountant:
        """Return the accountant that goes for such a relative width, where that is a choice."""
        return self

    def refuse(self, path: str, reason: str) -> UnsupportedError:
        """Return the error that says why this accountant has no answer."""
        return UnsupportedError(self.name, path, reason)


class DirectedAccountant(Accountant):
    """An accountant that reads each direction on its own; the worse one is the answer.

    Failures and releases without noise are set apart before it is asked: it sees finite losses.
    """

    @abstractmethod
    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        """Return epsilon of one direction."""

    @abstractmethod
    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction."""

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        """Return the larger of the two directions."""
        of_all = partial(_apart, split_failures, Failed.epsilon, self._epsilon_finite)
        return worse([of_all(terms, delta) for terms in composition.directions])

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        """Return the larger of the two directions."""
        of_all = partial(_apart, split_failures, Failed.delta, self._delta_finite)
        return worse([of_all(terms, epsilon) for terms in composition.directions])

    def _epsilon_finite(self, terms: Terms, delta: float) -> Interval:
        """Return epsilon of one direction without failures."""
        shifted = split_shifts(terms)
        read = partial(_apart, split, Revealed.epsilon, self.epsilon_of)
        if shifted is None:
            return read(terms, delta)
        return shifted.epsilon(delta, read, self._delta_finite)

    def _delta_finite(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction without failures."""
        shifted = split_shifts(terms)
        read = partial(_apart, split, Revealed.delta, self._delta_anywhere)
        return read(terms, epsilon) if shifted is None else shifted.delta(epsilon, read)

    def _delta_anywhere(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction; far out only that it falls is used."""
        if epsilon == math.inf and are_finite(terms):
            return Interval.point(0.0)
        if epsilon > _FARTHEST:
            return Interval(0.0, 0.0, self.delta_of(terms, _FARTHEST).upper)
        return self.delta_of(terms, epsilon)


def _apart(
    split: Callable[[Terms], tuple[_Part | None, Terms]],
    combined: Callable[[_Part, float, Reading], Interval],
    read: Callable[[Terms, float], Interval],
    terms: Terms,
    value: float,
) -> Interval:
    """Return one direction's answer, what is split off set apart from the rest, which is read."""
    part, rest = split(terms)
    of_rest = partial(read, rest)
    return combined(part, value, of_rest) if part else of_rest(value)
