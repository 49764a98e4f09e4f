"""What ``epsilon`` and ``delta`` do where a flag has several values: one row for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

import hockeystick as hs
from hockeystick.accountants.base import TOLERANCE
from hockeystick.cli.flags import asking, deciding, defaults, options
from hockeystick.cli.flags.several import Cell, Several, cells
from hockeystick.cli.flags.source import Source, source
from hockeystick.cli.results.rows import Row, Rows
from hockeystick.cli.terminal.progress import bar
from hockeystick.cli.wording import on_the_command_line
from hockeystick.errors import HockeystickError
from hockeystick.io import parse
from hockeystick.numerics.numerals import at_most as rounded_up

# What is said of flags that ask more of an answer.
_OF_ONE: Final = "is for one answer: give each flag one value"


def refuse_of_one(**given: bool) -> None:
    """Raise for a flag that asks more of one answer."""
    for flag, is_given in given.items():
        if is_given:
            raise click.UsageError(f"--{flag.replace('_', '-')} {_OF_ONE}")


def answer_rows(
    name: str,
    plan_file: str | None,
    several: Sequence[Several],
    flags: Mapping[str, Any],
    *,
    accountant: str,
    digits: str | None,
    tolerance: str | None,
    at_most: str | None,
    short: bool,
    as_json: bool,
) -> int:
    """Print the answer at every combination of the flags' values, and return the exit status."""
    options.refuse_beside_short(short, as_json=as_json)
    quantity: Any = "epsilon" if name == "delta" else "delta"
    budget = deciding.budget_of("at_most", quantity, at_most)
    how = {
        "accountant": accountant,
        "digits": None if digits is None else parse(digits),
        "tolerance": TOLERANCE if tolerance is None else parse(tolerance),
    }
    given = None if plan_file is None else source(plan_file)
    asked = cells(several, flags)
    rows = []
    with bar(f"computing {quantity}") as tell:
        for done, cell in enumerate(asked):
            tell(done, len(asked))
            rows.append(_row(given, name, cell, how, budget))
    found = Rows(several, quantity, rows, budget)
    _print(found, short=short, as_json=as_json)
    return found.exit_status


def _row(
    given: Source | None, name: str, cell: Cell, how: Mapping[str, Any], budget: float | None
) -> Row:
    """Return the answer at one combination, or why there is none."""
    flags = dict(cell.flags)
    ask: Callable[..., Any] = hs.epsilon if name == "delta" else hs.delta
    try:
        text = flags.pop(name)
        file = options.plan_of(given, flags)
        at = asking.question(name, text, file)
        answer = ask(file.plan, **{at.name: at.value}, **how)
        asking.refuse_infinite(at, answer)
    except HockeystickError as error:
        return Row(cell.values, cell.told, error=on_the_command_line(error))
    decided = deciding.decided(answer, file.plan, at, budget)
    return Row(cell.values, cell.told, file, at, answer, decided)


def _print(found: Rows, *, short: bool, as_json: bool) -> None:
    """Print the rows, or raise where none has an answer, or of --short where one has none."""
    missing = [one for one in found.rows if one.error is not None]
    if missing and (short or not found.answered):
        raise click.UsageError(_why(missing[0]))
    if short:
        for one in found.rows:
            click.echo(_quoted(one))
        defaults.tell()
    elif as_json:
        from hockeystick.cli import as_json as programs

        click.echo(programs.rows(found, hs.__version__))
    else:
        from hockeystick.cli.panels import render, rows_panel

        render.print_plainly(rows_panel.panel(found), render.WIDER)


def _why(row: Row) -> str:
    """Return why a row has no answer, and which it is."""
    return f"{', '.join(f'{name} = {value}' for name, value in row.values.items())}: {row.error}"


def _quoted(row: Row) -> str:
    """Return the number to quote of a row, rounded up, or raise where nothing is proven."""
    if not isinstance(row.answer, hs.Certified):
        raise click.UsageError("--short prints what is proven, and this accountant proves nothing")
    return rounded_up(row.answer.upper)
