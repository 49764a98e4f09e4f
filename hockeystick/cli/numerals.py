"""Numbers as text: read without losing their range, shown rounded to the safe side."""

from __future__ import annotations

import math
import re
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
)
from typing import Final

HEADLINE_DIGITS: Final = 6
_FEWEST_DIGITS: Final = 3
_FLOAT_DIGITS: Final = 17
_MOST_DIGITS: Final = 2000
_DIGITS_BEYOND_GAP: Final = 2


def parse(text: str) -> float | str:
    """Return the number that a text stands for; the text itself where it is not one to a float.

    The text is returned for what is no number, and for a number that a float would turn into inf
    or 0. The library's own checks then refuse it by the name of the parameter.
    """
    try:
        return int(text)
    except ValueError:
        return parse_real(text)


def parse_real(text: str) -> float | str:
    """Return the float that a text stands for, or the text where there is none."""
    try:
        value = float(text)
    except ValueError:
        return text
    overflowed = math.isinf(value) and "inf" not in text.lower()
    vanished = value == 0 and re.search("[1-9]", text.lower().partition("e")[0])
    return text if overflowed or vanished else value


def exact(value: float | str) -> Decimal:
    """Return the decimal that a float, or a text of digits, stands for, unrounded."""
    return Decimal(value)


def nearest(value: float | str, digits: int = HEADLINE_DIGITS) -> str:
    """Return the value rounded to the nearest, for what is no bound."""
    return _rounded(exact(value), digits, ROUND_HALF_EVEN)


def at_most(value: float | str, digits: int = HEADLINE_DIGITS) -> str:
    """Return the value rounded up: true of whatever is at most the value."""
    return _rounded(exact(value), digits, ROUND_CEILING)


def at_least(value: float | str, digits: int = HEADLINE_DIGITS) -> str:
    """Return the value rounded down: true of whatever is at least the value."""
    return _rounded(exact(value), digits, ROUND_FLOOR)


def interval(lower: float | str, upper: float | str) -> tuple[str, str]:
    """Return both ends rounded outwards, with enough digits to tell them apart and two more."""
    low, high = exact(lower), exact(upper)
    digits = _FLOAT_DIGITS if low == high else _FEWEST_DIGITS
    if low != high and high.is_finite():
        gap = Context(prec=_MOST_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN).subtract(high, low)
        digits = max(digits, high.adjusted() - gap.adjusted() + _DIGITS_BEYOND_GAP)
    return _rounded(low, digits, ROUND_FLOOR), _rounded(high, digits, ROUND_CEILING)


def plain(value: float) -> str:
    """Return a float with all its digits, a whole one without its fraction."""
    return repr(value).removesuffix(".0")


def seconds(value: float) -> str:
    """Return a duration in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return (
                f"{value / size:.2g} {unit}" if value < 100 * size else f"{value / size:.0f} {unit}"
            )
    return f"{value * 1e6:.0f} us"


def _rounded(value: Decimal, digits: int, rounding: str) -> str:
    """Return the value in so many significant digits, rounded in the given direction."""
    if not value.is_finite():
        return "inf"
    shown = Context(digits, rounding, MIN_EMIN, MAX_EMAX, traps=[]).plus(value)
    if shown == 0:
        return "0"
    return f"{shown:f}" if -4 <= shown.adjusted() < _FLOAT_DIGITS else f"{shown:e}"
