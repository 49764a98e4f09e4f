"""Which value of a parameter meets a target, on the safe side and with a proof."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR
from enum import StrEnum
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick.calibration.solve.fields import Parameter, locate, name_of, value_at
from hockeystick.calibration.solve.initial_guess import initial_guess
from hockeystick.calibration.solve.search import Bracket, Search
from hockeystick.calibration.solve.targets import (
    Achieved,
    BayesError,
    Constraint,
    EpsilonConstraint,
    Target,
    constraint_of,
)
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.io.codec import parameters_of, required_by, start_for
from hockeystick.mechanisms import Composed, Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import at_least, at_most, formatted
from hockeystick.results import no_number

TOLERANCE: Final = 1e-9
_STRIDE: Final = 0.7
# Formats in which a whole number is told exactly.
_OF_AN_INT: Final = re.compile(r"[^.%a-zA-Z]*[dn]?")
# A guess this sure, over the tolerance, lies well between two values that are close enough.
_SURE: Final = 0.35
# A range narrower than this, relative to its end, is the freedom of rounding.
_NARROWEST: Final = 1e-6


_A_PLAN: Final = "a mechanism, or a class of them such as hs.DPSGD, with its fields as keywords"


class Status(StrEnum):
    """What is proven of the next value after the one returned."""

    TIGHT = "tight"
    BOUND = "bound"
    END = "end of domain"

    @property
    def meaning(self) -> str:
        """The status as a sentence."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    Status.TIGHT: "the next value, one tolerance step on, provably misses the target",
    Status.BOUND: "the next value is not shown to meet the target, nor to miss it",
    Status.END: "every value that was looked at meets the target, to the end of what is allowed",
}


@final
@no_number
@dataclass(frozen=True, slots=True, repr=False)
class Calibrated:
    """The last value of a parameter that meets a target, with the proof.

    Guarantees:
        ``plan`` meets the target: ``achieved``, read off that very plan, is within it by its upper
        end (a Bayes error by its lower end). Where it prints, also as ``f"{found:.3f}"``, a least
        value is rounded up and a most value down, which is where the plan costs less; ``<``,
        ``max``, ``round`` and arithmetic raise a TypeError.

    Args:
        value: The value, an int where the parameter is a whole number.
        achieved: What the plan has, what was spent before included: a ``Certified`` for ApproxDP
            and PureDP, otherwise a ``Measured`` with ``lower`` and ``upper``.
        bracket: Two values, the smaller first: this one, and the next one that misses the target
            provably ("tight"), or the nearest one that is known to miss it or else the nearest
            that is not shown to meet it ("bound"), or the value again ("end of domain").
        evaluations: How many plans were accounted for with proof.
        status: "tight", "bound" or "end of domain".
        plan: The plan with the value in place.
        parameter: What was solved for, as it was given.
        target: What had to be met.
        spent: What ran before on the same data; None for nothing.
        misses: The plan with the other value of the bracket, where it provably misses the target;
            None where there is no such value.
    """

    value: float
    achieved: Achieved
    bracket: tuple[float, float]
    evaluations: int
    status: Status
    plan: Mechanism
    parameter: str
    target: Target
    spent: Mechanism | None
    misses: Mechanism | None

    @property
    def extreme(self) -> str:
        """Which of the values that meet the target this one is: "least" or "most".

        At an end of what is allowed, it is what the plan says of the parameter, or else "last".
        """
        if self.bracket[0] < self.bracket[1]:
            return "most" if self.value == self.bracket[0] else "least"
        path = locate(self.plan, self.parameter)
        owner, name = value_at(self.plan, path[:-1]), name_of(path)
        falls = isinstance(owner, Mechanism) and name in owner.falls_with
        rises = isinstance(owner, Mechanism) and name in owner.rises_with
        return "least" if falls else "most" if rises else "last"

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, spec: str) -> str:
        """Return the value, rounded to the safe side, in a format; without one, ``str(found)``."""
        if not spec:
            return str(self)
        if isinstance(self.value, int) and _OF_AN_INT.fullmatch(spec):
            return format(self.value, spec)
        rounding = {"least": ROUND_CEILING, "most": ROUND_FLOOR}.get(self.extreme)
        if rounding is None:
            raise TypeError(f"{self.parameter} has no safe side to round to: use found.value")
        return formatted(self.value, spec, rounding)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"{self.extreme} {self.parameter} = {self._shown} ({self.status}; {self._has})"

    @property
    def _shown(self) -> str:
        rounded = {"least": at_most, "most": at_least}.get(self.extreme)
        if rounded is None or isinstance(self.value, int):
            return repr(self.value)
        return rounded(self.value)

    @property
    def _has(self) -> str:
        achieved, target = self.achieved, self.target
        if isinstance(target, BayesError):
            return f"{achieved.quantity} at least {at_least(achieved.lower)}"
        where = f" at delta = {target.delta:g}" if isinstance(target, ApproxDP) else ""
        return f"{achieved.quantity} at most {at_most(achieved.upper)}{where}"


