"""Conversions for people: a panel for one, a table for all."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hockeystick.cli.panels import render
from hockeystick.cli.results.conversion import Conversion, Conversions, numbers_of
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP, RenyiDP
from hockeystick.numerics import numerals as numerals

_FUNCTION: Final = "f"
# How near to few digits a number is shown with all that it has: 0.5000000000000001.
_ROUND_OFF: Final = 1e-12
_ALL_DIGITS: Final = 16
_LEGEND: Final = (
    "exact: no smaller number holds. bound: proven; a smaller one may hold. f(x): the least share "
    "of records that an attack misses at false-positive rate x. Numbers are rounded to the safe "
    "side; --to shows one notion."
)
_MEANINGS: Final = {
    "exact": "no smaller result holds for all that satisfy this",
    "bound": "proven; a smaller result may hold",
}
_ROUNDED_UP: Final = ", but for the last digits, which are rounded up"
_A_LARGER_F: Final = "proven; a larger f may hold"


def panel(conversion: Conversion) -> RenderableType:
    """Return the panel: the result, why it holds, and what it came from."""
    facts, kind = render.facts_table(), conversion.kind
    for label, value in _lines(conversion.result, conversion.asked):
        facts.add_row(label, value)
    for caution in conversion.cautions:
        facts.add_row("caution", Text(caution.text, style="yellow"))
    for line in _proven(conversion):
        facts.add_row("proven", line)
    of_f = kind == "bound" and isinstance(conversion.result, FDP)
    meaning = _A_LARGER_F if of_f else _MEANINGS[kind]
    if kind == "exact" and any(map(_is_off, conversion.found)):
        meaning += _ROUNDED_UP
    facts.add_row("kind", Text.assemble((kind, render.KIND_STYLES[kind]), f": {meaning}"))
    facts.add_row("theorem", Text(conversion.theorem))
    _add_source(facts, conversion)
    rests = render.listed(render.HOLDS_IF, conversion.assumptions)
    return render.framed(conversion.file.title, facts, *rests)


def table(every: Conversions) -> RenderableType:
    """Return one row for each notion, under what is converted: its numbers, or why it has none."""
    facts, rows = render.facts_table(), render.bare_table()
    _add_source(facts, every)
    for heading in ("notion", "says", "kind", "why"):
        rows.add_column(heading)
    for name, each in every.found.items():
        rows.add_row(Text(name), *_cells(each), end_section=True)
    title = render.one_line(every.file.title or "hockeystick", "bold")
    legend = Text(_LEGEND, style="dim")
    rests = render.listed(render.HOLDS_IF, every.assumptions)
    return Group(title, Text(), facts, Text(), rows, Text(), legend, *rests)


def _cells(one: Conversion | str) -> tuple[Text, Text, Text]:
    """Return what a notion says, how well it is known, and why it holds or says nothing."""
    if isinstance(one, str):
        return Text("none", style="dim"), Text(), Text(one, style="dim")
    lines = [line for line in _lines(one.result, one.asked) if line[0] != _FUNCTION]
    says = [Text(f"{label} ").append_text(value) for label, value in lines]
    cautions = [Text(caution.text, style="yellow") for caution in one.cautions]
    kind = Text(one.kind, style=render.KIND_STYLES[one.kind])
    return (
        Text("\n").join([*says, *_proven(one)]),
        kind,
        Text("\n").join([Text(one.theorem), *cautions]),
    )


def _add_source(facts: Table, of: Conversion | Conversions) -> None:
    """Add what is converted: as it was written, or what a plan file says about it."""
    if of.written:
        facts.add_row("from", Text(str(of.file.plan)))
    else:
        render.add_subject(facts, of.file, of.file.plan.adjacency)


def _proven(conversion: Conversion) -> list[Text]:
    """Return the proven ends of what was asked for, unless it is exact or there is no number."""
    least, upper = conversion.least, conversion.found
    if not upper or (conversion.kind == "exact" and least is None):
        return []
    if isinstance(conversion.result, RenyiDP):
        lower = [low for _, low in least["divergences"]] if least else [0.0] * len(upper)
        names = [f"order {numerals.plain(order)}: " for order, _ in conversion.result.divergences]
    else:
        lower, names = list((least or {"": 0.0}).values()), [""]
    rows = [
        (name, _ends(float(low), high)) for name, low, high in zip(names, lower, upper, strict=True)
    ]
    if len(rows) == 1:
        return [Text("\n".join(rows[0][1]))]
    return [Text(name + ", ".join(ends).replace("  ", " ")) for name, ends in rows]


def _ends(lower: float, upper: float) -> list[str]:
    """Return the ends of an interval in words; the upper one alone where no lower is known."""
    if lower == 0.0 < upper:
        return [f"at most {_quoted(upper)}"]
    low, high = numerals.interval(lower, upper)
    if low == high:
        return [f"exactly {low}"]
    return [f"at least {low}", f"at most  {_quoted(upper) if _is_off(upper) else high}"]


@singledispatch
def _lines(result: Mechanism, asked: tuple[str, ...]) -> list[tuple[str, Text]]:
    """Return labels and numbers of a guarantee: rounded up, but what was given as it was."""
    numbers = {name: float(value) for name, value in numbers_of(result).items()}
    found = [(name, _headline(value)) for name, value in numbers.items() if name not in asked]
    given = [(name, Text(numerals.plain(numbers[name]))) for name in numbers if name in asked]
    return found + [(f"at {name}", value) for name, value in given]


@_lines.register
def _(result: RenyiDP, asked: tuple[str, ...]) -> list[tuple[str, Text]]:
    pairs = result.divergences
    return [(f"tau at order {numerals.plain(order)}", _headline(size)) for order, size in pairs]


@_lines.register
def _(result: FDP, asked: tuple[str, ...]) -> list[tuple[str, Text]]:
    told = numbers_of(result)
    rows = [
        (
            f"f({numerals.plain(one['fpr'])})",
            Text(f"at least {numerals.at_least(one['fnr_lower'])}"),
        )
        for one in told["rates"]
    ]
    return [(_FUNCTION, Text(told["tradeoff"])), *rows]


def _headline(value: float) -> Text:
    """Return a number rounded up, to quote."""
    return Text(_quoted(value), style="bold green")


def _quoted(value: float) -> str:
    """Return a number rounded up; as it is, where it is by round-off above few digits."""
    digits = _ALL_DIGITS if _is_off(value) else numerals.HEADLINE_DIGITS
    return numerals.at_most(float(value), digits)


def _is_off(value: float) -> bool:
    """Return whether a number is one of few digits but for round-off."""
    number = float(value)
    few = float(numerals.nearest(number))
    return number != few and abs(number - few) <= _ROUND_OFF * number < math.inf
