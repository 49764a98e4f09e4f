"""What is proven of a state: the numbers and curves of the page, asked one by one.

Each function is told all that it needs, so that another process can be asked it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, final

from hockeystick.accountants.ask import delta, epsilon
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.calibration import calibrate
from hockeystick.errors import HockeystickError
from hockeystick.explore.state import State, moved, with_training
from hockeystick.mechanisms import Composed, Mechanism
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import at_least, at_most
from hockeystick.reports import Point, course_of
from hockeystick.results import Certified

READ_AT: Final = (0.1, 0.01, 0.001)
_CURVE: Final = (0.03, 0.25)
_FINE_CURVE: Final = (0.001, 0.01, 0.03, *(k / 20 for k in range(1, 20)))
_KEPT: Final = 4096
NOISE_RANGE: Final = (0.4, 30.0)
_NOISES: Final = tuple(float(f"{0.4 * 75 ** (k / 7):.2g}") for k in range(8))
_FINE_NOISES: Final = tuple(float(f"{0.4 * 75 ** (k / 30):.3g}") for k in range(31))
_STAGES: Final = 8
_FINE_STAGES: Final = 25
_FEW_STAGES: Final = 4
# How precisely a number is solved for, and how many digits of it are kept.
_TOLERANCE: Final = 1e-4
_DIGITS: Final = 5
# Accountants that answer within milliseconds.
QUICK: Final = ("closed-form", "contour")


@final
@dataclass(frozen=True, slots=True)
class Attack:
    """What an attacker could learn: proven ends.

    Args:
        misses: At false positive rates, the ends of the least false negative rate.
        finds: At ``READ_AT``, the largest true positive rate.
        advantage: The most that true and false positive rate can differ.
    """

    misses: tuple[Point, ...]
    finds: tuple[float, ...]
    advantage: float


@final
@dataclass(frozen=True, slots=True)
class Solved:
    """A number that meets a target, and what the plan with it costs at most."""

    name: str
    value: float
    upper: float


@lru_cache(_KEPT)
def headline(plan: Mechanism, at: float) -> Certified:
    """Return epsilon at a delta."""
    return epsilon(plan, at)


@lru_cache(_KEPT)
def first_bound(plan: Mechanism, at: float) -> Certified:
    """Return a bound on epsilon at a delta that may be loose, but mostly is there soon."""
    return epsilon(plan, at, accountant="rdp")


def points(stages: Sequence[tuple[float, Mechanism]], at: float) -> tuple[Point, ...]:
    """Return epsilon at a delta for each of several plans, those without an answer left out."""
    found = []
    for place, plan in stages:
        try:
            found.append(Point.of(place, headline(plan, at)))
        except HockeystickError:
            continue
    return tuple(found)


def stages_of(state: State, fine: bool) -> tuple[str, tuple[tuple[float, Mechanism], ...]]:
    """Return what the stages of a plan are counted in, and each with what ran until then."""
    course = course_of(state.plan, _FINE_STAGES if fine else _STAGES)
    if course is None:
        return "", ()
    # The shortest run takes longest to account for: it is left out while the plan moves.
    is_long = len(course.stages) > _FEW_STAGES and not fine
    return course.unit, course.stages[1:] if is_long else course.stages


def noises_of(state: State, fine: bool) -> tuple[tuple[float, Mechanism], ...]:
    """Return the plan with one noise multiplier after the other; nothing without a training run.

    The noises are the same for all plans, so that curves are comparable and answers are kept.
    """
    training = state.training
    if training is None:
        return ()
    return tuple(
        (noise, with_training(state, replace(training, noise_multiplier=noise)))
        for noise in (_FINE_NOISES if fine else _NOISES)
    )


@lru_cache(_KEPT)
def attack(plan: Mechanism, fine: bool) -> Attack:
    """Return what an attacker could learn.

    Guarantees:
        Every false negative rate of ``misses`` is at most the least that any attack has at its
        false positive rate. Where f >= g, so is f at g(a) at least f(f(a)) = a, for f is its own
        inverse: each proven point (a, g(a)) gives another one, (g(a), a).
    """
    f = tradeoff(plan)
    rates = sorted((*READ_AT, *_CURVE))
    powers = dict(zip(rates, f.power(rates).tolist(), strict=True))
    return Attack(
        misses=_both_ends(f.bounds(_FINE_CURVE)) if fine else _mirrored(powers),
        finds=tuple(powers[rate] for rate in READ_AT),
        advantage=delta(plan, 0.0).upper,
    )


def _both_ends(ends: tuple[Sequence[float], Sequence[float]]) -> tuple[Point, ...]:
    """Return both ends at each of the fine rates, and at 1."""
    lower, upper = ends
    inner = (
        Point(x, float(a), float(b)) for x, a, b in zip(_FINE_CURVE, lower, upper, strict=True)
    )
    return (*inner, Point(1.0, 0.0, 0.0))


def _mirrored(powers: dict[float, float]) -> tuple[Point, ...]:
    """Return lower ends of f, and their mirror images."""
    ends = [(rate, _rest(power)) for rate, power in powers.items()]
    images = [(lower, rate) for rate, lower in ends]
    known = sorted({(1.0, 0.0), *ends, *images})
    return tuple(Point(x, y, y) for x, y in known)


def _rest(power: float) -> float:
    """Return 1 - power, rounded down."""
    return max(math.nextafter(1.0 - power, 0.0), 0.0)


def solved(state: State, name: str, target: float) -> Solved:
    """Return the number with which a plan just meets a target epsilon, on the safe side.

    Guarantees:
        ``upper`` is at most the target, read off the plan with that very number: it is
        rounded to few digits, upward for noise and downward for a length.

    Args:
        state: The plan, and the delta of the target.
        name: "noise_multiplier", "epochs" or "steps".
        target: Epsilon.

    Raises:
        ParameterError: If the target is outside its domain.
        InfeasibleError: If no value meets it.
    """
    goal = ApproxDP(target, state.delta)
    path = f"parts[{state.place}].{name}" if isinstance(state.plan, Composed) else name
    found = calibrate(state.plan, path, goal, tolerance=_TOLERANCE)
    value = _rounded(name, found.value)
    try:
        answer = headline(moved(state, {name: value}).plan, state.delta)
    except HockeystickError:
        answer = None
    if answer is not None and answer.upper <= target:
        return Solved(name, value, answer.upper)
    return Solved(name, found.value, found.achieved.upper)


def _rounded(name: str, value: float) -> float:
    """Return a number with few digits: noise rounded up, epochs down to whole ones."""
    if name == "noise_multiplier":
        return float(at_most(value, _DIGITS))
    return float(math.floor(value)) if value >= 1.0 else float(at_least(value, _DIGITS))