def calibrate(
    plan: Mechanism | Callable[..., Mechanism],
    parameter: str,
    target: Target,
    *,
    spent: Mechanism | None = None,
    tolerance: float = TOLERANCE,
    accountant: str = "auto",
    whole: bool = False,
    **fields: Any,
) -> Calibrated:
    """Return the value of one number in a plan with which it just meets a target.

    Of all values that meet the target, the one that costs most: the least noise, the most steps,
    the largest batch.

    Guarantees:
        The plan returned meets the target by the proven end of an evaluation of that very plan,
        whatever the search did before. With status "tight" the next integer, or the value one
        tolerance step on, provably misses it. Where a parameter only ripples (the batch size at
        given epochs, whose steps are whole), that holds for the boundary found; there may be
        another one within a percent.

    Edge cases:
        Where every value meets the target, the end of the domain is returned. Where only 0 epochs,
        steps or runs do, or only infinite noise, that is an ``InfeasibleError``. Targets that only
        theorems connect to the plan (GDP, ZCDP, TCDP of a sampled plan) are met by the theorem's
        upper end, and the status is "bound".

    Args:
        plan: A mechanism or plan, whose number for the parameter is where the search begins; or a
            class of them, such as ``hs.DPSGD``, whose other fields are given as keywords and of
            which what is solved for is left out.
        parameter: The name of a number in the plan, or its path where several have that name:
            "noise_multiplier", "inner.rate", "parts[1].epsilon", "schedule.end". Where the plan
            gives one of two alternatives (batch_size or rate), it is the one to solve for.
        target: ``ApproxDP``, ``PureDP``, ``GDP``, ``ZCDP``, ``TCDP``, ``RenyiDP``,
            ``TruePositiveRate``, ``Advantage``, ``BayesError`` or ``Reconstruction``.
        spent: A plan that already ran on the same data; both together meet the target.
        tolerance: Relative width of the bracket of a real value, from 1e-10 to 0.1.
        accountant: An accountant whose answers are proven, for targets read off epsilon or delta;
            "auto" for the others.
        whole: Whether only whole values count: whole epochs, say. Counts are whole anyway.
        fields: The fields of the class, all but the one to solve for.

    Raises:
        ParameterError: If no number has that name, or several have.
        IncompatibleError: If the parameter has no influence or is not monotone, if only scattered
            values are allowed, or the plans cannot be accounted together.
        InfeasibleError: If no value meets the target, with the best that there is; or if only that
            does at which nothing is run, with what one step or run has.

    References:
        Balle and Wang, "Improving the Gaussian Mechanism", ICML 2018, theorem 8, for one Gaussian.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(noise_multiplier=1, rate=256 / 60_000, steps=14_062)
        >>> found = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(epsilon=2, delta=1e-5))
        >>> print(found)
        least noise_multiplier = 1.22415 (tight; epsilon at most 2.00000 at delta = 1e-05)
        >>> found.achieved.upper <= 2, f"{found:.3f}"
        (True, '1.225')
    """
    start = _begun_with(plan, parameter, fields)
    path = locate(start, parameter)
    constraint = constraint_of(target, accountant)
    width = _validate.real("tolerance", tolerance)
    with_spent = _adding_spent(spent)
    with_spent(start)
    unknown = Parameter.of(start, path, whole=whole)
    _refuse_no_choice(unknown)
    search = Search(unknown, constraint, with_spent, width)
    found = search.run(*_start(unknown, constraint, with_spent, width))
    return _calibrated(search, found, parameter, target, spent)


