"""Docstrings as Sphinx reads them: what is indented below a sentence is a formula, kept as it is.

Docstrings here set a formula apart by four blanks. In reStructuredText that is a quotation, whose
lines run together; two colons before it make it literal text. A table in Markdown becomes one of
reStructuredText.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_SECTIONS = re.compile(r"\s*(Args|Returns|Raises|Guarantees|Edge cases|References|Examples?):$")
_ITEM = re.compile(r"\s*([-*]|\d+\.)\s")
_RULE = re.compile(r"\s*\|(\s*-+\s*\|)+$")
_DEEPER = 4


def setup(app: Any) -> dict[str, bool]:
    """Have docstrings rewritten before napoleon reads them."""
    app.connect("autodoc-process-docstring", _rewrite, priority=400)
    return {"parallel_read_safe": True}


def _rewrite(
    app: Any, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Set the formulas of a docstring apart."""
    lines[:] = list(set_apart(list(tables(lines))))


def tables(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with each table in Markdown as a list of rows."""
    inside = False
    for place, line in enumerate(lines):
        starts = not inside and _RULE.match(lines[place + 1] if place + 1 < len(lines) else "")
        if starts:
            inside = True
            yield from (
                f"{' ' * _indent(line)}.. list-table::",
                f"{' ' * _indent(line)}   :header-rows: 1",
                "",
            )
        if inside and not line.lstrip().startswith("|"):
            inside = False
        if inside and not _RULE.match(line):
            yield from _row(line)
        elif not inside:
            yield line


def _row(line: str) -> Iterator[str]:
    """Yield one row of a table, a cell on a line."""
    first = f"{' ' * _indent(line)}   * - "
    for cell in line.strip().strip("|").split("|"):
        yield first + cell.strip()
        first = first.replace("*", " ")


def set_apart(lines: list[str]) -> Iterator[str]:
    """Yield the lines, with two colons before each indented block that is no list and no code."""
    before, inside = "", -1
    for place, line in enumerate(lines):
        if not line.strip():
            yield line
            continue
        indent = _indent(line)
        if inside >= 0 and indent < inside:
            inside = -1
        if inside < 0 and _starts_formula(lines, place, before):
            inside = indent
            yield from (" " * _indent(before) + "::", "")
        yield line
        before = line


def _starts_formula(lines: list[str], place: int, before: str) -> bool:
    """Return whether a line, after a blank one, is four deeper than the sentence before it."""
    if place == 0 or lines[place - 1].strip() or not before:
        return False
    line = lines[place]
    deeper = _indent(line) - _indent(before) >= _DEEPER
    plain = not (_SECTIONS.match(before) or _ITEM.match(before) or before.endswith("::"))
    return deeper and plain and not line.lstrip().startswith((">>>", "- ", ".. ", "* - "))


def _indent(line: str) -> int:
    """Return how many blanks a line starts with."""
    return len(line) - len(line.lstrip())
