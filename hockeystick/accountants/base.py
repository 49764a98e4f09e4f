"""The base classes of accountants: epsilon and delta of a composition.

Infinity mass, and additive constants of losses.

Both are split off from the rest of one direction, and an answer for the rest is turned into one for
all. Let s be the probability that the sum of the losses is infinite, a the sum of the constants,
and d the profile of what is left:

    delta(eps) = s + (1 - s) d(eps - a),

with ``d(x) = 1 - e^x + e^x d'(-x)`` for x < 0, d' being the profile of the other direction.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias

from hockeystick.errors import UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics import FloatAndDecimal, down, largest_reading, least_reading, log_of, up
from hockeystick.privacy_loss import (
    Composition,
    NoAnalysisError,
    ProfileLoss,
    Terms,
    compose,
    largest_loss,
    least_largest_loss,
    merged,
)
from hockeystick.privacy_loss.core.base import NO_INFINITY_MASS

if TYPE_CHECKING:
    from hockeystick.results import Quantity


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


def composition_of(mechanism: Mechanism, accountant: str) -> Composition:
    """Return the losses of all runs of a mechanism, or raise in the name of an accountant."""
    try:
        return compose(mechanism)
    except NoAnalysisError as error:
        raise UnsupportedError(accountant, error.part, str(error)) from None


# Covers the few roundings of each step below.
_SLACK: Final = 2.0**-48
# Below this, 1 - s is far less than 1 - delta of any delta < 1, and soon no float.
_FAR: Final = -600.0
# At most this many runs have an exact infinity mass.
_MOST_EXACT_RUNS: Final = 64
# Where the loss of the rest is negative, epsilon is searched for to this relative width.
_INFINITY_NARROW: Final = 1e-8
_HALVINGS: Final = 40

AnswerAt: TypeAlias = Callable[[float], Interval]
AnswerOfTerms: TypeAlias = Callable[[Terms, float], Interval]


@dataclass(frozen=True, slots=True)
class InfinityMass:
    """The probability s of one direction: ends of ``ln(1 - s)``, and s itself for few runs.

    Where lower ends are those of other data, ``high`` is of these. The largest sum of the finite
    losses is between ``least_largest`` and ``largest``.
    """

    low: float
    high: float
    exact: FloatAndDecimal | None
    least_largest: float
    largest: float

    def epsilon(self, delta: float, rest: AnswerAt) -> Interval:
        """Return epsilon at a delta, given that of the rest at ``(delta - s) / (1 - s)``."""
        least, most = self._remaining_delta(delta)
        return Interval(
            self._epsilon_of_rest(most, rest).lower, *self._epsilon_of_rest(least, rest)[1:]
        ).ordered()

    def _epsilon_of_rest(self, remaining: float, rest: AnswerAt) -> Interval:
        if remaining < 0.0:
            return Interval.point(math.inf)
        if remaining == 0.0:
            return Interval(self.least_largest, self.largest, self.largest)
        return rest(remaining) if remaining < 1.0 else Interval.point(0.0)

    def delta(self, epsilon: float, rest: AnswerAt) -> Interval:
        """Return delta at an epsilon, given that of the rest."""
        if self.high == -math.inf:
            return Interval.point(1.0)
        inner = rest(epsilon)
        if self.exact is not None and inner.upper == 0.0:
            low, high = sorted(map(float, self.exact))
            return Interval(down(low), float(self.exact.decimal), min(up(high), 1.0))
        lower = (-math.expm1(self.high) + math.exp(self.high) * inner.lower) * (1.0 - _SLACK)
        middle = -math.expm1(self.high) + math.exp(self.high) * inner.estimate
        upper = (-math.expm1(self.low) + math.exp(self.low) * inner.upper) * (1.0 + _SLACK)
        return Interval(lower, middle, min(upper, 1.0)).ordered()

    def _remaining_delta(self, delta: float) -> tuple[float, float]:
        """Return ends of ``(delta - s) / (1 - s)``; 0 only if it is exactly that."""
        if self.exact is not None:
            asked = FloatAndDecimal.of(delta)
            remaining = sorted((d - s) / (1 - s) for d, s in zip(asked, self.exact, strict=True))
            return _outward(remaining[0], -1.0), _outward(remaining[1], 1.0)
        if self.high < _log_complement(largest_reading(delta)) * (1.0 + _SLACK):
            return -1.0, -1.0
        most_infinite = -math.expm1(self.low) * (1.0 + _SLACK)
        least_infinite = -math.expm1(self.high) * (1.0 - _SLACK)
        least = (delta - most_infinite) / math.exp(self.low) if self.low > _FAR else -1.0
        most = (delta - least_infinite) / math.exp(self.high)
        return least - _SLACK * abs(least), most + _SLACK * abs(most)


def split_infinity(terms: Terms) -> tuple[InfinityMass | None, Terms]:
    """Return the infinity mass, None where there is none, and the losses where they are finite."""
    infinite = [(loss, count) for loss, count in terms if any(loss.infinity_mass)]
    if not infinite:
        return None, terms
    masses = [(loss.infinity_mass, count) for loss, count in infinite]
    attained = [(loss.attained, count) for loss, count in infinite]
    least = [(one.infinity_mass if one else NO_INFINITY_MASS, count) for one, count in attained]
    low = math.fsum(count * min(map(_log_complement, mass)) for mass, count in masses)
    high = math.fsum(count * max(map(_log_complement, mass)) for mass, count in least)
    finite = ((loss.finite, count) for loss, count in terms)
    rest = merged([tuple((loss, count) for loss, count in finite if loss is not None)])
    return (
        InfinityMass(
            low=low * (1.0 + _SLACK),
            high=high * (1.0 - _SLACK),
            exact=_exact_mass(masses) if least == masses else None,
            least_largest=least_largest_loss(rest),
            largest=max(largest_loss(rest), 0.0),
        ),
        rest,
    )


def _exact_mass(masses: list[tuple[FloatAndDecimal, int]]) -> FloatAndDecimal | None:
    """Return s exactly, None where there are too many runs or one has infinity mass 1."""
    if sum(count for _, count in masses) > _MOST_EXACT_RUNS or any(1 in mass for mass, _ in masses):
        return None
    one = Fraction(1)
    kept = ([(1 - mass[k]) ** count for mass, count in masses] for k in (0, 1))
    return FloatAndDecimal(*(one - math.prod(two, start=one) for two in kept))


def _outward(value: Fraction, side: float) -> float:
    """Return a float beyond a number; 0 only for 0."""
    near = float(value)
    if value == 0 or (near - value) * Fraction(side) > 0:
        return near
    return math.nextafter(near, math.inf * side)


def _log_complement(mass: Fraction) -> float:
    """Return ``ln(1 - s)``, which below 1/2 keeps the digits of s, and above those of 1 - s."""
    if mass >= 1:
        return -math.inf
    if mass < 0.5:
        return math.log1p(-float(mass))
    return log_of(1 - mass)


def can_be_infinite(composition: Composition) -> bool:
    """Return whether a loss is infinite with positive probability."""
    directions = (terms for one in composition.branches for terms in (one.removing, one.adding))
    return any(
        any(loss.infinity_mass) or not are_finite(((loss, 1),))
        for direction in directions
        for loss, _ in direction
    )


def are_finite(terms: Terms) -> bool:
    """Return whether all losses known by a profile are proven to be finite."""
    return all(loss.is_bounded for loss, _ in terms if isinstance(loss, ProfileLoss))


@dataclass(frozen=True, slots=True)
class Shift:
    """The constants of one direction, between two ends, and the rest, in both directions.

    ``opposite`` is None where the rest alone does not tell the other direction.
    """

    low: float
    high: float
    rest: Terms
    opposite: Terms | None

    def delta(self, epsilon: float, read: AnswerOfTerms) -> Interval:
        """Return delta at an epsilon, given how delta of lists of losses is read."""
        near = self._at(math.nextafter(epsilon - self.high, -math.inf), read)
        far = self._at(math.nextafter(epsilon - self.low, math.inf), read)
        return Interval(far.lower, near.estimate, near.upper).ordered()

    def epsilon(self, delta: float, read: AnswerOfTerms, delta_of: AnswerOfTerms) -> Interval:
        """Return epsilon at a delta, given how both are read off lists of losses."""
        if not self.rest:
            # 1 - e^(eps - a) = delta
            most, least = (_log_complement(one(delta)) for one in (least_reading, largest_reading))
            return self._shifted(Interval(least, most, most))
        of_rest = read(self.rest, delta)
        shifted = self._shifted(of_rest)
        if of_rest.lower > 0.0 or shifted.upper == math.inf:
            return shifted
        if self.high <= 0.0:
            return Interval(0.0, shifted.estimate, shifted.upper)
        at = cache(lambda epsilon: self.delta(epsilon, delta_of))
        low, middle = _crossing(lambda epsilon: at(epsilon).lower > delta, shifted.upper)
        _, high = _crossing(lambda epsilon: at(epsilon).upper > delta, shifted.upper)
        return Interval(low, middle, high).ordered()

    def _shifted(self, found: Interval) -> Interval:
        lower, upper = found.lower + self.low, found.upper + self.high
        ends = lower - _SLACK * abs(lower), found.estimate + self.high, upper + _SLACK * abs(upper)
        return Interval(*(max(end, 0.0) for end in ends)).ordered()

    def _at(self, x: float, read: AnswerOfTerms) -> Interval:
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
    """Return neighbouring epsilons; the predicate holds at the first one, or that is 0."""
    low, high = 0.0, most
    if not above(0.0):
        return 0.0, 0.0
    for _ in range(_HALVINGS):
        if high - low <= _INFINITY_NARROW * high:
            break
        middle = 0.5 * (low + high)
        low, high = (middle, high) if above(middle) else (low, middle)
    return low, high


def split_shift(terms: Terms) -> Shift | None:
    """Return the constants and the rest, None where there are none."""
    shifts = [(ends, count) for loss, count in terms if (ends := loss.constant) is not None]
    if not shifts:
        return None
    low, high = (math.fsum(count * ends[side] for ends, count in shifts) for side in (0, 1))
    rounding = _SLACK * max(abs(low), abs(high))
    without_constant = ((loss.without_constant, count) for loss, count in terms)
    rest = merged([tuple((loss, count) for loss, count in without_constant if loss is not None)])
    return Shift(low - rounding, high + rounding, rest, _opposite(rest))


def _opposite(terms: Terms) -> Terms | None:
    turned = [(loss.opposite, count) for loss, count in terms]
    known = tuple((loss, count) for loss, count in turned if loss is not None)
    return known if len(known) == len(terms) else None


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

    def answer(
        self, composition: Composition, quantity: Quantity, value: float, digits: int | None = None
    ) -> tuple[Accountant, Interval]:
        """Return who answers, and epsilon at a delta or delta at an epsilon, to digits if given."""
        if digits is not None:
            return self, self.digits(composition, quantity, value, digits)
        ask = self.epsilon if quantity == "epsilon" else self.delta
        return self, ask(composition, value)

    def many(self, composition: Composition, quantity: Quantity, values: Sequence[float]) -> Many:
        """Return those of many answers that cost little together, each with its accountant.

        Values are those of the other quantity: deltas in (0, 1), or finite epsilons > 0. The rest
        are to be asked for alone.
        """
        return {}

    def applies(self, composition: Composition, quantity: Quantity, value: float) -> bool:
        """Return whether it may have an answer, as far as the kinds of losses tell."""
        return True

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
        mass, rest = split_infinity(terms)
        shift = split_shift(rest)

        def read(at: float) -> Interval:
            if shift is None:
                return self.epsilon_of(rest, at)
            return shift.epsilon(at, self.epsilon_of, self._delta_anywhere)

        return mass.epsilon(delta, read) if mass else read(delta)

    def _delta(self, terms: Terms, epsilon: float) -> Interval:
        mass, rest = split_infinity(terms)
        shift = split_shift(rest)

        def read(at: float) -> Interval:
            if shift is None:
                return self._delta_anywhere(rest, at)
            return shift.delta(at, self._delta_anywhere)

        return mass.delta(epsilon, read) if mass else read(epsilon)

    def _delta_anywhere(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction; beyond the largest epsilon by monotonicity."""
        if epsilon == math.inf and are_finite(terms):
            return Interval.point(0.0)
        if epsilon > LARGEST_EPSILON:
            return Interval(0.0, 0.0, self.delta_of(terms, LARGEST_EPSILON).upper)
        return self.delta_of(terms, epsilon)
