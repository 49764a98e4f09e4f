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
    """Rows, in their order: a tuple that also is a table.

    Example:
        >>> import hockeystick as hs
        >>> rows = hs.compare(hs.Laplace(2), delta=0.1)
        >>> rows[0].accountant, len(rows)
        ('closed-form', 13)
    """

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
        return as_html(list(map(_cells, self._columns())))


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a row without rows inside of it: what is in one has its name in front."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        inner = flat(value, f"{prefix}{name}_") if isinstance(value, Mapping) else None
        columns |= {f"{prefix}{name}": value} if inner is None else inner
    return columns


def _cells(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return columns as texts: a lower end rounded down, an upper one up, what else as it is."""
    rounded = {"lower": at_least, "upper": at_most}

    def text(name: str, value: Any) -> str:
        if value is None:
            return ""
        write = rounded.get(name.rpartition("_")[2]) if isinstance(value, float) else None
        return str(value) if write is None else write(value)

    return {name: text(name, value) for name, value in columns.items()}


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
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def as_html(rows: Sequence[Mapping[str, str]]) -> str:
    # Notebooks put texts to the right; "~ 1.1" is not to be broken into two lines.
    style = ' style="text-align:left"'

    def line(cells: Sequence[str], tag: str) -> str:
        texts = (html.escape(one).replace("~ ", "~&nbsp;") for one in cells)
        return f"<tr>{''.join(f'<{tag}{style}>{one}</{tag}>' for one in texts)}</tr>"

    head = line(tuple(rows[0]), "th") if rows else ""
    body = "".join(line(tuple(row.values()), "td") for row in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