def _begun_with(
    plan: Mechanism | Callable[..., Mechanism], parameter: str, fields: Mapping[str, Any]
) -> Mechanism:
    """Return the plan, or one of a class with a number for what is to be solved for."""
    if isinstance(plan, Mechanism):
        for name, value in fields.items():
            raise ParameterError(name, value, "left out beside a plan, which has its numbers")
        return plan
    if not (isinstance(plan, type) and issubclass(plan, Mechanism)):
        return checked("plan", plan, allowed=_A_PLAN)
    names = list(parameters_of(plan))
    for name in fields:
        if name not in names:
            raise ParameterError(f"a field of {plan.__name__}", name, f"one of {str(names)[1:-1]}")
    is_open = parameter in names and parameter not in fields
    for name in required_by(plan):
        if name not in fields and not (is_open and name == parameter):
            raise ParameterError(name, None, f"given beside {plan.__name__}")
    begin = {parameter: start_for(plan, parameter)} if is_open else {}
    return plan(**fields, **begin)


def _adding_spent(spent: Mechanism | None) -> Callable[[Mechanism], Mechanism]:
    if spent is None:
        return lambda plan: plan
    before = checked("spent", spent)
    return lambda plan: Composed((before, plan))


def _refuse_no_choice(unknown: Parameter) -> None:
    if unknown.low < unknown.high * (1.0 if unknown.whole else 1.0 - _NARROWEST):
        return
    raise IncompatibleError(
        f"{unknown.name} cannot change on its own: the rest of the plan allows no value near "
        f"{unknown.low:g} but this one"
    )


def _start(
    unknown: Parameter,
    constraint: Constraint,
    with_spent: Callable[[Mechanism], Mechanism],
    tolerance: float,
) -> tuple[Any, ...]:
    """Return what a search begins with: where, its first stride, and a direction with its line."""
    found = None
    if isinstance(constraint, EpsilonConstraint):
        found = initial_guess(unknown, constraint, with_spent, tolerance)
    if found is None:
        return unknown.start(), _STRIDE
    position, known, direction, line = found
    if unknown.whole:
        # The last whole number on the safe side, and then its neighbour.
        edge = unknown.at(position)
        return edge, max(known, tolerance), direction, line
    margin = max(0.4 * tolerance, 4.0 * known)
    if known < _SURE * tolerance:
        margin = min(margin, 0.49 * tolerance)
    x = unknown.at(position)
    return unknown.shifted(x, unknown.safer * margin), 2.0 * margin, direction, line


def _calibrated(
    search: Search, found: Bracket, parameter: str, target: Target, spent: Mechanism | None
) -> Calibrated:
    inside, outside = found
    value: Any = inside.x
    if outside is None:
        status, next_one = Status.END, inside.x
    elif outside.violates:
        status, next_one = Status.TIGHT, outside.x
    else:
        status, next_one = Status.BOUND, _nearest_miss(search, found)
    is_missed = outside is not None and search.evaluated[next_one].violates
    return Calibrated(
        value=value,
        achieved=search.achieved(inside.x),
        bracket=(min(inside.x, next_one), max(inside.x, next_one)),
        evaluations=search.evaluations,
        status=status,
        plan=search.parameter.make(inside.x),
        parameter=parameter,
        target=target,
        spent=spent,
        misses=search.parameter.make(next_one) if is_missed else None,
    )


def _nearest_miss(search: Search, found: Bracket) -> float:
    """Return the nearest value on the other side that provably misses, or what is not shown to."""
    inside, outside = found
    assert outside is not None
    beyond = [
        one.x
        for one in search.evaluated.values()
        if one.violates and (one.x - inside.x) * (outside.x - inside.x) > 0.0
    ]
    return min(beyond, key=lambda x: abs(x - inside.x), default=outside.x)
