# The public names and where they are: type checkers read it, and they are loaded by it.
from .numerals import (
    FloatAndDecimal as FloatAndDecimal,
    decimal as decimal,
    float_above as float_above,
    float_below as float_below,
    largest_reading as largest_reading,
    least_reading as least_reading,
    log_of as log_of,
    log_readings as log_readings,
)
from .rounding import ULP as ULP, Ball as Ball, down as down, up as up

__all__: list[str]
