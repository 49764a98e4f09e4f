"""Directed rounding: exact numbers, and what mpmath computed, as floats on the safe side."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Final, NamedTuple

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.numerics.numerals import largest_reading, least_reading


class Ball(NamedTuple):
    """A number and a bound on its distance from the truth."""

    midpoint: float
    radius: float


# A unit in the last place of 1: twice what one rounded operation loses, relative to its result.
ULP: Final = 2.0**-52
# Relative steps outward: each covers the round-off of so many operations.
OUTWARD_8: Final = 4 * ULP
OUTWARD_16: Final = 8 * ULP
OUTWARD_32: Final = 16 * ULP
OUTWARD_64: Final = 32 * ULP
OUTWARD_128: Final = 64 * ULP
OUTWARD_8192: Final = 4096 * ULP
# With this many digits mpmath's rounding is far below half a unit in a float's last place.
DIGITS: Final = 40
# Which denominators exact sums keep: divisors of a power of ten, times up to this.
_OTHER_FACTORS: Final = 10_000
_TENS: Final = 10**1100


def up(value: float) -> float:
    """Return the next float above."""
    return math.nextafter(value, math.inf)


def down(value: float) -> float:
    """Return the next float below, at least 0."""
    return max(math.nextafter(value, -math.inf), 0.0)


def product_up(factor: int, value: float) -> float:
    """Return a whole number > 0 times a float, rounded up."""
    if factor == 1 or value == math.inf:
        return value
    return float_up(factor * largest_reading(value))


def quotient_down(value: float, divisor: int) -> float:
    """Return a float >= 0 over a whole number > 0, rounded down."""
    if divisor == 1 or value == math.inf:
        return value
    return float_down(least_reading(value) / divisor)


def as_mpf(value: Fraction) -> mpf:
    """Return a fraction as mpmath has it."""
    return mp.mpf(value.numerator) / value.denominator


def fraction_of(value: mpf) -> Fraction:
    """Return a finite number of mpmath exactly."""
    sign, mantissa, exponent, _ = value._mpf_
    found = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -found if sign else found


def float_up(value: Fraction) -> float:
    """Return the least float that is not below an exact number."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest float that is not above an exact number."""
    return 0.0 - float_up(-value)


def short_up(value: Fraction) -> Fraction:
    """Return a fraction > 0, or a decimal above it whose denominator sums can have in common.

    Sums of exact fractions whose denominators share nothing would grow with every term.
    """
    if value.denominator // math.gcd(value.denominator, _TENS) <= _OTHER_FACTORS:
        return value
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    unit = Fraction(10) ** (math.floor(bits * math.log10(2)) - DIGITS)
    return math.ceil(value / unit) * unit


def evaluated_up(value: mpf) -> float:
    """Return a float above a number >= 0 that mpmath computed in ``DIGITS`` digits."""
    return math.nextafter(float(value), math.inf)


def evaluated_down(value: mpf) -> float:
    """Return a float >= 0 below a number that mpmath computed in ``DIGITS`` digits."""
    return max(math.nextafter(float(value), 0.0), 0.0)
