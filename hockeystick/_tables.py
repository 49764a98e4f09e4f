"""Rows of answers: a tuple of them, which can be shown and handed over as a table."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from hockeystick.errors import HockeystickError
from hockeystick.numerics.numerals import at_least, at_most, headline, interval, nearest
from hockeystick.results import Approximate, Certified

_Row = TypeVar("_Row")


class Rows(tuple[_Row, ...]):
    """Rows, in their order: a tuple that also is a table."""

    __slots__ = ()

    def to_dataframe(self) -> Any:
        """Return the rows as a ``pandas.DataFrame``, one column for each thing that they say.

        Raises:
            HockeystickError: If pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            message = "data frames need pandas: pip install 'hockeystick[pandas]'"
            raise HockeystickError(message) from None
        return pandas.DataFrame(self._columns())

    def _columns(self) -> list[dict[str, Any]]:
        rows: Any = self
        return [flat(row.as_dict()) for row in rows]

    def _repr_html_(self) -> str:
        """Return the rows for a notebook; proven ends are rounded outwards."""
        rows = self._columns()
        return as_html([{key: _cell(key, one) for key, one in row.items()} for row in rows])


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a row without rows inside of it: what is in one has its name in front."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        inner = flat(value, f"{prefix}{name}_") if isinstance(value, Mapping) else None
        columns |= {f"{prefix}{name}": value} if inner is None else inner
    return columns


def _cell(name: str, value: Any) -> str:
    """Return a value as a text: a lower end rounded down, an upper one up, what else as it is."""
    write = {"lower": at_least, "upper": at_most}.get(name.rpartition("_")[2])
    if write is not None and isinstance(value, float):
        return write(value)
    return "" if value is None else str(value)


def columns_of(answer: Certified | Approximate | None) -> dict[str, Any]:
    """Return an answer as columns: its three numbers, the middle one of which proves nothing."""
    if isinstance(answer, Certified):
        return {"lower": answer.lower, "estimate": answer.estimate, "upper": answer.upper}
    return {"lower": None, "estimate": None if answer is None else answer.value, "upper": None}


def cells_of(answer: Certified | Approximate | None, reason: str) -> tuple[str, str]:
    """Return an answer as two cells: the number to quote, rounded up, and what is proven."""
    if answer is None:
        return "", reason
    if isinstance(answer, Approximate):
        return f"~ {nearest(answer.value)}", "approximation, no guarantee"
    lower, upper = interval(answer.lower, answer.upper)
    return headline(answer.lower, answer.upper), f"proven in [{lower}, {upper}]"


def aligned(rows: Sequence[Mapping[str, str]]) -> str:
    lines = [tuple(rows[0]), *(tuple(row.values()) for row in rows)] if rows else []
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (map(str.ljust, line, widths) for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def as_html(rows: Sequence[Mapping[str, str]]) -> str:
    # Notebooks put texts to the right; "~ 1.1" is not to be broken into two lines.
    style = ' style="text-align:left"'

    def line(cells: Sequence[str], tag: str) -> str:
        texts = (html.escape(one).replace("~ ", "~&nbsp;") for one in cells)
        return f"<tr>{''.join(f'<{tag}{style}>{one}</{tag}>' for one in texts)}</tr>"

    head = line(tuple(rows[0]), "th") if rows else ""
    body = "".join(line(tuple(row.values()), "td") for row in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
