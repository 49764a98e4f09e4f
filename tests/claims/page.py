"""What became of published figures, as a page of documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from tests.claims import Checked, Verdict, catalogue
from tests.claims.words import cells, counted

_HEAD: Final = (
    "# Published figures, checked",
    "",
    "Made from `tests/claims`. The paper's value is as printed, *own* that by",
    "the document's own method, *certified* what is proven of the truth, rounding included. Where",
    "a bound is stated, *own* or the printed value is the bound. What is *consistent* is a",
    "multiple of *own*, fitted. Numbers have six digits; a ~ marks an approximation, of which",
    "nothing is proven.",
)
_COLUMNS: Final = ("claim", "paper", "own", "certified", "verdict")


def markdown_page(checked: Sequence[Checked]) -> str:
    """Return one section with a table for each document."""
    return "\n".join(_lines(checked))


def _lines(checked: Sequence[Checked]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield from _HEAD
    for key, group in groupby(checked, key=lambda one: one.claim.document):
        rows, document = list(group), catalogue().documents[key]
        yield from ("", f"## {document.title}", "")
        yield f"{document.authors}; {document.published}. {counted(rows)}."
        yield from ("", _row(_COLUMNS), _row("---" for _ in _COLUMNS))
        for one in rows:
            yield _row(_cells(one))


def _cells(one: Checked) -> tuple[str, ...]:
    """Return the cells of a claim."""
    claim, verdict = one.claim, one.words
    if claim.see and one.verdict is not Verdict.REPRODUCES:
        verdict += f" (see {claim.see})"
    place = f"`{claim.id}`<br>{_escaped(claim.place)}: {_escaped(claim.says)}"
    return (place, *map(_escaped, (*cells(one), verdict)))


def _escaped(text: str) -> str:
    """Return a text in which nothing is markup."""
    for letter in "\\|*_<`[~":
        text = text.replace(letter, f"\\{letter}")
    return text


def _row(cells: Sequence[str] | Iterator[str]) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(cells)} |"
