"""What each way of drawing batches would cost, as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.accountants import SamplingRow
from hockeystick.cli.describe import Question
from hockeystick.cli.durations import seconds
from hockeystick.cli.panels.render import add_plan, add_text, bare_table, facts_table, one_line
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import Sampling
from hockeystick.numerics import numerals as numerals

# What is said of more rows than these is said once.
_OFTEN: Final = 4
_LEGEND: Final = (
    "All rows have the plan's noise, batch size and number of steps. An adjacency says what is "
    "protected: compare samplings under one of them. An epsilon is proven for batches that are "
    "drawn as its row says, and for no others."
)
_FIXED_SIZE: Final = (
    "Of a fixed size, a batch without an example has another one in its place, so that the sum "
    "moves by up to twice the clipping norm: with the same noise it costs more than poisson, where "
    "the batch is only smaller."
)


def panel(file: PlanFile, at: Question, rows: Sequence[SamplingRow]) -> RenderableType:
    """Return the table of all samplings, under a heading that says what is asked."""
    facts = facts_table()
    facts.add_row("question", f"{at.quantity} at {at.name} = {numerals.plain(at.value)}")
    add_plan(facts, file)
    add_text(facts, "notes", file.notes)
    heading = one_line(file.title or "hockeystick", "bold")
    fixed = any(row.sampling is Sampling.FIXED_SIZE and row.answer is not None for row in rows)
    legend = Text(f"{_LEGEND}\n{_FIXED_SIZE}" if fixed else _LEGEND, style="dim")
    often = _often(rows)
    notes = [Text(f"\nnone: {reason}.") for reason in often]
    return Group(heading, Text(), facts, Text(), _table(at, rows, often), *notes, Text(), legend)


def _often(rows: Sequence[SamplingRow]) -> list[str]:
    """Return why so many rows have no answer that it is said once, below them."""
    counted = Counter(row.reason for row in rows if row.answer is None)
    return [reason for reason, times in counted.items() if times > _OFTEN]


def _table(at: Question, rows: Sequence[SamplingRow], often: Sequence[str]) -> Table:
    """Return one row per adjacency and sampling."""
    table = bare_table()
    for column in ("adjacency", "sampling", at.quantity, "proven interval, or why there is none"):
        table.add_column(column)
    table.add_column("time", justify="right")
    before = None
    for index, row in enumerate(rows):
        last = index + 1 == len(rows) or rows[index + 1].adjacency != row.adjacency
        name = "" if row.adjacency == before else row.adjacency
        time = Text(seconds(row.seconds), style="dim")
        table.add_row(Text(name), Text(row.sampling), *_answer(row, often), time, end_section=last)
        before = row.adjacency
    return table


def _answer(row: SamplingRow, often: Sequence[str]) -> tuple[Text, Text]:
    """Return the number to quote, and what is proven of it."""
    if row.answer is None:
        told = "said below" if row.reason in often else row.reason
        return Text("none", style="dim"), Text(told, style="dim")
    lower, upper = numerals.interval(row.answer.lower, row.answer.upper)
    proven = f"from {lower} to {upper}" if lower != upper else f"exactly {lower}"
    return Text(numerals.headline(row.answer.lower, row.answer.upper), style="bold"), Text(proven)
