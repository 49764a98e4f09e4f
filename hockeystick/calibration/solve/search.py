"""One search for every parameter and target: walk to the other side of the limit, then close in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from hockeystick.calibration.solve.axis import Axis
from hockeystick.calibration.solve.goals import Achieved, Goal
from hockeystick.errors import (
    HockeystickError,
    IncompatibleError,
    InfeasibleError,
    UnsupportedError,
)
from hockeystick.mechanisms import Mechanism, Plan
from hockeystick.numerics.roots import increasing_root

# Steps of a walk before the end of the domain is asked, and the longest step: far out, plans may
# take long to account for, or have loose bounds, and the limit would be missed on the way there.
_PATIENCE: Final = 3
_LONGEST: Final = math.log(4.0)
_TINY: Final = 1e-3
_STEADY: Final = 12
_STEPS: Final = 100
# Positions at least this far apart must not contradict each other.
_RIPPLE: Final = 0.01
_NUDGE: Final = 1e-300
# Where the excess is so many times the first stride, it is a better one.
_FAR: Final = 8.0
# A change of the excess below this says nothing.
_CHANGE: Final = 1e-7
# So many widths of an interval further on, a target is as a rule provably missed; if not too wide.
_BEYOND: Final = 4.0
_WIDE: Final = 0.5


class Evaluation(NamedTuple):
    """One value of the parameter, and what is proven of the plan there; None where nothing is."""

    x: float
    answer: Achieved | None
    excess: float
    meets: bool
    violates: bool


class Bracket(NamedTuple):
    """A value that meets the target, and one further on that is not proven to."""

    inside: Evaluation
    outside: Evaluation | None


@dataclass(slots=True)
class Search:
    """The search for the last value of a parameter that meets a target.

    Args:
        axis: The parameter.
        goal: The target.
        after: Returns the plan to be read, what was spent before included.
        tolerance: How far apart the ends of a bracket of real values may be, relative to them.
    """

    axis: Axis
    goal: Goal
    after: Callable[[Mechanism], Mechanism]
    tolerance: float
    trials: dict[float, Evaluation] = field(default_factory=dict)
    evaluations: int = 0
    _answers: dict[Mechanism, tuple[Mechanism, Achieved | None]] = field(default_factory=dict)
    _reason: HockeystickError | None = None

    def run(self, start: float, stride: float) -> Bracket:
        """Return where the target is met last, beginning somewhere with a first stride.

        Raises:
            InfeasibleError: If no value meets it, or none but that at which nothing is run.
            IncompatibleError: If the parameter has no influence, or is found not to be monotone.
        """
        first = self.look(start)
        other = self._missed(first, stride) or self._other_side(first, stride)
        if other is None:
            if self._reason is not None and not self._says_something:
                raise self._reason
            if not first.meets:
                raise self._infeasible()
            return Bracket(self._last(first), None)
        found = self._sharpened(*((first, other) if first.meets else (other, first)))
        self._refuse_contradictions(found)
        self._refuse_unknown(found)
        self._refuse_nothing(found)
        return found

    def look(self, x: float) -> Evaluation:
        """Return what is proven at a value, from memory where it was asked before."""
        if x not in self.trials:
            answer = self._read(self.axis.make(x))
            if answer is None:
                self.trials[x] = Evaluation(x, None, math.inf, False, False)
            else:
                meets, goal = self.goal.meets(answer), self.goal
                excess = goal.excess(answer)
                excess = min(excess, -_NUDGE) if meets else max(excess, _NUDGE)
                self.trials[x] = Evaluation(x, answer, excess, meets, goal.violates(answer))
        return self.trials[x]

    @property
    def _says_something(self) -> bool:
        """Return whether a plan that was looked at has a finite bound of the quantity."""
        return any(one.answer is not None and one.excess < math.inf for one in self.trials.values())

    def _read(self, plan: Mechanism) -> Achieved | None:
        """Return what is proven of a plan, once for all plans that come down to the same."""
        key = plan.mechanism if isinstance(plan, Plan) else plan
        if key not in self._answers:
            self.evaluations += 1
            try:
                self._answers[key] = plan, self.goal.read(self.after(plan))
            except (IncompatibleError, UnsupportedError) as error:
                # The first is asked of the number that the plan came with.
                self._reason = self._reason or error
                self._answers[key] = plan, None
        return self._answers[key][1]

    def achieved(self, x: float) -> Achieved:
        """Return what is proven at a value, read off that very plan, whose words it has."""
        plan = self.axis.make(x)
        key = plan.mechanism if isinstance(plan, Plan) else plan
        asked, answer = self._answers.get(key, (plan, None))
        return answer if asked == plan and answer else self.goal.read(self.after(plan))

    def _missed(self, first: Evaluation, stride: float) -> Evaluation | None:
        """Return the next value if that closes the search: it is cheaper to refute than to read."""
        x = self.axis.shifted(first.x, -self.axis.safer * stride)
        if not first.meets or x == first.x or not self._are_close(first.x, x):
            return None
        plan = self.after(self.axis.make(x))
        self.evaluations += 1
        if not self.goal.misses(plan):
            return None
        self.trials[x] = Evaluation(x, None, math.inf, False, True)
        return self.trials[x]

    def _other_side(self, first: Evaluation, stride: float) -> Evaluation | None:
        """Return a value with the other verdict, to whichever side it is; None if there is none."""
        toward = -self.axis.safer if first.meets else self.axis.safer
        found = self._walk(first, toward * stride)
        if found is not None and found.meets != first.meets:
            return found
        if found is not None and self._moved_on(first, found):
            return None
        back = self._walk(first, -toward * stride)
        if back is not None and back.meets != first.meets:
            return back
        if found is not None and back is not None and not self._moved_on(first, back):
            if first.answer is None and self._reason is not None:
                raise self._reason
            self._refuse_constant()
        if found is None and (back is None or not self._moved_on(first, back)):
            self._refuse_ripples("it costs more to either side of", first.x)
        return None

    def _walk(self, first: Evaluation, stride: float) -> Evaluation | None:
        """Return the first value along the way with the other verdict, or the end of the domain.

        None where the way leads away from the limit.
        """
        near, steps, unsure = first, 0, False
        if _FAR * abs(stride) < abs(first.excess) < math.inf:
            stride = math.copysign(min(abs(first.excess), _LONGEST), stride)
        while steps < _STEPS:
            x = self.axis.shifted(near.x, stride)
            if x == near.x:
                return near
            far = self.look(x)
            if far.meets != first.meets:
                return far
            if self._is_worse(near, far):
                if near is first or (unsure and self._is_worse(first, far)):
                    return None
                self._refuse_a_turn(near, far)
            near, steps = far, steps + 1
            if steps == _PATIENCE and not first.meets:
                end = self.look(self.axis.high if stride > 0.0 else self.axis.low)
                # So far out a bound may be loose: only a proof says that the way leads away.
                unsure = self._is_worse(first, end) and not self._provably_worse(first, end)
                if not (end.meets or end.answer is None or unsure):
                    return None if self._is_worse(first, end) else end
            stride *= 32.0 if abs(stride) < _TINY else 2.0
            if steps < _STEADY:
                stride = math.copysign(min(abs(stride), _LONGEST), stride)
        return near

    def _refuse_a_turn(self, near: Evaluation, far: Evaluation) -> None:
        """Raise if a way that led towards the limit provably leads away from it."""
        one, other = (near, far) if near.meets else (far, near)
        if one.answer is None or other.answer is None:
            return
        if self.goal.costs_more(one.answer, other.answer):
            self._refuse_ripples("its influence turns near", near.x)

    def _is_worse(self, near: Evaluation, far: Evaluation) -> bool:
        """Return whether a step leads away from the limit, by more than ripples and round-off."""
        if near.answer is None or far.answer is None:
            return False
        away = near.excess - far.excess if near.meets else far.excess - near.excess
        length = self.axis.position(far.x) - self.axis.position(near.x)
        return abs(length) > _RIPPLE and away > _CHANGE

    def _provably_worse(self, near: Evaluation, far: Evaluation) -> bool:
        """Return whether a value provably costs more than another one."""
        if near.answer is None or far.answer is None:
            return False
        return self.goal.costs_more(far.answer, near.answer)

    def _moved_on(self, first: Evaluation, last: Evaluation) -> bool:
        """Return whether two values differ in what they cost, by more than round-off."""
        if first.answer is None or last.answer is None:
            return first.answer is not last.answer
        ends = (first.answer.lower, last.answer.lower), (first.answer.upper, last.answer.upper)
        return any(a != b and not abs(a - b) <= _CHANGE * max(a, b) for a, b in ends)

    def _sharpened(self, inside: Evaluation, outside: Evaluation) -> Bracket:
        """Return the bracket closed in to neighbours, or to the tolerance."""
        low, high = self._closest(inside, outside)
        while not self._is_close(low, high):
            self._close_in(low, high)
            before, (low, high) = (low, high), self._closest(low, high)
            if (low, high) == before:
                break
        if not (self.axis.whole or high.violates):
            high = self._one_step_on(low, high)
        return Bracket(low, high)

    def _close_in(self, inside: Evaluation, outside: Evaluation) -> None:
        """Look between the ends until what was looked at has a bracket that is narrow enough."""
        begin, length = self.axis.position(inside.x), 0.0
        length = self.axis.position(outside.x) - begin
        narrow = 0.4 / max(inside.x, outside.x, 1.0) if self.axis.whole else 0.9 * self.tolerance

        def excess(share: float) -> float:
            if share <= 0.0 or share >= 1.0:
                return (inside if share <= 0.0 else outside).excess
            return self.look(self._at_share(inside.x, outside.x, begin + share * length)).excess

        share = min(narrow / abs(length), 0.5) if length else 0.5
        increasing_root(excess, 0.0, stride=1.0, tolerance=share, farthest=1.0)

    def _at_share(self, a: float, b: float, position: float) -> float:
        """Return the value at a position, strictly between two values where there is one."""
        low, high = min(a, b), max(a, b)
        x = self.axis.at(position)
        if self.axis.whole:
            return min(max(x, low + 1), high - 1) if high - low > 1 else x
        return x if low < x < high else self._middle(low, high)

    def _middle(self, low: float, high: float) -> float:
        """Return what lies between two real values."""
        return low + 0.5 * (high - low) if math.isfinite(high) else low

    def _closest(self, inside: Evaluation, outside: Evaluation) -> tuple[Evaluation, Evaluation]:
        """Return the narrowest bracket of all that was looked at between two values."""
        low, high = min(inside.x, outside.x), max(inside.x, outside.x)
        between = sorted(x for x in self.trials if low <= x <= high)
        turns = [
            (a, b) for a, b in pairwise(between) if self.trials[a].meets != self.trials[b].meets
        ]
        # Where round-off makes several, the one furthest to the safe side.
        a, b = turns[-1] if inside.x > outside.x else turns[0]
        first, second = self.trials[a], self.trials[b]
        return (first, second) if first.meets else (second, first)

    def _is_close(self, inside: Evaluation, outside: Evaluation) -> bool:
        """Return whether a bracket is as narrow as it has to be."""
        return self._are_close(inside.x, outside.x)

    def _are_close(self, a: float, b: float) -> bool:
        """Return whether two values are neighbours, or within the tolerance of each other."""
        low, high = min(a, b), max(a, b)
        if self.axis.whole:
            return high - low <= 1
        return high - low <= self.tolerance * low or math.nextafter(low, high) >= high

    def _one_step_on(self, inside: Evaluation, outside: Evaluation) -> Evaluation:
        """Return the value a whole tolerance step on, where that says more than the one at hand.

        Where it does not, a value further on is looked at, that the plan may provably miss at.
        """
        sense = math.copysign(1.0, outside.x - inside.x)
        x = inside.x * (1.0 + sense * self.tolerance * (1.0 - 2.0**-20))
        if not self.axis.low <= x <= self.axis.high or x == inside.x:
            return outside
        further = self.look(x)
        if further.violates:
            return further
        found = inside.answer
        width = (found.upper - found.lower) / found.upper if found and found.upper else 0.0
        if self.tolerance < _BEYOND * width < _WIDE:
            self.look(self.axis.shifted(inside.x, sense * _BEYOND * width))
        return outside

    def _last(self, first: Evaluation) -> Evaluation:
        """Return the value farthest on of those that meet the target, where all do."""
        meeting = [one for one in self.trials.values() if one.meets]
        ends = [one for one in meeting if one.x in (self.axis.low, self.axis.high)]
        return max(ends or [first], key=lambda one: one.excess)

    def _refuse_contradictions(self, found: Bracket) -> None:
        """Raise where what was looked at has more than one boundary."""
        if found.outside is None:
            return
        position, boundary = self.axis.position, self.axis.position(found.inside.x)
        sense = math.copysign(1.0, found.outside.x - found.inside.x)
        for one in self.trials.values():
            ahead = sense * (position(one.x) - boundary)
            if (one.violates and ahead < -_RIPPLE) or (one.meets and ahead > _RIPPLE):
                self._refuse_ripples("the target is met and missed again around", one.x)

    def _refuse_unknown(self, found: Bracket) -> None:
        """Raise the reason where the quantity is known of nothing but a release of nothing."""
        inside, outside = found
        silent = inside.answer is not None and inside.answer.upper == 0.0
        unknown = outside is not None and outside.answer is None and not outside.violates
        if silent and unknown and self._reason is not None:
            raise self._reason

    def _refuse_ripples(self, why: str, x: float) -> None:
        """Raise because the parameter is not monotone."""
        raise IncompatibleError(
            f"{self.axis.name} is not monotone here, so that no one value is the last that meets "
            f"the target: {why} {x:g}"
        )

    def _refuse_constant(self) -> None:
        """Raise because the parameter does nothing."""
        raise IncompatibleError(
            f"{self.axis.name} has no influence on {self.goal.quantity}: it is the same from "
            f"{self.axis.low:g} to {self.axis.high:g}; solve for another parameter"
        )

    def _refuse_nothing(self, found: Bracket) -> None:
        """Raise where the target leaves room for no step, no epoch, no run at all."""
        axis, outside = self.axis, found.outside
        if found.inside.x != 0.0 or outside is None or not axis.is_amount:
            return
        least = axis.one_step or outside.x
        answer = self.achieved(least)
        amount = f"{axis.name} = {least:g}{', one step,' if axis.one_step else ''}"
        proven = "has" if self.goal.violates(answer) else "is only proven to have"
        raise InfeasibleError(
            f"no {axis.name} above 0 reaches {self.goal.sentence}: already at {amount} the plan "
            f"{proven} {self._between(answer)}",
            least,
            answer.lower,
            answer.upper,
        )

    def _between(self, answer: Achieved) -> str:
        """Return what a plan has of the quantity, in words."""
        return f"{self.goal.quantity} between {answer.lower:.6g} and {answer.upper:.6g}"

    def _infeasible(self) -> InfeasibleError:
        """Return the error that says what can be reached."""
        known = [one for one in self.trials.values() if one.answer is not None]
        best = min(known, key=lambda one: (one.excess, one.x != self.axis.start()))
        answer = best.answer
        assert answer is not None
        proven = "still has" if best.violates else "is only proven to have"
        at_end = best.x in (self.axis.low, self.axis.high)
        where = "the end of what is allowed" if at_end else "the best found"
        sentence = (
            f"no {self.axis.name} reaches {self.goal.sentence}: at {self.axis.name} = {best.x:g}, "
            f"{where}, the plan {proven} {self._between(answer)}"
            f"{', which the rest of it costs' if at_end else ''}"
        )
        return InfeasibleError(sentence, best.x, answer.lower, answer.upper)
