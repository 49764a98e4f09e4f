"""Gaussian-smoothed bounds, for plans whose transform does not decay along a line.

Let ``delta_w`` belong to the plan and one release more, of a Gaussian of ``mu = w``. Releasing more
never costs less, so that ``delta <= delta_w``. And with R the likelihood ratio under Q and
``x = e^eps``, ``delta_w`` is the mean over R of the Black-Scholes price of a call of strike x and
volatility w, whose second derivative in w is at least ``-(w/4) sqrt(R x / 2 pi) exp(-m^2/2w^2)``,
``m = ln(R/x)``; integrated twice,

    delta >= 2 delta_w - delta_2w - w^3/10 E_P[exp(-m/2 - m^2/8w^2)],

and the last mean is at most ``exp(K(c) - c eps + 2 w^2 (c + 1/2)^2)``. Both are off by about
``w^2 c (c+1)``, relative to delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hockeystick.accountants.contour._integral import Integral, integrate, rules_for
from hockeystick.accountants.contour._line import AnalyticTerms, ContourTarget, choose_contour
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.orders import optimal_order, optimal_order_at, saddle
from hockeystick.numerics import down, log_readings, up
from hockeystick.numerics.roots import falling_crossing
from hockeystick.privacy_loss import GaussianLoss
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor
from hockeystick.privacy_loss.core.terms import total

_OUTWARD: Final = 2.0**-48
# The largest width of the smoothing in units of 1/c, the most nodes, and the most terms summed.
_LARGEST_WIDTH: Final = 0.1
_MOST_NODES: Final = 1_500_000
_MOST_WORK: Final = 300_000_000
# The largest order that a line is chosen at.
_LARGEST_ORDER: Final = 1e8
# Each error of an integral, relative to that of the smoothing.
_QUADRATURE_SHARE: Final = 0.01
_FIRST_ERROR: Final = 1e-2
_LAST_ERRORS: Final = (1.0, 0.1, 0.01)


@dataclass(frozen=True)
class Smoothed:
    """The plan with a Gaussian of ``mu = w`` more, and with one of twice as much."""

    width: float
    once: Integral
    twice: Integral

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ln delta."""
        return _log_upper(self.once, epsilon) + self._slack(epsilon)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ln delta; -inf for none."""
        one, two = self.once.delta(epsilon).log("lower"), _log_upper(self.twice, epsilon)
        if not -math.inf < one <= two < math.inf:
            return -math.inf
        value = (
            2.0
            - math.exp(min(two - one, 1.0))
            - math.exp(min(self._log_remainder(epsilon) - one, 1.0))
        )
        value -= _OUTWARD * (abs(one) + 4.0)
        return one + math.log(value) - self._slack(epsilon) if value > 0.0 else -math.inf

    def _log_remainder(self, epsilon: float) -> float:
        """Return ln of the bound ``w^3/10 E[...]`` of the remainder."""
        c, w = self.once.line.c, self.width
        k = float(self.once.real[0] + self.once.error[0])
        return k - c * epsilon + math.log(0.1 * w**3) + 2.0 * (w * (c + 0.5)) ** 2

    def _slack(self, epsilon: float) -> float:
        """Return a bound of the round-off of the logarithms."""
        scale = abs(float(self.once.real[0])) + self.once.line.c * epsilon
        return _OUTWARD * (scale + 4.0)


def smoothed_delta(terms: AnalyticTerms, epsilon: float, tolerance: float) -> Interval | None:
    """Return delta to about a relative width, None where that takes too long a line."""
    order = optimal_order_at(terms, epsilon)
    log_delta = total(terms, order).value - order * epsilon + log_cks_factor(order)
    found: Interval | None = None
    for delta_error in _delta_errors(tolerance):
        pair = _smoothed(terms, epsilon, log_delta, delta_error)
        if pair is None:
            return found
        lower, upper = pair.lower(epsilon), pair.upper(epsilon)
        if not upper < math.inf:
            return found
        ends = down(math.exp(min(lower, 0.0))), min(up(math.exp(min(upper, 0.0))), 1.0)
        new = Interval(ends[0], 0.5 * (ends[0] + ends[1]), ends[1])
        found = new if found is None else new.within(found)
        if found.relative_width <= tolerance:
            return found
        log_delta = upper
    return found


def smoothed_epsilon(terms: AnalyticTerms, delta: float, tolerance: float) -> Interval | None:
    """Return epsilon to about a relative width, None where that takes too long a line."""
    log_delta = math.log(delta)
    order = optimal_order(terms, log_delta)
    epsilon = (total(terms, order).value - log_delta + log_cks_factor(order)) / order
    if epsilon <= 0.0:
        return None
    found: Interval | None = None
    for delta_error in _delta_errors(tolerance):
        gain = max(order * epsilon, 1.0)
        pair = _smoothed(terms, epsilon, log_delta, min(delta_error * gain, _FIRST_ERROR))
        new = pair and _epsilons(pair, epsilon, delta)
        if not new:
            return found
        found = new if found is None else new.within(found)
        if found.relative_width <= tolerance:
            return found
        epsilon = found.upper
    return found


def _delta_errors(tolerance: float) -> tuple[float, ...]:
    """Return the relative errors of delta to aim for in turn, up to the tolerance and below."""
    between = math.sqrt(_FIRST_ERROR * tolerance)
    return (_FIRST_ERROR, between, *(share * tolerance for share in _LAST_ERRORS))


def _smoothed(
    terms: AnalyticTerms, epsilon: float, log_delta: float, delta_error: float
) -> Smoothed | None:
    """Return both integrals, for about a relative error of delta; None if they take too long."""
    c = saddle(terms, epsilon)
    if c > _LARGEST_ORDER:
        return None
    # A width that is a short fraction makes the added noise an exact number.
    width = min(math.sqrt(delta_error / (3.0 * c * (c + 1.0))), _LARGEST_WIDTH / c)
    accuracy = -math.log(_QUADRATURE_SHARE * delta_error)
    integrals = []
    for factor in (1, 2):
        added = GaussianLoss(1 / (factor * Fraction(width)))
        both = (*terms, (added, 1))
        target = ContourTarget(epsilon, log_delta, accuracy)
        line = choose_contour(both, saddle(both, epsilon), target, _MOST_NODES)
        rules = line and rules_for(both, line, target)
        if not line or not rules or line.last * sum(one.nodes for one in rules) > _MOST_WORK:
            return None
        integrals.append(integrate(both, line, rules))
    return Smoothed(width, *integrals)


def _log_upper(integral: Integral, epsilon: float) -> float:
    """Return ln of the upper end; inf where round-off or overflow leaves none."""
    found = integral.delta(epsilon)
    return found.log("upper") if 0.0 < found.upper < math.inf else math.inf


def _epsilons(pair: Smoothed, guess: float, delta: float) -> Interval | None:
    """Return the proven ends of epsilon, None where the upper one is not found."""
    least, most = log_readings(delta)
    slack = _OUTWARD * (abs(least) + 4.0)
    if pair.upper(0.0) <= least - slack:
        return Interval.point(0.0)
    near = {"stride": 0.1 / pair.once.line.c, "tolerance": 1e-15 * guess}
    upper = falling_crossing(lambda eps: pair.upper(eps) - least + slack, guess, 1.0, **near)
    lower = falling_crossing(lambda eps: pair.lower(eps) - most - slack, guess, -1.0, **near)
    return Interval(lower, upper, upper) if upper < math.inf else None
