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
    facts = render.facts_table()
    for label, value in _lines(conversion.result, conversion.asked):
        facts.add_row(label, value)
    kind = conversion.kind
    meaning = Text.assemble((kind, render.KIND_STYLES[kind]), f": {_MEANINGS[kind]}")
    facts.add_row("kind", meaning)
    facts.add_row("theorem", Text(conversion.theorem))
    if conversion.written:
        facts.add_row("from", Text(str(conversion.file.plan)))
    else:
        render.add_subject(facts, conversion.file, conversion.file.plan.adjacency)
    rests = render.listed(render.HOLDS_IF, conversion.assumptions)
    return render.framed(conversion.file.title, facts, *rests)


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
