"""Verdicts, computed from a claim's relation and the numbers that were found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Final, Literal, final

from hockeystick.claims.found import Found

Relation = Literal["equals", "at-most", "at-least", "for-all"]

# Of a number itself: what its last digits may differ by where two routes lead to the same.
_ROUND_OFF: Final = 1e-9


@final
class Verdict(StrEnum):
    """What became of a claim.

    - reproduces: its own value rounds to the digits printed, or the truth is as stated.
    - reproduces only with: so it is under a condition that the document does not state, or breaks,
      and it is not without it. Both are computed.
    - does not reproduce: the document's own method gives another number.
    - statement invalid: a proven value contradicts it.
    - undecided: the proven interval is too wide to tell.
    """

    REPRODUCES = "reproduces"
    ONLY_WITH = "reproduces only with"
    DIFFERS = "does not reproduce"
    INVALID = "statement invalid"
    UNDECIDED = "undecided"


def rounds_to(value: float, printed: str) -> bool:
    """Return whether a number, rounded to the digits of a printed one, is the printed one.

    A half may be rounded up or down.

    Example:
        >>> rounds_to(2.7110298, "2.71"), rounds_to(57.75, "57.8"), rounds_to(0.4999, "0.50")
        (True, True, True)
        >>> rounds_to(2.7151, "2.71"), rounds_to(0.4949, "0.50")
        (False, False)
    """
    shown = Decimal(printed)
    exponent = shown.as_tuple().exponent
    assert isinstance(exponent, int)
    half = Decimal(1).scaleb(exponent) / 2
    gap = abs(Decimal(value) - shown)
    return bool(gap <= half + abs(shown) * Decimal(_ROUND_OFF) / 1000)


def judge(
    relation: Relation,
    printed: str,
    *,
    own: Found | None,
    certified: Found | None,
    without: Found | None,
) -> Verdict:
    """Return the verdict on a claim.

    A figure that "equals" is held against the value by its document's own method. A bound, printed
    or else computed as the document has it, is held against the proven value. A formula "for-all"
    parameters is held against the proven value at some: it must lie in the interval.

    Args:
        relation: "equals", "at-most", "at-least" or "for-all".
        printed: The published figure as printed; "" where a formula was published.
        own: The value by the document's own method, under the condition if there is one.
        certified: The proven value, under the condition if there is one.
        without: The same as is judged (``own`` for a figure, ``certified`` for a statement) without
            the condition; None where there is none.

    Returns:
        The verdict; "undecided" where the proven interval holds the claimed bound.
    """
    if relation == "equals":
        assert own is not None
        return _figure(printed, own, without)
    assert certified is not None
    claimed = own or Found(float(printed), float(printed), "exact")
    holds, fails = _TESTS[relation]
    if without is not None:
        if holds(certified, claimed) and fails(without, claimed):
            return Verdict.ONLY_WITH
        return Verdict.REPRODUCES if holds(without, claimed) else Verdict.UNDECIDED
    if fails(certified, claimed):
        return Verdict.INVALID
    return Verdict.REPRODUCES if holds(certified, claimed) else Verdict.UNDECIDED


def _figure(printed: str, own: Found, without: Found | None) -> Verdict:
    """Return the verdict on a printed figure."""
    if not rounds_to(own.upper, printed):
        return Verdict.DIFFERS
    if without is None or rounds_to(without.upper, printed):
        return Verdict.REPRODUCES
    return Verdict.ONLY_WITH


def _is_at_most(truth: Found, claimed: Found) -> bool:
    """Return whether the truth is proven to be at most what is claimed."""
    return truth.upper <= claimed.upper + _ROUND_OFF * abs(claimed.upper)


def _is_above(truth: Found, claimed: Found) -> bool:
    """Return whether the truth is proven to be above what is claimed."""
    return truth.lower > claimed.upper + _ROUND_OFF * abs(claimed.upper)


def _is_at_least(truth: Found, claimed: Found) -> bool:
    """Return whether the truth is proven to be at least what is claimed."""
    return truth.lower >= claimed.lower - _ROUND_OFF * abs(claimed.lower)


def _is_below(truth: Found, claimed: Found) -> bool:
    """Return whether the truth is proven to be below what is claimed."""
    return truth.upper < claimed.lower - _ROUND_OFF * abs(claimed.lower)


def _is_within(truth: Found, claimed: Found) -> bool:
    """Return whether the formula's value agrees with the truth, which is known to as much."""
    return not _is_apart(truth, claimed)


def _is_apart(truth: Found, claimed: Found) -> bool:
    """Return whether the formula's value is proven to be wrong."""
    return _is_above(truth, claimed) or _is_below(truth, claimed)


_Test = Callable[[Found, Found], bool]
_TESTS: Final[Mapping[str, tuple[_Test, _Test]]] = {
    "at-most": (_is_at_most, _is_above),
    "at-least": (_is_at_least, _is_below),
    "for-all": (_is_within, _is_apart),
}
