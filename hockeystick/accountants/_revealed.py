"""Releases without noise, set apart from the rest: what they show, they show for certain.

With probability ``s`` the record shows in one of them; ``h = 1 - s = prod (1 - p)^n``. Removing,
the loss is infinite then, and ``ln h`` more than the loss of the rest otherwise; adding, it is
``-ln h`` more. With ``d`` the profile of the rest alone,

    removing:  delta(eps) = s + h d(eps - ln h)
    adding:    delta(eps) = d(eps + ln h),

and for a negative argument x, ``1 - e^x <= d(x) <= 1 - e^x (1 - d(0))``, since the total variation
``d(0)`` is the same in both directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from hockeystick.accountants._cost import Terms
from hockeystick.accountants._interval import Interval
from hockeystick.privacy_loss import RevealingLoss
from hockeystick.privacy_loss._rates import complement_bounds

# Covers the rounding below, and the readings of rates within one unit in the last place.
_SLACK: Final = 1e-12

Reading: TypeAlias = Callable[[float], Interval]


@dataclass(frozen=True, slots=True)
class Revealed:
    """The releases without noise of one direction: ``ln h``, between a lower and an upper end."""

    removing: bool
    alone: bool
    low: float
    high: float

    def epsilon(self, delta: float, rest: Reading) -> Interval:
        """Return epsilon at a delta, given that of the rest."""
        if self.removing:
            return self._epsilon_removing(delta, rest)
        return self._epsilon_adding(delta, rest)

    def delta(self, epsilon: float, rest: Reading) -> Interval:
        """Return delta at an epsilon, given that of the rest."""
        if self.low == -math.inf:
            return Interval.point(1.0)
        if self.removing:
            return self._delta_removing(epsilon, rest)
        return self._delta_adding(epsilon, rest)

    def _delta_removing(self, epsilon: float, rest: Reading) -> Interval:
        """Return delta where what shows has an infinite loss."""
        inner = rest(epsilon - self.high), rest(epsilon - self.low)
        middle = -math.expm1(self.high) + math.exp(self.high) * inner[1].estimate
        lower = -math.expm1(self.high) + math.exp(self.high) * inner[1].lower
        upper = -math.expm1(self.low) + math.exp(self.low) * inner[0].upper
        return Interval(_less(lower), middle, min(_more(upper), 1.0)).ordered()

    def _epsilon_removing(self, delta: float, rest: Reading) -> Interval:
        """Return epsilon where what shows has an infinite loss."""
        covered = math.log1p(-delta)
        if self.high < covered * (1.0 + _SLACK):
            return Interval.point(math.inf)
        # What is left for the rest is (delta - s) / h, more for a larger h.
        least = _less((delta - _more(-math.expm1(self.low))) / math.exp(self.low))
        most = _more((delta - _less(-math.expm1(self.high))) / math.exp(self.high))
        lower = rest(most).lower + self.low if 0.0 < most < 1.0 else 0.0
        of_rest = rest(least) if least > 0.0 else Interval(0.0, math.inf, math.inf)
        middle, upper = of_rest.estimate + self.high, of_rest.upper + self.high
        ends = (max(end, 0.0) for end in (_less(lower), middle, _more(upper)))
        return Interval(*ends).ordered()

    def _epsilon_adding(self, delta: float, rest: Reading) -> Interval:
        """Return epsilon where the loss is larger by a constant."""
        if self.low == -math.inf:
            return Interval.point(math.inf)
        of_rest = rest(delta)
        constant = math.log1p(-delta)
        lower = (of_rest.lower if of_rest.lower > 0.0 else constant) - self.high
        middle, upper = (constant if self.alone else end for end in of_rest[1:])
        ends = (_less(lower), middle - self.high, _more(upper - self.low))
        return Interval(*(max(end, 0.0) for end in ends)).ordered()

    def _delta_adding(self, epsilon: float, rest: Reading) -> Interval:
        """Return delta where the loss is larger by a constant."""
        low = math.nextafter(epsilon + self.low, -math.inf)
        high = math.nextafter(epsilon + self.high, math.inf)
        if low >= 0.0:
            return Interval(rest(high).lower, rest(low).estimate, rest(low).upper).ordered()
        at_zero = rest(0.0)
        lower = max(-math.expm1(high), at_zero.lower if high <= 0.0 else rest(high).lower)
        upper = -math.expm1(low) + math.exp(low) * at_zero.upper
        return Interval(_less(lower), upper, min(_more(upper), 1.0)).ordered()


def split(terms: Terms) -> tuple[Revealed | None, Terms]:
    """Return the releases without noise as one, None where there are none, and the rest."""
    shown = [(loss, count) for loss, count in terms if isinstance(loss, RevealingLoss)]
    if not shown:
        return None, terms
    rest = tuple((loss, count) for loss, count in terms if not isinstance(loss, RevealingLoss))
    if any(loss.rate == 1 for loss, _ in shown):
        return Revealed(shown[0][0].removing, not rest, -math.inf, -math.inf), rest
    ends = [(complement_bounds(loss.rate), count) for loss, count in shown]
    low = math.fsum(count * end[0] for end, count in ends) * (1.0 + _SLACK)
    high = math.fsum(count * end[1] for end, count in ends) * (1.0 - _SLACK)
    return Revealed(shown[0][0].removing, not rest, low, high), rest


def _less(value: float) -> float:
    """Return a little less."""
    return value - _SLACK * abs(value)


def _more(value: float) -> float:
    """Return a little more."""
    return value + _SLACK * abs(value)
