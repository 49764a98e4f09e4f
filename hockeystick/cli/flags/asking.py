"""Where a command asks: at the flag's delta or epsilon, or else at the plan file's."""

from __future__ import annotations

import math

import click

from hockeystick import _validate
from hockeystick.answers import suggested_delta, units_of
from hockeystick.cli.describe import Question
from hockeystick.cli.flags import defaults
from hockeystick.cli.flags.source import name_of
from hockeystick.errors import ParameterError
from hockeystick.io import parse
from hockeystick.io.plan_file import PlanFile
from hockeystick.numerics.numerals import plain
from hockeystick.results import Approximate, Certified


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
