"""What a float is read as: its own value, and the decimal that it prints as."""

from __future__ import annotations

import math
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


class FloatAndDecimal(NamedTuple):
    """A number exactly: of floats, and of the decimals that they print as."""

    binary: Fraction
    decimal: Fraction

    @classmethod
    def of(cls, value: float | Fraction) -> FloatAndDecimal:
        """Return the readings of a float, or a fraction as itself."""
        return cls(Fraction(value), decimal(value))
