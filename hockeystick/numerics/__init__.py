"""Arithmetic that knows its error.

Directed rounding (``rounding``), what a float is read as (``readings``), balls (``balls``), roots
(``roots``), numbers as text (``numerals``), mpmath (``multiprecision``) and its precision
(``working_precision``).
"""

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
