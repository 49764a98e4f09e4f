"""Two plans side by side, for people: one panel."""

from __future__ import annotations

from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from hockeystick.cli.panels import render
from hockeystick.cli.results.difference import Difference
from hockeystick.numerics import numerals as numerals

_STYLES: Final = {"less": "bold green", "more": "bold yellow", "the same": "bold"}


def panel(found: Difference) -> RenderableType:
    """Return the panel: both epsilons, the verdict, and what differs."""
    facts = render.facts_table()
    facts.add_row("question", Text(f"epsilon at delta = {numerals.plain(found.delta)}"))
    for label, name, answer in zip("AB", found.names, found.answers, strict=True):
        lower, upper = numerals.interval(answer.lower, answer.upper)
        shown = f"exactly {lower}" if lower == upper else f"at least {lower}\nat most  {upper}"
        facts.add_row(label, render.one_line(name, "bold"))
        facts.add_row("", Text(shown))
    low, high = numerals.interval(*found.ends)
    facts.add_row("verdict", Text(found.verdict, style=_STYLES.get(found.sign, "bold yellow")))
    facts.add_row("B minus A", Text(f"at least {low}\nat most  {high}"))
    if found.caution is not None:
        facts.add_row("caution", Text(found.caution, style="yellow"))
    for index, (path, (first, second)) in enumerate(found.changed.items()):
        facts.add_row(
            "" if index else "changed", Text(f"{path}: {_shown(first)} -> {_shown(second)}")
        )
    return render.framed(None, facts)


def _shown(value: Any) -> str:
    """Return a value as it is written, and a word where there is none."""
    return "none" if value is None else str(value)
