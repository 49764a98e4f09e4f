"""One answer for each combination of values, for people: a table in a panel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.answers import Decision, in_words
from hockeystick.answers.wording import loader_notes
from hockeystick.cli.panels import render
from hockeystick.cli.results.rows import Row, Rows
from hockeystick.numerics import numerals as numerals
from hockeystick.results import Certified

# More sentences that only some rows rest on are those of the first row alone.
_MOST_SENTENCES: Final = 6
_DIGITS: Final = 9
_DECISIONS: Final = {Decision.MEETS: "green", Decision.MISSES: "red", Decision.UNDECIDED: "red"}


def panel(found: Rows) -> RenderableType:
    """Return the panel: the table, what is to be known of rows, and what they rest on."""
    answered = found.answered
    facts = render.facts_table()
    _add_question(facts, found)
    blocks: list[RenderableType] = [facts, Text(), _table(found), Text(), _about(found)]
    shared, others = _assumptions(answered)
    blocks += render.listed("Every row holds if", shared)
    if len(others) > _MOST_SENTENCES:
        first = _place(found, answered[0])
        own = [one for one in answered[0].assumptions if one not in shared]
        blocks += render.listed(f"Row {first} holds if besides", own)
        blocks += [Text("\nWhat each of the other rows rests on besides: --json", style="dim")]
    else:
        named = [f"{_rows(found, rows)}: {text}" for text, rows in others.items()]
        blocks += render.listed("and", named)
    return render.framed(found.title, *blocks)


def _add_question(facts: Table, found: Rows) -> None:
    """Add what was asked, and the budget if there is one."""
    at = found.answered[0].at
    if at is not None and at.name not in (one.name for one in found.several):
        facts.add_row("asked", f"{found.quantity} at {at.name} = {numerals.plain(at.value)}")
    if any(isinstance(one.answer, Certified) for one in found.rows):
        facts.add_row("proven", f"each {found.quantity} lies between its 'at least' and 'at most'")
    if found.at_most is not None:
        facts.add_row("budget", f"{found.quantity} at most {numerals.plain(found.at_most)}")


def _table(found: Rows) -> Table:
    """Return one row per combination of values."""
    table = render.bare_table()
    if len(found.rows) > 1:
        table.add_column("row", justify="right", style="dim")
    for one in found.several:
        table.add_column(one.name.replace("_", " "), justify="right")
    for heading in (found.quantity, "at least", "at most"):
        table.add_column(heading)
    if found.at_most is not None:
        table.add_column("budget")
    for index, row in enumerate(found.rows, 1):
        first = [Text(str(index))] if len(found.rows) > 1 else []
        cells = [*first, *map(Text, row.values.values()), *_answer(row)]
        table.add_row(*cells, *([_decision(row)] if found.at_most is not None else []))
    return table


def _answer(row: Row) -> tuple[Text, Text, Text]:
    """Return the cells of a row's answer."""
    if row.answer is None:
        return Text("none", style="dim"), Text(""), Text("")
    if not isinstance(row.answer, Certified):
        about = f"about {numerals.nearest(row.answer.value)}"
        return Text(about, style="red"), Text("nothing", style="red"), Text("")
    lower, upper = row.answer.lower, row.answer.upper
    ends = (
        numerals.interval(lower, upper)
        if numerals.is_mpf(upper)
        else (numerals.at_least(lower, _DIGITS), numerals.at_most(upper, _DIGITS))
    )
    quoted = Text(numerals.headline(lower, upper), style="bold")
    return quoted, Text(ends[0]), Text(ends[1])


def _decision(row: Row) -> Text:
    """Return whether a row is within the budget."""
    if row.decided is None:
        return Text("none", style="red")
    decision = row.decided.decision
    if row.decided.reservation:
        return Text(f"{decision}, but promises little", style="yellow")
    return Text(str(decision), style=_DECISIONS[decision])


def _about(found: Rows) -> Table:
    """Return why rows have no answer, what to know besides, and the plan of the first row."""
    facts = render.facts_table()
    errors = _grouped(found.rows, lambda one: () if one.error is None else (one.error,))
    for text, rows in errors.items():
        facts.add_row("no answer", render.one_line(f"{_rows(found, rows)}: {text}"))
    for text, rows in _grouped(found.rows, lambda one: one.cautions).items():
        every = len(rows) == len(found.rows)
        told = text if every else f"{_rows(found, rows)}: {text}"
        facts.add_row("caution", Text(told, style="yellow"))
    first = found.answered[0]
    if first.file is None or first.answer is None:
        return facts
    place = _place(found, first)
    for index, line in enumerate(in_words(first.file.plan)):
        facts.add_row(
            "and" if index else "plan", Text(line if index else f"of row {place}: {line}")
        )
    _add_loaders(facts, found)
    adjacencies = _grouped(found.answered, _adjacency)
    accountants = _grouped(found.answered, _accountant)
    for label, grouped in (("adjacency", adjacencies), ("accountant", accountants)):
        for text, rows in grouped.items():
            one = text if len(grouped) == 1 else f"{_rows(found, rows)}: {text}"
            facts.add_row(label, one)
    render.add_about(facts, first.file)
    return facts


def _add_loaders(facts: Table, found: Rows) -> None:
    """Add what loaders make of the batches, of the first size alone where there are many."""
    notes = list(_grouped(found.answered, _loaders).items())
    several = len(notes) <= _MOST_SENTENCES
    others = "" if several else f"; and likewise for {len(notes) - 1} other sizes"
    for text, rows in notes if several else notes[:1]:
        facts.add_row("loader", f"{_rows(found, rows)}: {text}{others}")


def _adjacency(row: Row) -> tuple[str, ...]:
    """Return the neighbours of a row."""
    return () if row.answer is None else (row.answer.adjacency or render.ANY_ADJACENCY,)


def _loaders(row: Row) -> tuple[str, ...]:
    """Return what a loader makes of a row's batches."""
    return () if row.file is None else loader_notes(row.file.plan)


def _accountant(row: Row) -> tuple[str, ...]:
    """Return the accountant of a row."""
    return () if row.answer is None else (row.answer.accountant,)


def _assumptions(rows: Sequence[Row]) -> tuple[list[str], dict[str, list[Row]]]:
    """Return what all rows rest on, and what only some do, with these."""
    grouped = _grouped(rows, lambda one: one.assumptions)
    shared = [text for text, own in grouped.items() if len(own) == len(rows)]
    return shared, {text: own for text, own in grouped.items() if text not in shared}


def _grouped(rows: Iterable[Row], texts_of: Callable[[Row], Iterable[str]]) -> dict[str, list[Row]]:
    """Return the rows of each text, in the order in which the texts first come."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        for text in texts_of(row):
            found.setdefault(text, []).append(row)
    return found


def _place(found: Rows, row: Row) -> int:
    """Return the number of a row in the table."""
    return next(place for place, one in enumerate(found.rows, 1) if one is row)


def _rows(found: Rows, rows: Sequence[Row]) -> str:
    """Return which rows these are."""
    places = sorted(_place(found, one) for one in rows)
    if len(places) == 1:
        return f"row {places[0]}"
    if places == list(range(places[0], places[-1] + 1)):
        return f"rows {places[0]} to {places[-1]}"
    return f"rows {', '.join(map(str, places))}"
