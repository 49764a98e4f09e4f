"""``ln(1 - p)`` of a sampling probability p, over every reading of p."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from hockeystick.numerics import ULP, decimal, log_of
from hockeystick.numerics.rounding import short_up

# Factors that cover every reading of a parameter, and a few roundings.
LESS: Final = 1.0 - 2.0**-50
MORE: Final = 1.0 + 2.0**-50


def log_complement(rate: float | Fraction) -> float:
    """Return ``ln(1-p)`` of a rate below 1, also where its float is 1."""
    if rate < 0.99:
        return math.log1p(-float(rate))
    return log_of(1 - Fraction(rate))


@lru_cache(maxsize=256, typed=True)
def complement_bounds(rate: float | Fraction) -> tuple[float, float]:
    """Return bounds of ``ln(1-p)`` over every reading of a rate below 1."""
    value = log_complement(rate)
    if isinstance(rate, float):
        slack = 2.0 * ULP * rate / (1.0 - rate)
    else:
        slack = 2.0 * ULP * float(rate) / max(float(1 - rate), 0.01)
    slack += 64.0 * ULP * abs(value)
    return value - slack, min(value + slack, 0.0)


def largest_when_adding(rate: float | Fraction) -> float:
    """Return ``-ln(1-p)``, rounded up over every reading of a rate below 1."""
    return -complement_bounds(rate)[0]


def decimal_or_above(rate: Fraction) -> float:
    """Return the float that prints as a rate, or the least one above it where there is none."""
    nearest = float(rate)
    if decimal(nearest) == rate or Fraction(nearest) >= rate:
        return nearest
    return math.nextafter(nearest, math.inf)


def mu_of(noise_multiplier: float | Fraction) -> float:
    """Return ``1/x`` of a noise multiplier to within half a unit in the last place, or inf."""
    try:
        return float(1 / noise_multiplier)
    except OverflowError:
        return math.inf


def mu_squared_upper(noise_multiplier: float | Fraction) -> Fraction:
    """Return ``1/x^2`` of a noise multiplier, exact or rounded up to 40 digits."""
    return short_up(1 / decimal(noise_multiplier) ** 2)
