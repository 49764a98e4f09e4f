"""Directed rounding of what mpmath computed: floats at or above, at or below."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from hockeystick.numerics import least_reading
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import as_mpf

if TYPE_CHECKING:
    from mpmath import mpf

DIGITS: Final = 50
# A bound of mpmath's relative error in a formula: far below half a unit of a float.
_MPMATH_ERROR: Final = 2.0**-80


def up(value: mpf) -> float:
    """Return a float at or above a number >= 0 that was computed in ``DIGITS`` digits."""
    return _rounded(value, math.inf)


def down(value: mpf) -> float:
    """Return a float >= 0 at or below a number that was computed in ``DIGITS`` digits."""
    return max(_rounded(value, -math.inf), 0.0)


def _rounded(value: mpf, toward: float) -> float:
    """Return the nearest float on one side of the number."""
    if value == 0 or value == math.inf:
        return float(value)
    number = float(value)
    side = 1.0 if toward > 0.0 else -1.0
    if math.isinf(number) or side * (number - value * (1 + side * _MPMATH_ERROR)) < 0:
        number = math.nextafter(number, toward)
    return number


def least_epsilon(delta_at: Callable[[mpf], mpf], delta: float, estimate: float) -> float:
    """Return an epsilon, from the estimate upward, at which a decreasing delta is proven met."""
    from hockeystick.numerics.multiprecision import mp

    goal = as_mpf(least_reading(delta)) * (1 - _MPMATH_ERROR)
    epsilon, slack = max(estimate, 0.0), math.ulp(1.0)
    while delta_at(mp.mpf(epsilon)) > goal:
        epsilon += slack * (epsilon + math.ulp(1.0))
        slack *= 2.0
    return epsilon


def root_epsilon(delta_at: Callable[[mpf], mpf], delta: float, stride: float) -> float:
    """Return the approximate epsilon of a decreasing delta; 0 where delta(0) is below."""
    from hockeystick.numerics.multiprecision import mp

    goal = mp.mpf(delta)
    if delta_at(mp.zero) <= goal:
        return 0.0

    def above(log_epsilon: float) -> float:
        value = delta_at(mp.exp(log_epsilon))
        return float(mp.log(goal / value)) if value > 0 else math.inf

    guess = math.log(stride)
    return math.exp(increasing_root(above, guess, tolerance=1e-15, farthest=700.0))
