"""Arithmetic that knows its error: a float has two readings, its binary and its printed value."""

from hockeystick.numerics.numerals import (
    FloatAndDecimal,
    decimal,
    float_above,
    float_below,
    largest_reading,
    least_reading,
    log_of,
    log_readings,
)
from hockeystick.numerics.rounding import ULP, Ball, down, up

__all__ = [
    "ULP",
    "Ball",
    "FloatAndDecimal",
    "decimal",
    "down",
    "float_above",
    "float_below",
    "largest_reading",
    "least_reading",
    "log_of",
    "log_readings",
    "up",
]
