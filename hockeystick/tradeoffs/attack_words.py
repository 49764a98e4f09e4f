"""What a point of a trade-off function means, in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Final

from hockeystick.numerics import least_reading
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.numerics.numerals import at_most
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import as_mpf

MORE_THAN: Final = "no attack finds more than"
_FEWEST_DIGITS: Final = 3
_MOST_DIGITS: Final = 6
_SMALLEST_PLAIN: Final = -5
_EXACT: Final = Context(prec=40)
_ALL: Final = "100 %"


def attack_in_words(fpr: float, power: float) -> str:
    """Return in words what a proven upper end of the true positive rate means, rounded up.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.tradeoffs.attack_words import attack_in_words
        >>> print(attack_in_words(0.01, hs.tradeoffs.GaussianTradeOff(1.0).power(0.01)))
        At FPR 1 %, no attack finds more than 9.24 % of the members
        >>> print(attack_in_words(0.01, 1.0))
        At FPR 1 %, nothing is promised: an attack may find all members
    """
    if not is_promise(power):
        return f"{at_fpr(fpr)}, nothing is promised: an attack may find all members"
    return f"{at_fpr(fpr)}, {MORE_THAN} {percent_at_most(power)} of the members"


def is_promise(power: float) -> bool:
    """Return whether a proven upper end of the true positive rate says anything to a reader."""
    return percent_at_most(power) != _ALL


def at_fpr(fpr: float) -> str:
    """Return how the sentence begins."""
    return f"At FPR {percent(repr(fpr))}"


def percent_at_most(power: float) -> str:
    """Return a probability in per cent, rounded up; as 100 % only where it is all but 1."""
    for digits in range(_FEWEST_DIGITS, _MOST_DIGITS + 1):
        rounded = Decimal(at_most(power, digits))
        if rounded < 1:
            return percent(rounded)
    return _ALL


def percent(fraction: Decimal | str) -> str:
    """Return a fraction in per cent, with all its digits."""
    number = Decimal(fraction).scaleb(2, _EXACT).normalize(_EXACT)
    return f"{number:f} %" if number.adjusted() >= _SMALLEST_PLAIN else f"{number:e} %"


DIGITS: Final = 50
# A bound of mpmath's relative error in a formula: far below half a unit of a float.
_MPMATH_ERROR: Final = 2.0**-80


def up(value: mpf) -> float:
    """Return a float at or above a number >= 0 that was computed in ``DIGITS`` digits."""
    if value == 0 or value == math.inf:
        return float(value)
    number = float(value)
    if math.isinf(number) or number < value * (1 + _MPMATH_ERROR):
        number = math.nextafter(number, math.inf)
    return number


def least_epsilon(delta_at: Callable[[mpf], mpf], delta: float, estimate: float) -> float:
    """Return an epsilon, from the estimate upward, at which a decreasing delta is proven met."""
    goal = as_mpf(least_reading(delta)) * (1 - _MPMATH_ERROR)
    epsilon, slack = max(estimate, 0.0), math.ulp(1.0)
    while delta_at(mp.mpf(epsilon)) > goal:
        epsilon += slack * (epsilon + math.ulp(1.0))
        slack *= 2.0
    return epsilon


def root_epsilon(delta_at: Callable[[mpf], mpf], delta: float, stride: float) -> float:
    """Return the approximate epsilon of a decreasing delta; 0 where delta(0) is below."""
    goal = mp.mpf(delta)
    if delta_at(mp.zero) <= goal:
        return 0.0

    def above(log_epsilon: float) -> float:
        value = delta_at(mp.exp(log_epsilon))
        return float(mp.log(goal / value)) if value > 0 else math.inf

    guess = math.log(stride)
    return math.exp(increasing_root(above, guess, tolerance=1e-15, farthest=700.0))
