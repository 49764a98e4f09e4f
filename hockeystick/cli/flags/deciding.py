"""The flag that turns an answer into a decision, and the exit status that says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, final

import click

from hockeystick import _validate
from hockeystick.answers import Decision, decide, units_of
from hockeystick.answers.cautions import reservation
from hockeystick.cli.describe import Question
from hockeystick.io import parse
from hockeystick.mechanisms import Mechanism
from hockeystick.results import Approximate, Certified, Quantity

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
