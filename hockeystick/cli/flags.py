"""The flags that commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from hockeystick.accountants.base import TOLERANCE
from hockeystick.accountants.registry import ACCOUNTANTS

_Function = TypeVar("_Function", bound=Callable[..., Any])

VERBOSE: Final = "hockeystick.verbose"


def _show_more(context: click.Context, _: click.Parameter, given: bool) -> None:
    """Keep with the context whether all is to be shown."""
    context.meta[VERBOSE] = given


def accountant_flag(*, proven: bool = False) -> Callable[[_Function], _Function]:
    """Return the decorator that adds the accountant; only those that prove something if so."""
    names = [n for n, one in ACCOUNTANTS.items() if not proven or one.kind != "approximation"]
    text = f"One of {', '.join(names)}."
    return click.option("--accountant", default="auto", metavar="NAME", help=text)


def tolerance_flag(default: float = TOLERANCE) -> Callable[[_Function], _Function]:
    """Return the decorator that adds how narrow the answer is to be."""
    text = f"Relative width to go for; {default:g} by default."
    return click.option("--tolerance", metavar="TOL", help=text)


def question_flag(name: str) -> Callable[[_Function], _Function]:
    """Return the decorator that adds the flag for the delta or epsilon to ask at."""
    text = f"Ask at this {name}; by default the plan file's."
    return click.option(f"--{name}", metavar=name[0].upper(), help=text)


verify_flag = click.option(
    "--verify", is_flag=True, help="Have the answer verified by a second program."
)
short_flag = click.option(
    "--short", is_flag=True, help="Print only the number, rounded to its safe side."
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
verbose_flag = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_show_more,
    help="Print all that is known of the answer.",
)


def refuse_beside_short(short: bool, **others: bool) -> None:
    """Raise where more is asked for than the one number of --short."""
    if short and any(others.values()):
        *first, last = (f"--{name.removeprefix('as_').replace('_', '-')}" for name in others)
        beside = f"{', '.join(first)} and {last}" if first else last
        raise click.UsageError(f"--short prints one number: leave out {beside}")
