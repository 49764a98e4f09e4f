"""What a point of a trade-off function means, in words."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Final

from hockeystick.numerics.numerals import at_most

MORE_THAN: Final = "no attack finds more than"
_FEWEST_DIGITS: Final = 3
_MOST_DIGITS: Final = 6
_SMALLEST_PLAIN: Final = -5
_EXACT: Final = Context(prec=40)
_ALL: Final = "100 %"


def reading(fpr: float, power: float) -> str:
    """Return in words what a proven upper end of the true positive rate means, rounded up.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.tradeoffs.reading import reading
        >>> print(reading(0.01, hs.tradeoffs.GaussianTradeOff(1.0).power(0.01)))
        At FPR 1 %, no attack finds more than 9.24 % of the members
        >>> print(reading(0.01, 1.0))
        At FPR 1 %, nothing is promised: an attack may find all members
    """
    if not is_promise(power):
        return f"{at_fpr(fpr)}, nothing is promised: an attack may find all members"
    return f"{at_fpr(fpr)}, {MORE_THAN} {percent_at_most(power)} of the members"


def is_promise(power: float) -> bool:
    """Return whether a proven upper end of the true positive rate says anything to a reader."""
    return percent_at_most(power) != _ALL


def at_fpr(fpr: float) -> str:
    """Return the beginning of a reading."""
    return f"At FPR {_percent(Decimal(repr(fpr)))}"


def percent_at_most(power: float) -> str:
    """Return a probability in per cent, rounded up; as 100 % only where it is all but 1."""
    for digits in range(_FEWEST_DIGITS, _MOST_DIGITS + 1):
        rounded = Decimal(at_most(power, digits))
        if rounded < 1:
            return _percent(rounded)
    return _ALL


def _percent(fraction: Decimal) -> str:
    """Return a fraction in per cent, with all its digits."""
    number = fraction.scaleb(2, _EXACT).normalize(_EXACT)
    return f"{number:f} %" if number.adjusted() >= _SMALLEST_PLAIN else f"{number:e} %"
