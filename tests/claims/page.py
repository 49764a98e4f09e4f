"""What became of published figures, as a page of documentation."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from hockeystick.numerics import numerals
from tests.claims import Checked, Found, Verdict, documents

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
_DIGITS: Final = 6
_BOUNDS: Final = {"at-most": "<= {}", "at-least": ">= {}", "for-all": "= {}"}


def markdown_page(checked: Sequence[Checked]) -> str:
    """Return one section with a table for each document."""
    return "\n".join(_lines(checked))


def _lines(checked: Sequence[Checked]) -> Iterator[str]:
    yield from _HEAD
    for key, group in groupby(checked, key=lambda one: one.claim.document):
        rows, document = list(group), documents()[key]
        counts = Counter(row.verdict for row in rows)
        each = [f"{verdict} {counts[verdict]}" for verdict in Verdict if counts[verdict]]
        yield from ("", f"## {document['title']}", "")
        told = f"{document['authors']}; {document['published']}. {len(rows)} claims"
        yield f"{told}: {', '.join(each)}."
        yield from ("", _row(_COLUMNS), _row("---" for _ in _COLUMNS))
        for one in rows:
            yield _row(_cells(one))


def _row(cells: Sequence[str] | Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(one: Checked) -> tuple[str, ...]:
    claim, verdict = one.claim, one.words
    if claim.see and one.verdict is not Verdict.REPRODUCES:
        verdict += f" (see {claim.see})"
    place = f"`{claim.id}`<br>{_escaped(claim.place)}: {_escaped(claim.says)}"
    return (place, *map(_escaped, (*_numbers(one), verdict)))


def _escaped(text: str) -> str:
    for letter in "\\|*_<`[~":
        text = text.replace(letter, f"\\{letter}")
    return text


def _numbers(row: Checked) -> tuple[str, str, str]:
    """Return the paper's value, that by its own method and the certified one.

    What was judged without the claim's condition is told beside what was judged with it.
    """
    claim = row.claim
    own, certified = _own(row), "-" if row.certified is None else _shown(row.certified)
    paper = _BOUNDS.get(claim.relation, "{}").format(claim.published or "own")
    if claim.relation == "multiple-of":
        return paper, f"multiples of {own}", certified
    if claim.relation == "equals":
        return paper, own + _without(row, row.without), certified
    return paper, own + _without(row, row.own_without), certified + _without(row, row.without)


def _own(row: Checked) -> str:
    """Return the own value, and its quantity where it is another one than the certified one's."""
    if row.own is None:
        return "-"
    same = row.certified is not None and row.own.quantity == row.certified.quantity
    return _value(row.own) if same else _shown(row.own)


def _without(row: Checked, found: Found | None) -> str:
    """Return a number without the claim's condition, if that is what the verdict is about."""
    if found is None or row.verdict is not Verdict.ONLY_WITH:
        return ""
    return f"; without: {_value(found)}"


def _shown(found: Found) -> str:
    return f"{_value(found)} ({found.quantity})" if found.quantity else _value(found)


def _value(found: Found) -> str:
    if found.kind == "approximation":
        return f"~{_rounded(found.upper)}"
    narrow = abs(found.upper) * 10.0**-_DIGITS
    known = found.lower == found.upper or found.kind == "exact"
    if known or (math.isfinite(found.upper) and found.upper - found.lower <= narrow):
        return _rounded(found.upper)
    return f"{_outward(found.lower, up=False)} to {_outward(found.upper, up=True)}"


def _rounded(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == round(value) and abs(value) < 1e9:
        return str(int(value))
    return f"{value:.{_DIGITS}g}"


def _outward(value: float, *, up: bool) -> str:
    if value < 0.0:
        return f"-{numerals.at_least(-value) if up else numerals.at_most(-value)}"
    return numerals.at_most(value) if up else numerals.at_least(value)
