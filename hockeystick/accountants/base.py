"""The base classes of accountants: epsilon and delta of a composition."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from hockeystick.accountants.infinity import are_finite, split_infinity, split_shift
from hockeystick.accountants.interval import Interval, worse
from hockeystick.errors import UnsupportedError
from hockeystick.privacy_loss import Composition, Terms

if TYPE_CHECKING:
    from hockeystick.results import Quantity

# Beyond this epsilon only the monotonicity of delta is used.
LARGEST_EPSILON: Final = 1e15

# The relative width that an accountant aims for by default.
TOLERANCE: Final = 1e-4

Kind = Literal["exact", "bound", "approximation"]


# The accountant and the answer, by the value that is asked about.
Many: TypeAlias = "dict[float, tuple[Accountant, Interval]]"


class Accountant(ABC):
    """Epsilon and delta of a composition of losses, by one theorem or method.

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
        """Return epsilon (at a delta) or delta (at an epsilon) to a number of digits, as mpf."""
        raise self.refuse("the plan", "it has no arbitrary-precision form; use accountant='auto'")

    def many(self, composition: Composition, quantity: Quantity, values: Sequence[float]) -> Many:
        """Return those of many answers that cost little together, each with its accountant.

        Values are those of the other quantity: deltas in (0, 1), or finite epsilons > 0. The rest
        are to be asked for alone.
        """
        return {}

    def within(self, tolerance: float) -> Accountant:
        """Return the accountant with another tolerance, or itself where it has none."""
        return self

    def refuse(self, path: str, reason: str) -> UnsupportedError:
        """Return the error that says why this accountant has no answer."""
        return UnsupportedError(self.name, path, reason)


class DirectedAccountant(Accountant):
    """An accountant that reads each direction on its own; the worse one is the answer.

    It sees finite losses without constants: both are split off before it is asked.
    """

    @abstractmethod
    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        """Return epsilon of one direction."""

    @abstractmethod
    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction."""

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        return worse([self._epsilon(terms, delta) for terms in composition.directions])

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        return worse([self._delta(terms, epsilon) for terms in composition.directions])

    def _epsilon(self, terms: Terms, delta: float) -> Interval:
        """Return epsilon of one direction."""
        mass, rest = split_infinity(terms)
        read = partial(self._epsilon_finite, rest)
        return mass.epsilon(delta, read) if mass else read(delta)

    def _epsilon_finite(self, terms: Terms, delta: float) -> Interval:
        """Return epsilon of one direction whose losses are finite."""
        shift = split_shift(terms)
        if shift is None:
            return self.epsilon_of(terms, delta)
        return shift.epsilon(delta, self.epsilon_of, self._delta_anywhere)

    def _delta(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction."""
        mass, rest = split_infinity(terms)
        read = partial(self._delta_finite, rest)
        return mass.delta(epsilon, read) if mass else read(epsilon)

    def _delta_finite(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction whose losses are finite."""
        shift = split_shift(terms)
        if shift is None:
            return self._delta_anywhere(terms, epsilon)
        return shift.delta(epsilon, self._delta_anywhere)

    def _delta_anywhere(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction; beyond the largest epsilon by monotonicity."""
        if epsilon == math.inf and are_finite(terms):
            return Interval.point(0.0)
        if epsilon > LARGEST_EPSILON:
            return Interval(0.0, 0.0, self.delta_of(terms, LARGEST_EPSILON).upper)
        return self.delta_of(terms, epsilon)
