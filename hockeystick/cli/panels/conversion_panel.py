"""A conversion for people: one panel."""

from __future__ import annotations

from functools import singledispatch
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from hockeystick.cli.panels import render
from hockeystick.cli.results.conversion import Conversion, numbers_of
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP, RenyiDP
from hockeystick.numerics import numerals as numerals

_MEANINGS: Final = {
    "exact": "no smaller result holds for all that satisfy this",
    "bound": "proven; a smaller result may hold",
}


def panel(conversion: Conversion) -> RenderableType:
    """Return the panel: the result, why it holds, and what it came from."""
    facts, kind = render.facts_table(), conversion.kind
    for label, value in _lines(conversion.result, conversion.asked):
        facts.add_row(label, value)
    for caution in conversion.cautions:
        facts.add_row("caution", Text(caution.text, style="yellow"))
    for line in _proven(conversion):
        facts.add_row("proven", line)
    meaning = Text.assemble((kind, render.KIND_STYLES[kind]), f": {_MEANINGS[kind]}")
    facts.add_row("kind", meaning)
    facts.add_row("theorem", Text(conversion.theorem))
    if conversion.written:
        facts.add_row("from", Text(str(conversion.file.plan)))
    else:
        render.add_subject(facts, conversion.file, conversion.file.plan.adjacency)
    rests = render.listed(render.HOLDS_IF, conversion.assumptions)
    return render.framed(conversion.file.title, facts, *rests)


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
        return [f"at most {numerals.at_most(upper)}"]
    low, high = numerals.interval(lower, upper)
    return [f"exactly {low}"] if low == high else [f"at least {low}", f"at most  {high}"]


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
    return [(f"order {numerals.plain(order)}", _headline(size)) for order, size in pairs]


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
    return [("f", Text(told["tradeoff"])), *rows]


def _headline(value: float) -> Text:
    """Return a number rounded up, to quote."""
    return Text(numerals.at_most(float(value)), style="bold green")
