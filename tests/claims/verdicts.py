"""Verdicts, computed from a claim's relation and the numbers that were found."""

from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final, Literal, final

from tests.claims.found import Found

Relation = Literal["equals", "multiple-of", "at-most", "at-least", "for-all"]

# Of a number itself: what its last digits may differ by where two routes lead to the same.
_ROUND_OFF: Final = 1e-9
# Of a number itself: how wide a proven interval may be that is to confirm a formula.
_WIDEST: Final = 1e-6
# The largest denominator of a unit in terms of a printed number's last digit.
_LARGEST: Final = 1000


@final
class Verdict(StrEnum):
    """What became of a claim.

    - reproduces: its own value rounds to the digits printed, or the truth is as stated.
    - consistent: the document's method leaves a number open, such as how many rounds there were,
      and some choice of it gives the digits printed. Our number is fitted, so that agreement proves
      little: ``share_of_multiples`` says how often an arbitrary number would agree.
    - reproduces only with: so it is under a condition that the document does not state, or breaks,
      and it is not without it. Both are computed.
    - does not reproduce: the document's own method gives another number.
    - statement invalid: a proven value contradicts it.
    - undecided: the proven interval is too wide to tell.
    """

    REPRODUCES = "reproduces"
    CONSISTENT = "consistent"
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
    half = Decimal(1).scaleb(_exponent(printed)) / 2
    gap = abs(Decimal(value) - shown)
    return bool(gap <= half + abs(shown) * Decimal(_ROUND_OFF) / 1000)


def _exponent(printed: str) -> int:
    exponent = Decimal(printed).as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def is_rounded_multiple(unit: float, printed: str) -> bool:
    """Return whether a printed number is a whole multiple of a unit, rounded.

    Example:
        >>> is_rounded_multiple(0.22, "5.7"), is_rounded_multiple(0.22, "5.8")
        (True, False)
    """
    return rounds_to(unit * round(float(printed) / unit), printed)


def share_of_multiples(unit: float, printed: str) -> float:
    """Return the share of the numbers with as many decimals that are rounded multiples of a unit.

    With r units of the last digit to a multiple it is 1/r; where ``r = p/q`` and q is even, one
    multiple in q lies half way between two numbers, and both are counted.

    Example:
        >>> round(share_of_multiples(0.22, "5.7"), 3), round(share_of_multiples(0.55, "57.8"), 3)
        (0.455, 0.273)
    """
    last = Fraction(10) ** _exponent(printed)
    ratio = (Fraction(unit) / last).limit_denominator(_LARGEST)
    halves = 0 if ratio.denominator % 2 else Fraction(1, ratio.denominator)
    return min(1.0, float((1 + halves) / ratio))


def judge(
    relation: Relation,
    printed: str,
    *,
    own: Found | None,
    certified: Found | None,
    without: Found | None,
    own_without: Found | None = None,
) -> Verdict:
    """Return the verdict on a claim.

    A figure that "equals" is held against the value by its document's own method, and one that is a
    "multiple-of" against the multiples of that value. A bound, printed or else computed as the
    document has it, is held against the proven value. A formula "for-all" parameters is held
    against the proven value at some: the interval must be narrow, and hold it.
    It is "undecided" where the proven interval holds the claimed bound. ``without`` is the same as
    is judged, and ``own_without`` what is stated if that is not ``own``, without the condition.
    """
    if relation == "equals":
        assert own is not None
        return _figure(printed, own, without)
    if relation == "multiple-of":
        assert own is not None
        fits = is_rounded_multiple(own.upper, printed)
        return Verdict.CONSISTENT if fits else Verdict.DIFFERS
    assert certified is not None
    claimed = own or Found(float(printed), float(printed), "exact")
    verdict = _statement(relation, certified, claimed)
    if without is None or verdict is not Verdict.REPRODUCES:
        return verdict
    other = _statement(relation, without, own_without or claimed)
    return Verdict.ONLY_WITH if other is Verdict.INVALID else other


def _statement(relation: Relation, truth: Found, claimed: Found) -> Verdict:
    """Return the verdict on a statement without a condition.

    It is invalid where the truth is proven to be beyond the bound, and reproduces where it is
    proven not to be; a formula's value must agree with a truth that is known to many digits.
    """
    room = _ROUND_OFF * abs(claimed.upper)
    above = truth.lower > claimed.upper + room
    below = truth.upper < claimed.lower - _ROUND_OFF * abs(claimed.lower)
    if relation == "at-most":
        fails, holds = above, truth.upper <= claimed.upper + room
    elif relation == "at-least":
        fails, holds = below, truth.lower >= claimed.lower - room
    else:
        fails = above or below
        holds = truth.upper - truth.lower <= _WIDEST * abs(claimed.upper)
    if fails:
        return Verdict.INVALID
    return Verdict.REPRODUCES if holds else Verdict.UNDECIDED


def _figure(printed: str, own: Found, without: Found | None) -> Verdict:
    if not rounds_to(own.upper, printed):
        return Verdict.DIFFERS
    if without is None or rounds_to(without.upper, printed):
        return Verdict.REPRODUCES
    return Verdict.ONLY_WITH
