"""What a secret random sample makes of an epsilon."""

from __future__ import annotations

import math

from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import DIGITS, as_mpf, evaluated_up
from hockeystick.numerics.working_precision import working_digits


def amplified(epsilon: float, rate: float) -> float:
    """Return ``ln(1 + q (e^epsilon - 1))``, rounded up but not above epsilon."""
    if rate in (0.0, 1.0) or epsilon in (0.0, math.inf):
        return epsilon if rate > 0.0 else 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        largest, often = as_mpf(largest_reading(epsilon)), as_mpf(largest_reading(rate))
        value = mp.log1p(often * mp.expm1(largest))
        return min(evaluated_up(value), epsilon)
