"""How pages are written: tables in Markdown, and numbers as they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table: the first column is text, the others are set to the right."""
    lines = [head, [":--", *("--:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


def rounded_up(value: float, digits: int) -> str:
    """Return a number that is printed as a bound, no smaller than it is."""
    return f"{Context(prec=digits, rounding=ROUND_CEILING).create_decimal(value):f}"
