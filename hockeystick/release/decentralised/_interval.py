"""Values of an interval as integers: what one party can change is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick.errors import ParameterError
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release._values import numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The largest scale of rounded noise that is drawn here, 2^43 steps.
_SCALE_BITS: Final = 43
_AN_INTERVAL: Final = "two finite numbers, the lower one first"


@final
@dataclass(frozen=True, slots=True)
class Steps:
    """The interval [low, high] in ``2^bits`` steps."""

    low: float
    high: float
    bits: int

    def of(self, values: Any, parties: int) -> NDArray[np.int64]:
        """Return a value for each party in steps, from 0 to ``2^bits``, clipped; or raise."""
        given = numbers("values", values)
        if given.shape != (parties,):
            raise ParameterError("values", f"shape {given.shape}", f"one for each of {parties}")
        parts = (np.clip(given, self.low, self.high) - self.low) / (self.high - self.low)
        return np.clip(np.rint(np.ldexp(parts, self.bits)), 0, 2**self.bits).astype(np.int64)

    def scale(self, noise_multiplier: float, wider: Fraction) -> float:
        """Return a noise's standard deviation in steps, larger by a factor ``1 + wider``."""
        return float_up(largest_reading(noise_multiplier) * (1 + wider) * 2**self.bits)

    def value(self, steps: Fraction) -> float:
        """Return a number of steps from the lower end as a value."""
        return self.low + (self.high - self.low) * float(steps / 2**self.bits)


def steps_of(interval: Any, *noise_multipliers: float) -> Steps:
    """Return an interval in steps so fine as some noise can be drawn in them, or raise."""
    pair = isinstance(interval, tuple) and len(interval) == 2
    if not pair or not all(isinstance(end, int | float) for end in interval):
        raise ParameterError("interval", interval, _AN_INTERVAL)
    try:
        low, high = map(float, interval)
    except OverflowError as error:
        raise ParameterError("interval", interval, _AN_INTERVAL) from error
    if not low < high or not math.isfinite(high - low):
        raise ParameterError("interval", interval, _AN_INTERVAL)
    most = max(*noise_multipliers, 1.0)
    if most >= 2.0**_SCALE_BITS:
        raise ParameterError("mechanism", f"noise of {most:g}", "noise below 2^43 interval widths")
    return Steps(low, high, _SCALE_BITS - math.frexp(most)[1])
