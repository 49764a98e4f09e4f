"""What a float is read as: its own value, and the decimal that it prints as."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import NamedTuple


def decimal(value: float | Fraction) -> Fraction:
    """Return the decimal that a finite float prints as; a fraction as itself.

    Examples:
        >>> decimal(0.1)
        Fraction(1, 10)
    """
    return value if isinstance(value, Fraction) else Fraction(repr(value))


def largest_reading(value: float) -> Fraction:
    """Return a float's own value or the decimal that it prints as, whichever is larger."""
    return max(Fraction(value), decimal(value))


def least_reading(value: float) -> Fraction:
    """Return a float's own value or the decimal that it prints as, whichever is smaller."""
    return min(Fraction(value), decimal(value))


def float_above(value: Fraction) -> float:
    """Return a float that prints as no less than an exact number >= 0."""
    try:
        found = float(value)
    except OverflowError:
        return math.inf
    while found < math.inf and decimal(found) < value:
        found = math.nextafter(found, math.inf)
    return found


def float_below(value: Fraction) -> float:
    """Return a float >= 0 that prints as no more than an exact number, 0 where that is negative."""
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

    Next to 1, where only the distance from 1 counts, and below the normal numbers the two readings
    differ from their first digits on.

    Examples:
        >>> ["%.6g" % log for log in log_readings(1.0 - 2.0**-52)]
        ['-2.22045e-16', '-2e-16']
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
    def over(cls, numerator: int, value: float) -> FloatAndDecimal:
        """Return a whole number over the readings of a float."""
        return cls(numerator / Fraction(value), numerator / decimal(value))
