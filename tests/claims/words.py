"""Numbers and counts of checked claims in words, for every kind of page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from hockeystick.numerics import numerals as numerals
from tests.claims import Checked, Found, Verdict

_DIGITS: Final = 6
_COUNTED: Final = {
    Verdict.REPRODUCES: "reproduces",
    Verdict.CONSISTENT: "consistent",
    Verdict.ONLY_WITH: "only with a condition",
    Verdict.DIFFERS: "does not reproduce",
    Verdict.INVALID: "invalid",
    Verdict.UNDECIDED: "undecided",
}
_BOUNDS: Final = {
    "equals": "{}",
    "multiple-of": "{}",
    "at-most": "<= {}",
    "at-least": ">= {}",
    "for-all": "= {}",
}


def shown(found: Found) -> str:
    """Return a number: rounded, with its ends outward where they differ, and its quantity."""
    return f"{_value(found)} ({found.quantity})" if found.quantity else _value(found)


def cells(row: Checked) -> tuple[str, str, str]:
    """Return the paper's value, that by its own method and the certified one.

    What was judged without the claim's condition is told beside what was judged with it.
    """
    claim = row.claim
    own, certified = _own(row), "-" if row.certified is None else shown(row.certified)
    paper = _BOUNDS[claim.relation].format(claim.published or "own")
    if claim.relation == "multiple-of":
        return paper, f"multiples of {own}", certified
    if claim.relation == "equals":
        return paper, own + _without(row, row.without), certified
    return paper, own + _without(row, row.own_without), certified + _without(row, row.without)


def _without(row: Checked, found: Found | None) -> str:
    """Return a number without the claim's condition, if that is what the verdict is about."""
    if found is None or row.verdict is not Verdict.ONLY_WITH:
        return ""
    return f"; without: {_value(found)}"


def counted(rows: Sequence[Checked]) -> str:
    """Return the number of claims, and that of each verdict."""
    counts = Counter(row.verdict for row in rows)
    each = [f"{_COUNTED[verdict]} {counts[verdict]}" for verdict in Verdict if counts[verdict]]
    claims = "claim" if len(rows) == 1 else "claims"
    return f"{len(rows)} {claims}: {', '.join(each)}"


def _own(row: Checked) -> str:
    """Return the own value, and its quantity where it is another one than the certified one's."""
    own, certified = row.own, row.certified
    if own is None:
        return "-"
    same = certified is not None and own.quantity == certified.quantity
    return _value(own) if same else shown(own)


def _value(found: Found) -> str:
    """Return the number alone."""
    if found.kind == "approximation":
        return f"~{_rounded(found.upper)}"
    if found.lower == found.upper or found.kind == "exact":
        return _rounded(found.upper)
    lower, upper = _outward(found.lower, up=False), _outward(found.upper, up=True)
    narrow = abs(found.upper) * 10.0**-_DIGITS
    if math.isfinite(found.upper) and found.upper - found.lower <= narrow:
        return _rounded(found.upper)
    return f"{lower} to {upper}"


def _rounded(value: float) -> str:
    """Return a number to six digits, without trailing zeros."""
    if not math.isfinite(value):
        return str(value)
    if value == round(value) and abs(value) < 1e9:
        return str(int(value))
    return f"{value:.{_DIGITS}g}"


def _outward(value: float, *, up: bool) -> str:
    """Return a number to six digits, rounded in one direction."""
    if value < 0.0:
        return f"-{numerals.at_least(-value) if up else numerals.at_most(-value)}"
    return numerals.at_most(value) if up else numerals.at_least(value)
