"""One search for every parameter and target: bracket the limit, then narrow the bracket."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from hockeystick.calibration.solve.fields import Parameter
from hockeystick.calibration.solve.targets import Achieved, Constraint
from hockeystick.errors import (
    HockeystickError,
    IncompatibleError,
    InfeasibleError,
    UnsupportedError,
)
from hockeystick.mechanisms import Mechanism, Plan
from hockeystick.numerics.roots import increasing_root

if TYPE_CHECKING:
    from hockeystick.accountants.contour.search import LineGuess

# Steps of a walk before the end of the domain is evaluated, and the longest step: far out, plans
# may take long to account for or have loose bounds, and long steps would miss the limit.
_STEPS_BEFORE_END: Final = 3
_LONGEST_STEP: Final = math.log(4.0)
_TINY_STEP: Final = 1e-3
_STEPS_OF_LIMITED_LENGTH: Final = 12
_STEPS: Final = 100
# Values at this distance in position must not contradict monotonicity.
_LEAST_DISTANCE: Final = 0.01
_LEAST_EXCESS: Final = 1e-300
# The excess becomes the first stride where it is this many times larger.
_FAR_STRIDES: Final = 8.0
# Changes of the excess below this are round-off.
_CHANGE: Final = 1e-7
# Interval widths after which a target is mostly missed provably, and the largest such width.
_WIDTHS_FURTHER: Final = 4.0
_LARGEST_WIDTH: Final = 0.5


class Evaluation(NamedTuple):
    """One value of the parameter, and the interval proven there; None where there is none."""

    x: float
    answer: Achieved | None
    excess: float
    meets: bool
    violates: bool


class Bracket(NamedTuple):
    """A value that meets the target, and the next one that is not proven to."""

    inside: Evaluation
    outside: Evaluation | None


@dataclass(slots=True)
class Search:
    """The search for the last value of a parameter that meets a target.

    ``with_spent`` returns the plan to be read, what was spent before included; ``tolerance`` is the
    relative width of a bracket of real values at which the search ends.
    """

    parameter: Parameter
    constraint: Constraint
    with_spent: Callable[[Mechanism], Mechanism]
    tolerance: float
    evaluated: dict[float, Evaluation] = field(default_factory=dict)
    evaluations: int = 0
    _answers: dict[Mechanism, tuple[Mechanism, Achieved | None]] = field(default_factory=dict)
    _reason: HockeystickError | None = None

    def run(
        self, start: float, stride: float, direction: int = 0, line: LineGuess | None = None
    ) -> Bracket:
        """Return a bracket of the last value that meets the target, from a start and a stride."""
        first = self.evaluate(start)
        other = self._missed(first, stride, direction, line) or self._other_side(first, stride)
        if other is None:
            known = [one for one in self.evaluated.values() if one.answer is not None]
            if self._reason is not None and all(one.excess == math.inf for one in known):
                raise self._reason
            if not first.meets:
                self._refuse_all()
            return Bracket(self._farthest(first), None)
        found = self._narrowed(*((first, other) if first.meets else (other, first)))
        self._refuse_contradictions(found)
        self._refuse_unknown(found)
        self._refuse_nothing(found)
        return found

    def evaluate(self, x: float) -> Evaluation:
        """Return the evaluation at a value, computed once."""
        if x not in self.evaluated:
            answer = self._evaluate_plan(self.parameter.make(x))
            if answer is None:
                self.evaluated[x] = Evaluation(x, None, math.inf, False, False)
            else:
                meets, constraint = self.constraint.meets(answer), self.constraint
                excess = constraint.excess(answer)
                excess = min(excess, -_LEAST_EXCESS) if meets else max(excess, _LEAST_EXCESS)
                self.evaluated[x] = Evaluation(
                    x, answer, excess, meets, constraint.violates(answer)
                )
        return self.evaluated[x]

    def _evaluate_plan(self, plan: Mechanism) -> Achieved | None:
        key = plan.mechanism if isinstance(plan, Plan) else plan
        if key not in self._answers:
            self.evaluations += 1
            try:
                self._answers[key] = plan, self.constraint.evaluate(self.with_spent(plan))
            except (IncompatibleError, UnsupportedError) as error:
                # The first is asked of the number that the plan came with.
                self._reason = self._reason or error
                self._answers[key] = plan, None
        return self._answers[key][1]

    def achieved(self, x: float) -> Achieved:
        """Return the interval at a value, of that very plan, whose description it has."""
        plan = self.parameter.make(x)
        key = plan.mechanism if isinstance(plan, Plan) else plan
        asked, answer = self._answers.get(key, (plan, None))
        return (
            answer if asked == plan and answer else self.constraint.evaluate(self.with_spent(plan))
        )

    def _missed(
        self, first: Evaluation, stride: float, direction: int, line: LineGuess | None
    ) -> Evaluation | None:
        """Return the next value if a proof cheaper than an interval shows that it misses."""
        x = self.parameter.shifted(first.x, -self.parameter.safer * stride)
        if not first.meets or x == first.x or not self._are_close(first.x, x):
            return None
        plan = self.with_spent(self.parameter.make(x))
        self.evaluations += 1
        if not self.constraint.misses(plan, direction, line):
            return None
        self.evaluated[x] = Evaluation(x, None, math.inf, False, True)
        return self.evaluated[x]

    def _other_side(self, first: Evaluation, stride: float) -> Evaluation | None:
        toward = -self.parameter.safer if first.meets else self.parameter.safer
        found = self._walk(first, toward * stride)
        if found is not None and found.meets != first.meets:
            return found
        if found is not None and self._differ(first, found):
            return None
        back = self._walk(first, -toward * stride)
        if back is not None and back.meets != first.meets:
            return back
        if found is not None and back is not None and not self._differ(first, back):
            if first.answer is None and self._reason is not None:
                raise self._reason
            self._refuse_constant()
        if found is None and (back is None or not self._differ(first, back)):
            self._refuse_not_monotone("it costs more to either side of", first.x)
        return None

    def _walk(self, first: Evaluation, stride: float) -> Evaluation | None:
        """Return the first value along the way with the other verdict, or the end of the domain.

        None where the way leads away from the limit.
        """
        near, steps, unproven = first, 0, False
        if _FAR_STRIDES * abs(stride) < abs(first.excess) < math.inf:
            stride = math.copysign(min(abs(first.excess), _LONGEST_STEP), stride)
        while steps < _STEPS:
            x = self.parameter.shifted(near.x, stride)
            if x == near.x:
                return near
            far = self.evaluate(x)
            if far.meets != first.meets:
                return far
            if self._is_worse(near, far):
                if near is first or (unproven and self._is_worse(first, far)):
                    return None
                self._refuse_a_turn(near, far)
            near, steps = far, steps + 1
            if steps == _STEPS_BEFORE_END and not first.meets:
                end = self.evaluate(self.parameter.high if stride > 0.0 else self.parameter.low)
                # Bounds at the end may be loose, so that only a proof refutes the direction.
                unproven = self._is_worse(first, end) and not self._provably_worse(first, end)
                if not (end.meets or end.answer is None or unproven):
                    return None if self._is_worse(first, end) else end
            stride *= 32.0 if abs(stride) < _TINY_STEP else 2.0
            if steps < _STEPS_OF_LIMITED_LENGTH:
                stride = math.copysign(min(abs(stride), _LONGEST_STEP), stride)
        return near

    def _refuse_a_turn(self, near: Evaluation, far: Evaluation) -> None:
        one, other = (near, far) if near.meets else (far, near)
        if self._provably_worse(other, one):
            self._refuse_not_monotone("its influence turns near", near.x)

    def _is_worse(self, near: Evaluation, far: Evaluation) -> bool:
        if near.answer is None or far.answer is None:
            return False
        away = near.excess - far.excess if near.meets else far.excess - near.excess
        length = self.parameter.position(far.x) - self.parameter.position(near.x)
        return abs(length) > _LEAST_DISTANCE and away > _CHANGE

    def _provably_worse(self, near: Evaluation, far: Evaluation) -> bool:
        if near.answer is None or far.answer is None:
            return False
        return self.constraint.costs_more(far.answer, near.answer)

    def _differ(self, first: Evaluation, last: Evaluation) -> bool:
        if first.answer is None or last.answer is None:
            return first.answer is not last.answer
        ends = (first.answer.lower, last.answer.lower), (first.answer.upper, last.answer.upper)
        return any(a != b and not abs(a - b) <= _CHANGE * max(a, b) for a, b in ends)

    def _narrowed(self, inside: Evaluation, outside: Evaluation) -> Bracket:
        low, high = self._closest(inside, outside)
        while not self._are_close(low.x, high.x):
            self._refine(low, high)
            before, (low, high) = (low, high), self._closest(low, high)
            if (low, high) == before:
                break
        if not (self.parameter.whole or high.violates):
            high = self._one_step_on(low, high)
        return Bracket(low, high)

    def _refine(self, inside: Evaluation, outside: Evaluation) -> None:
        begin = self.parameter.position(inside.x)
        length = self.parameter.position(outside.x) - begin
        narrow = (
            0.4 / max(inside.x, outside.x, 1.0) if self.parameter.whole else 0.9 * self.tolerance
        )

        def excess(share: float) -> float:
            if share <= 0.0 or share >= 1.0:
                return (inside if share <= 0.0 else outside).excess
            return self.evaluate(self._at_share(inside.x, outside.x, begin + share * length)).excess

        share = min(narrow / abs(length), 0.5) if length else 0.5
        increasing_root(excess, 0.0, stride=1.0, tolerance=share, farthest=1.0)

    def _at_share(self, a: float, b: float, position: float) -> float:
        low, high = min(a, b), max(a, b)
        x = self.parameter.at(position)
        if self.parameter.whole:
            return min(max(x, low + 1), high - 1) if high - low > 1 else x
        if low < x < high:
            return x
        return low + 0.5 * (high - low) if math.isfinite(high) else low

    def _closest(self, inside: Evaluation, outside: Evaluation) -> tuple[Evaluation, Evaluation]:
        low, high = min(inside.x, outside.x), max(inside.x, outside.x)
        between = sorted(x for x in self.evaluated if low <= x <= high)
        changes = [
            (a, b)
            for a, b in pairwise(between)
            if self.evaluated[a].meets != self.evaluated[b].meets
        ]
        # Where round-off makes several, the one furthest to the safe side.
        a, b = changes[-1] if inside.x > outside.x else changes[0]
        first, second = self.evaluated[a], self.evaluated[b]
        return (first, second) if first.meets else (second, first)

    def _are_close(self, a: float, b: float) -> bool:
        low, high = min(a, b), max(a, b)
        if self.parameter.whole:
            return high - low <= 1
        return high - low <= self.tolerance * low or math.nextafter(low, high) >= high

    def _one_step_on(self, inside: Evaluation, outside: Evaluation) -> Evaluation:
        """Return the value one tolerance on if it violates the target, else the given one."""
        sense = math.copysign(1.0, outside.x - inside.x)
        x = inside.x * (1.0 + sense * self.tolerance * (1.0 - 2.0**-20))
        if not self.parameter.low <= x <= self.parameter.high or x == inside.x:
            return outside
        further = self.evaluate(x)
        if further.violates:
            return further
        found = inside.answer
        width = (found.upper - found.lower) / found.upper if found and found.upper else 0.0
        if self.tolerance < _WIDTHS_FURTHER * width < _LARGEST_WIDTH:
            self.evaluate(self.parameter.shifted(inside.x, sense * _WIDTHS_FURTHER * width))
        return outside

    def _farthest(self, first: Evaluation) -> Evaluation:
        meeting = [one for one in self.evaluated.values() if one.meets]
        ends = [one for one in meeting if one.x in (self.parameter.low, self.parameter.high)]
        return max(ends or [first], key=lambda one: one.excess)

    def _refuse_contradictions(self, found: Bracket) -> None:
        if found.outside is None:
            return
        position, boundary = self.parameter.position, self.parameter.position(found.inside.x)
        sense = math.copysign(1.0, found.outside.x - found.inside.x)
        for one in self.evaluated.values():
            ahead = sense * (position(one.x) - boundary)
            if (one.violates and ahead < -_LEAST_DISTANCE) or (
                one.meets and ahead > _LEAST_DISTANCE
            ):
                self._refuse_not_monotone("the target is met and missed again around", one.x)

    def _refuse_unknown(self, found: Bracket) -> None:
        inside, outside = found
        releases_nothing = inside.answer is not None and inside.answer.upper == 0.0
        unknown = outside is not None and outside.answer is None and not outside.violates
        if releases_nothing and unknown and self._reason is not None:
            raise self._reason

    def _refuse_not_monotone(self, why: str, x: float) -> None:
        raise IncompatibleError(
            f"{self.parameter.name} is not monotone here, so that no one value is the last that "
            f"meets the target: {why} {x:g}"
        )

    def _refuse_constant(self) -> None:
        raise IncompatibleError(
            f"{self.parameter.name} has no influence on {self.constraint.quantity}: it is the same "
            f"from {self.parameter.low:g} to {self.parameter.high:g}; solve for another parameter"
        )

    def _refuse_nothing(self, found: Bracket) -> None:
        """Raise where the target leaves room for no run at all, or takes infinite noise."""
        parameter, (inside, outside) = self.parameter, found
        endless = inside.x == math.inf
        if outside is None or not (endless or (inside.x == 0.0 and parameter.is_amount)):
            return
        least = outside.x if endless else parameter.one_step or outside.x
        what = f"finite {parameter.name}" if endless else f"{parameter.name} above 0"
        where = ", one step," if parameter.one_step else ""
        raise self._infeasible(what, least, self.achieved(least), where)

    def _refuse_all(self) -> None:
        known = [one for one in self.evaluated.values() if one.answer is not None]
        best = min(known, key=lambda one: (one.excess, one.x != self.parameter.start()))
        assert best.answer is not None
        at_end = best.x in (self.parameter.low, self.parameter.high)
        where = ", the end of what is allowed," if at_end else ", the best found,"
        raise self._infeasible(self.parameter.name, best.x, best.answer, where)

    def _infeasible(self, what: str, x: float, answer: Achieved, where: str) -> InfeasibleError:
        proven = "has" if self.constraint.violates(answer) else "is only proven to have"
        return InfeasibleError(
            f"no {what} reaches {self.constraint.sentence}: at {self.parameter.name} = {x:g}{where}"
            f" the plan {proven} {self.constraint.quantity} between {answer.lower:.6g} and "
            f"{answer.upper:.6g}",
            x,
            answer.lower,
            answer.upper,
        )
