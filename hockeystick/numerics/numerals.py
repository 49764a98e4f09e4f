"""Numbers as text, every end of an interval rounded to its safe side.

Ends of an interval are the floats' own values. A single float that prints with few digits stands
for these, as in plans: 0.1 is shown as 0.1, not as 0.100001.
"""

from __future__ import annotations

import decimal as decimals
import math
import re
import sys
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact, localcontext
from fractions import Fraction
from typing import Any, Final, NamedTuple

HEADLINE_DIGITS: Final = 6
_FLOAT_DIGITS: Final = 17
_DIGITS_BEYOND_GAP: Final = 2
_SMALLEST_PLAIN: Final = -5
_ROUND_OFF: Final = 1e-12
# A format: what comes before its width, the width, grouping, precision and type.
_SPEC: Final = re.compile(r"(.*?)([1-9]\d*)?([_,]?)(\.\d+)?([a-zA-Z%]?)", re.DOTALL)
_ENDS: Final = decimals.MIN_EMIN, decimals.MAX_EMAX
_EXACTLY: Final = Context(decimals.MAX_PREC, None, *_ENDS, traps=[])
_ONE_DIGIT: Final = re.compile(r"([eE][+-])(\d)(?!\d)")


def is_mpf(value: object) -> bool:
    """Return whether the value is an mpmath.mpf, without loading mpmath."""
    return hasattr(value, "_mpf_")


def plain(value: float) -> str:
    """Return a float with all its digits, a whole one without its fraction."""
    return repr(value).removesuffix(".0")


def at_most(value: float, digits: int = HEADLINE_DIGITS) -> str:
    """Return the value rounded up: true of whatever is at most the value."""
    return _short(value, digits, ROUND_CEILING)


def at_least(value: float, digits: int = HEADLINE_DIGITS) -> str:
    """Return the value rounded down: true of whatever is at least the value."""
    return _short(value, digits, ROUND_FLOOR)


def headline(lower: float, upper: float) -> str:
    """Return the number to quote of a proven interval that stands beside it.

    It is the upper end, rounded up; or a number of few digits inside the interval, where that is as
    narrow as round-off: 2, and not 2.00001, for 1.9999999999999996 to 2.0000000000000004.
    """
    if is_mpf(upper) or upper == math.inf or not 0.0 < upper - lower <= _ROUND_OFF * upper:
        return at_most(upper)
    few = Decimal(nearest(upper)).normalize()
    return _as_text(few) if Decimal(lower) <= few <= Decimal(upper) else at_most(upper)


def nearest(value: float, digits: int = HEADLINE_DIGITS) -> str:
    """Return the value rounded to the nearest, for what is no bound."""
    return _decimal(value, digits, decimals.ROUND_HALF_EVEN)


def interval(lower: float, upper: float) -> tuple[str, str]:
    """Return both ends rounded outward, with two digits more than distinguish them."""
    digits = max(digits_held(lower), digits_held(upper))
    if upper != math.inf and lower != upper:
        most = _exact(upper)
        gap = _EXACTLY.subtract(most, _exact(lower))
        needed = most.adjusted() - gap.adjusted() + _DIGITS_BEYOND_GAP
        digits = min(digits, max(needed, HEADLINE_DIGITS))
    return _decimal(lower, digits, ROUND_FLOOR), _decimal(upper, digits, ROUND_CEILING)


def jsonable(value: float, rounded: Callable[[float, int], str] = nearest) -> float | str:
    """Return a number as strict JSON can hold it: inf and an mpf as text, so rounded."""
    return rounded(value, digits_held(value)) if value == math.inf or is_mpf(value) else value


def digits_held(value: Any) -> int:
    """Return the number of significant digits of a value's type."""
    if not is_mpf(value) or value in (0, math.inf):
        return _FLOAT_DIGITS
    bits = int(value.man_exp[0]).bit_length()
    return max(_FLOAT_DIGITS, math.ceil(bits * math.log10(2)) + 1)


def formatted(value: float, spec: str, rounding: str = ROUND_CEILING) -> str:
    """Return a value in a format of Python, such as ".3f" or ">12", rounded up or as asked.

    Without a precision, there are six digits as in ``at_most``, or six places as Python has them.
    """
    found = _SPEC.fullmatch(spec)
    if value == math.inf or found is None:
        return format(float(value), spec)
    before, width, group, precision, kind = found.groups(default="")
    exact = _printed(value) or _exact(value)
    if not precision and kind:
        precision = f".{HEADLINE_DIGITS}"
    elif not precision:
        exact = Decimal(_decimal(value, HEADLINE_DIGITS, rounding))
    with localcontext(Context(None, rounding, *_ENDS, traps=[])):
        text = format(exact, f"{before}{width}{group}{precision}{kind}")
        if _ONE_DIGIT.search(text) is None:
            return text
        # An exponent has two digits in Python, for which the padding has one place less.
        narrower = str(int(width) - 1) if width and int(width) > 1 else ""
        text = format(exact, f"{before}{narrower}{group}{precision}{kind}")
    return _ONE_DIGIT.sub(r"\g<1>0\g<2>", text)


