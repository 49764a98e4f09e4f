"""Numbers as text, every end of an interval rounded to its safe side."""

from __future__ import annotations

import math
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    localcontext,
)
from fractions import Fraction
from typing import Any, Final

HEADLINE_DIGITS: Final = 6
_FLOAT_DIGITS: Final = 17
_DIGITS_BEYOND_GAP: Final = 2
_SMALLEST_PLAIN: Final = -5


def is_mpf(value: object) -> bool:
    """Return whether the value is an mpmath.mpf, without loading mpmath."""
    return hasattr(value, "_mpf_")


def plain(value: float) -> str:
    """Return a float with all its digits, a whole one without its fraction."""
    return repr(value).removesuffix(".0")


def at_most(value: float, digits: int = HEADLINE_DIGITS) -> str:
    """Return the value rounded up: true of whatever is at most the value."""
    return _decimal(value, digits, ROUND_CEILING)


def at_least(value: float, digits: int = HEADLINE_DIGITS) -> str:
    """Return the value rounded down: true of whatever is at least the value."""
    return _decimal(value, digits, ROUND_FLOOR)


def nearest(value: float, digits: int = HEADLINE_DIGITS) -> str:
    """Return the value rounded to the nearest, for what is no bound."""
    return _decimal(value, digits, ROUND_HALF_EVEN)


def interval(lower: float, upper: float) -> tuple[str, str]:
    """Return both ends rounded outward, with enough digits to tell them apart and two more."""
    digits = max(digits_held(lower), digits_held(upper))
    if upper != math.inf and lower != upper:
        gap = _exact(upper) - _exact(lower)
        needed = _magnitude(_exact(upper)) - _magnitude(gap) + _DIGITS_BEYOND_GAP
        digits = min(digits, max(needed, HEADLINE_DIGITS))
    return at_least(lower, digits), at_most(upper, digits)


def digits_held(value: float) -> int:
    """Return how many significant digits a value's type can carry."""
    if not is_mpf(value) or value in (0, math.inf):
        return _FLOAT_DIGITS
    mantissa, _ = _man_exp(value)
    return max(_FLOAT_DIGITS, math.ceil(mantissa.bit_length() * math.log10(2)) + 1)


def formatted_up(value: float, spec: str) -> str:
    """Return a value in a format of Python's, such as ".3f", rounded up."""
    if value == math.inf:
        return format(math.inf, spec)
    exact = _rounded(_exact(value), digits_held(value) + 40, ROUND_CEILING)
    with localcontext(Context(rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])):
        return format(exact, spec)


def _man_exp(value: Any) -> tuple[int, int]:
    """Return the integers of a finite mpf: mantissa * 2 ** exponent."""
    mantissa, exponent = value.man_exp
    return int(mantissa), int(exponent)


def _exact(value: float) -> Fraction:
    """Return the exact value of a finite float or mpf."""
    if not is_mpf(value):
        return Fraction(value)
    mantissa, exponent = _man_exp(value)
    return mantissa * Fraction(2) ** exponent


def _rounded(value: Fraction, digits: int, rounding: str) -> Decimal:
    """Return the value rounded in the given direction to that many significant digits."""
    context = Context(digits, rounding, MIN_EMIN, MAX_EMAX, traps=[])
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _magnitude(value: Fraction) -> int:
    """Return the decimal exponent of a positive value's leading digit."""
    return _rounded(value, 1, ROUND_FLOOR).adjusted()


def _decimal(value: float, digits: int, rounding: str) -> str:
    """Return the value in decimal, rounded in the given direction."""
    if value == math.inf:
        return "inf"
    rounded = _rounded(_exact(value), digits, rounding)
    if rounded == 0:
        return "0"
    if _SMALLEST_PLAIN <= rounded.adjusted() < _FLOAT_DIGITS:
        return f"{rounded:f}"
    return f"{rounded:e}"
