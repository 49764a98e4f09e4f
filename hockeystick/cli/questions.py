"""Where a command asks: at the flag's delta or epsilon, or else at the plan file's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, final

import click

from hockeystick import _validate
from hockeystick.answers import Decision, decide, suggested_delta, units_of
from hockeystick.answers.cautions import reservation
from hockeystick.cli import defaults
from hockeystick.cli.plans import name_of
from hockeystick.errors import ParameterError
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics.numerals import plain
from hockeystick.results import Approximate, Certified, Quantity


@final
@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: epsilon at a delta, or delta at an epsilon."""

    name: str
    value: float

    @property
    def quantity(self) -> Quantity:
        """What the answer is."""
        return "epsilon" if self.name == "delta" else "delta"


def question(name: str, given: str | None, file: PlanFile) -> Question:
    """Return the delta or epsilon to ask at: the flag's, the file's, or else a default delta."""
    value = getattr(file, name) if given is None else parse(given)
    if value is None and name == "delta":
        value = defaults.default(name)
    if value is None:
        allowed = _validate.PARAMETERS[name].allowed
        raise click.UsageError(
            f"{name} must be given, as --{name} or in the plan file: {allowed}{_hint(name, file)}"
        )
    return Question(name, _validate.real(name, value))


def one_question(given: dict[str, str | None], file: PlanFile) -> Question:
    """Return the one question of the flags, or else the one of the file."""
    flags = [name for name, text in given.items() if text is not None]
    names = flags or [name for name in given if getattr(file, name) is not None]
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} are both given; ask at one of them")
    name = names[0] if names else "delta"
    return question(name, given[name], file)


def _hint(name: str, file: PlanFile) -> str:
    """Return which delta would be sensible, where the plan says how many it protects."""
    units = units_of(file.plan)
    if name != "delta" or units is None:
        return ""
    sensible = f"{plain(suggested_delta(units))} or less is sensible"
    return f"; for {units}, {sensible}, and always below 1 / {units.count:,}"


def refuse_infinite(
    at: Question, *answers: Certified | Approximate | None, held: str | None = None
) -> None:
    """Raise where delta 0 is asked for and nothing but an infinite epsilon has it.

    Args:
        at: Where it is asked.
        answers: What came of it.
        held: The plan file that asks there, if no flag does.
    """
    if at == Question("delta", 0.0) and any(
        isinstance(answer, Certified) and answer.lower == math.inf for answer in answers
    ):
        error = ParameterError("delta", 0, "above 0: at 0, this plan's epsilon is infinite")
        if held is not None:
            error.add_note(f"it is that of {name_of(held)}, and --delta gives another")
        raise error


_Command = TypeVar("_Command", bound=Callable[..., Any])
MISSED: Final = 1


@final
@dataclass(frozen=True, slots=True)
class Decided:
    """A budget, whether an answer is within it, and why that says little, if it does."""

    at_most: float
    decision: Decision
    reservation: str = ""

    @property
    def meets(self) -> bool:
        """Whether it is, by proof."""
        return self.decision is Decision.MEETS

    @property
    def exit_status(self) -> int:
        """0 where the budget is met, else 1."""
        return 0 if self.meets else MISSED


def at_most_flag(quantity: str) -> Callable[[_Command], _Command]:
    """Return the decorator that adds the flag for the budget of a quantity."""
    text = f"Say whether {quantity} is proven to be at most this; exit status 1 if it is not."
    names = ("--at-most", "--budget-epsilon") if quantity == "epsilon" else ("--at-most",)
    return click.option(*names, "at_most", metavar=quantity[0].upper(), help=text)


def budget_of(name: str, quantity: Quantity, text: str | None) -> float | None:
    """Return the budget of a flag, or raise before anything is computed."""
    if text is None:
        return None
    given: Any = parse(text)
    return _validate.real(name, given, _validate.PARAMETERS[quantity])


def decided(
    answer: Certified | Approximate, plan: Mechanism, at: Question, at_most: float | None
) -> Decided | None:
    """Return whether an answer is within the budget, where there is one."""
    if at_most is None:
        return None
    if isinstance(answer, Approximate):
        raise click.UsageError(
            f"--at-most needs a proven {answer.quantity}: {answer.accountant} only approximates it"
        )
    decision = decide(answer, at_most)
    if decision is not Decision.MEETS:
        return Decided(at_most, decision)
    delta = float(answer.upper if answer.quantity == "delta" else at.value)
    return Decided(at_most, decision, reservation(delta, units_of(plan)))
