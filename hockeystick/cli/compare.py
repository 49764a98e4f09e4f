"""The command ``compare``: a plan by every accountant, or by every way of drawing batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.accountants import Row, SamplingRow
from hockeystick.accountants.comparison import Truth, quoted
from hockeystick.cli import as_json as programs
from hockeystick.cli import command, flags, layout, of_group, plans, questions
from hockeystick.cli.layout import Sheet
from hockeystick.cli.progress import bar, seconds, waiting
from hockeystick.cli.questions import Question
from hockeystick.io.plan_file import PlanFile
from hockeystick.numerics import numerals as numerals
from hockeystick.results import Certified

_SAMPLINGS: Final = "Compare ways of drawing batches of the same size, noise and number."
_LEGEND: Final = (
    "exact: proven, and as narrow as floating point or the tolerance allows. bound: proven, but "
    "loose. approximation: no guarantee. Ratios are to the proven upper end."
)
_OF_SAMPLINGS: Final = (
    "Every row has the plan's noise, batch size and number of steps, and is proven for batches "
    "that are drawn as it says, and for no others. Compare under one adjacency: it says what is "
    "protected."
)


@click.command(cls=command.Command)
@plans.plan_words
@click.option("--samplings", is_flag=True, help=_SAMPLINGS)
@of_group.group_flag
@flags.question_flag("delta")
@flags.question_flag("epsilon")
@flags.json_flag
@flags.verbose_flag
def compare(
    words: tuple[str, ...],
    samplings: bool,
    group: str | None,
    delta: str | None,
    epsilon: str | None,
    as_json: bool,
) -> None:
    """Print what each accountant says of a plan."""
    file = plans.words_of(words).file(group=group)
    at = questions.one_question({"delta": delta, "epsilon": epsilon}, file)
    if samplings:
        _compare_samplings(file, at, as_json)
        return
    with waiting("asking each accountant"):
        rows = hs.compare(file.plan, **{at.name: at.value})
    questions.refuse_infinite(at, *(row.answer for row in rows))
    if as_json:
        click.echo(programs.comparison(file, at, rows, hs.__version__))
    else:
        _sheet(file, at, rows).show()


def _compare_samplings(file: PlanFile, at: Question, as_json: bool) -> None:
    """Print what each way of drawing batches would cost."""
    plan: Any = file.plan
    with bar("asking for each sampling") as tell:
        rows = hs.accountants.compare_samplings(plan, **{at.name: at.value}, progress=tell)
    if as_json:
        click.echo(programs.samplings(file, at, rows, hs.__version__))
    else:
        _sheet_of_samplings(file, at, rows).show()


def _asked(file: PlanFile, at: Question) -> Sheet:
    """Return what is asked of which plan."""
    sheet = Sheet(file.title)
    sheet.fact("question", f"{at.quantity} at {at.name} = {numerals.plain(at.value)}")
    sheet.plan(file)
    sheet.setting(file.plan.adjacency)
    return sheet


def _sheet(file: PlanFile, at: Question, rows: Sequence[Row]) -> Sheet:
    """Return one line for each accountant that has an answer; with -v, why others have none."""
    sheet, truth = _asked(file, at), Truth.of(rows)
    table = layout.table("accountant", "kind", f">{at.quantity}", "next to truth", ">time")
    for row in rows:
        if row.answer is not None:
            kind = Text(row.kind, style=layout.KIND_STYLES[row.kind])
            time = Text(seconds(row.seconds), style="dim")
            table.add_row(row.accountant, kind, _number(row), _distance(row, truth), time)
    sheet.block(table)
    if sheet.is_verbose:
        proven = [f"{one.accountant}: {one.answer}" for one in rows if one.answer is not None]
        sheet.bullets("In full", proven)
        reasons = [f"{one.accountant}: {one.reason}" for one in rows if one.answer is None]
        sheet.bullets("No answer", reasons)
        theorems = hs.answers.sources_of_all(file.plan, rows)
        sheet.bullets("Sources", [f"{one.of}: {one.text}" for one in theorems])
        sheet.block(Text(f"\n{_LEGEND}", style="dim"))
    return sheet


def _number(row: Row) -> Text:
    """Return the number that a reader would take from a row."""
    if row.answer is None:
        return Text("none", style="dim")
    round_off = numerals.at_most if isinstance(row.answer, Certified) else numerals.nearest
    return Text(round_off(quoted(row.answer)), style="bold")


def _distance(row: Row, truth: Truth) -> Text:
    """Return the distance of a row from the proven interval."""
    if row.answer is None:
        return Text()
    value = quoted(row.answer)
    alike = value <= truth.upper or truth.looks_equal(value)
    style = "bold red" if truth.is_above(value) else "green" if alike else "yellow"
    return Text(truth.beside(row.answer), style=style)


def _sheet_of_samplings(file: PlanFile, at: Question, rows: Sequence[SamplingRow]) -> Sheet:
    """Return one line for each adjacency and sampling that has an answer; with -v for each."""
    sheet = _asked(file, at)
    table = layout.table("adjacency", "sampling", f">{at.quantity}", "proven", ">time")
    for row in rows:
        time = Text(seconds(row.seconds), style="dim")
        if row.answer is not None:
            low, high = row.answer.lower, row.answer.upper
            number = Text(numerals.headline(low, high), style="bold")
            told = layout.between(low, high) if high < math.inf else "no upper end"
            table.add_row(row.adjacency, row.sampling, number, told, time)
    sheet.block(table)
    if sheet.is_verbose:
        reasons = [
            f"{row.sampling}, {row.adjacency}: {row.reason}" for row in rows if row.answer is None
        ]
        sheet.bullets("No answer", reasons)
        sheet.block(Text(f"\n{_OF_SAMPLINGS}", style="dim"))
    return sheet