def _exact(value: Any) -> Decimal:
    """Return a finite float or mpf exactly: ``m 2^-k = m 5^k 10^-k``."""
    if not is_mpf(value):
        return Decimal(value)
    mantissa, exponent = map(int, value.man_exp)
    size = _EXACTLY.power(2 if exponent > 0 else 5, abs(exponent))
    return _EXACTLY.multiply(mantissa, size).scaleb(min(exponent, 0), _EXACTLY)


def _rounded(exact: Decimal, digits: int, rounding: str) -> Decimal:
    context = Context(digits, rounding, *_ENDS, traps=[])
    rounded = context.plus(exact)
    # What needs fewer digits than asked for is shown with fewer, as far as the decimal point.
    if context.flags[Inexact] or rounded.adjusted() >= digits:
        return rounded
    integral = rounded.to_integral_value(context=_EXACTLY)
    return integral if integral == rounded else rounded.normalize(_EXACTLY)


def _printed(value: float, digits: int = HEADLINE_DIGITS) -> Decimal | None:
    """Return the decimal that a float prints as, where it has few digits; None for others."""
    if is_mpf(value) or not 0.0 < value < math.inf:
        return None
    printed = Decimal(repr(value)).normalize()
    few = min(digits, HEADLINE_DIGITS)
    return printed if len(printed.as_tuple().digits) <= few else None


def _short(value: float, digits: int, rounding: str) -> str:
    """Return a float as it prints, where that takes no more digits; others rounded to these."""
    printed = _printed(value, digits)
    return _decimal(value, digits, rounding) if printed is None else _as_text(printed)


def _decimal(value: float, digits: int, rounding: str) -> str:
    if value == math.inf:
        return "inf"
    rounded = _rounded(_exact(value), digits, rounding)
    return "0" if rounded == 0 else _as_text(rounded)


def _as_text(rounded: Decimal) -> str:
    """Return a decimal > 0, with an exponent where it is very large or small."""
    if _SMALLEST_PLAIN <= rounded.adjusted() < _FLOAT_DIGITS:
        return f"{rounded:f}"
    return f"{rounded:e}"


def decimal(value: float | Fraction) -> Fraction:
    """Return the decimal that a finite float prints as; a fraction as itself.

    Example:
        >>> from hockeystick.numerics import decimal
        >>> decimal(0.1)
        Fraction(1, 10)
    """
    return value if isinstance(value, Fraction) else Fraction(repr(value))


def largest_reading(value: float) -> Fraction:
    """Return a float's own value or the decimal that it prints as, whichever is larger.

    Example:
        >>> from hockeystick.numerics import largest_reading
        >>> largest_reading(0.3)
        Fraction(3, 10)
    """
    return max(Fraction(value), decimal(value))


def least_reading(value: float) -> Fraction:
    """Return a float's own value or the decimal that it prints as, whichever is smaller.

    Example:
        >>> from hockeystick.numerics import least_reading
        >>> least_reading(0.1)
        Fraction(1, 10)
    """
    return min(Fraction(value), decimal(value))


def float_above(value: Fraction, read: Callable[[float], Fraction] = decimal) -> float:
    """Return a float whose decimal, or other reading, is no less than an exact number >= 0.

    Example:
        >>> from fractions import Fraction
        >>> from hockeystick.numerics import float_above
        >>> float_above(Fraction(1, 3))
        0.33333333333333337
    """
    try:
        found = float(value)
    except OverflowError:
        return math.inf
    while found < math.inf and read(found) < value:
        found = math.nextafter(found, math.inf)
    return found


def float_below(value: Fraction) -> float:
    """Return a float >= 0 that prints as no more than an exact number, 0 where that is negative.

    Example:
        >>> from fractions import Fraction
        >>> from hockeystick.numerics import float_below
        >>> float_below(Fraction(1, 3))
        0.3333333333333333
    """
    if value <= 0:
        return 0.0
    found = float(value)
    while decimal(found) > value:
        found = math.nextafter(found, 0.0)
    return found


def log_of(value: Fraction) -> float:
    """Return the logarithm of a fraction in (0, 1] to a few ulp, next to 1 too."""
    if 2 * value > 1:
        return math.log1p(-float(1 - value))
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return math.log(float(value / Fraction(2) ** exponent)) + exponent * math.log(2.0)


def log_readings(value: float) -> tuple[float, float]:
    """Return the logarithms of both readings of a float in (0, 1), ascending, to a few ulp.

    They differ from their first digits on next to 1, and below the normal numbers.
    """
    if sys.float_info.min <= value <= 0.5:
        log = math.log(value)
        return log, log
    return log_of(least_reading(value)), log_of(largest_reading(value))


class FloatAndDecimal(NamedTuple):
    """A number exactly: of floats, and of the decimals that they print as."""

    binary: Fraction
    decimal: Fraction

    @classmethod
    def of(cls, value: float | Fraction) -> FloatAndDecimal:
        """Return the readings of a float, or a fraction as itself."""
        return cls(Fraction(value), decimal(value))

    @classmethod
    def over(cls, numerator: int, value: float | Fraction) -> FloatAndDecimal:
        """Return a whole number over the readings of a float, or over a fraction."""
        return cls(numerator / Fraction(value), numerator / decimal(value))
