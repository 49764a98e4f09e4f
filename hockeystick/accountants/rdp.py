"""The Renyi accountant: orders are real numbers, optimised, not taken from a grid."""

from __future__ import annotations

import math
from typing import ClassVar, final

from hockeystick.accountants._cost import Counted, largest_loss
from hockeystick.accountants._interval import Interval
from hockeystick.accountants._orders import log_kappa, optimal_order, optimal_order_at
from hockeystick.accountants.base import DirectedAccountant, Kind
from hockeystick.accountants.closed_form import single_run_delta, single_run_epsilon

_OUTWARD = 2.0**-46


@final
class RDP(DirectedAccountant):
    """Renyi differential privacy of every order, converted at the best one.

    With ``tau`` the Renyi divergence of order ``alpha``, ``delta = e^((alpha-1)(tau-eps))
    (alpha-1)^(alpha-1) / alpha^alpha`` (Canonne, Kamath and Steinke 2020, proposition 12): an upper
    bound. The lower end is the closed form of the single run that costs most.
    """

    name: ClassVar[str] = "rdp"
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "upper bound by Renyi divergences, best real order"

    def epsilon_of(self, terms: Counted, delta: float) -> Interval:
        """Return epsilon of one direction, the upper end from the best order."""
        if not terms:
            return Interval.point(0.0)
        lower = single_run_epsilon(terms, delta)
        log_delta = math.log(delta)
        c = optimal_order(terms, log_delta)
        value = (_log_mgf_upper(terms, c) - log_delta + log_kappa(c)) / c
        slack = _OUTWARD * (abs(value) + (abs(log_delta) + abs(log_kappa(c))) / c)
        # No loss, and so no epsilon, exceeds the sum of the largest losses.
        upper = max(min(value + slack, largest_loss(terms)), lower)
        return Interval(lower, upper, upper)

    def delta_of(self, terms: Counted, epsilon: float) -> Interval:
        """Return delta of one direction, the upper end from the best order."""
        if epsilon > largest_loss(terms):
            return Interval.point(0.0)
        lower = single_run_delta(terms, epsilon)
        c = optimal_order_at(terms, epsilon)
        mgf = _log_mgf_upper(terms, c)
        log_delta = mgf - c * epsilon + log_kappa(c)
        log_delta += _OUTWARD * (abs(mgf) + c * epsilon + abs(log_kappa(c)))
        upper = min(max(math.exp(min(log_delta, 0.0)) * (1.0 + _OUTWARD), lower, 5e-324), 1.0)
        return Interval(lower, upper, upper)


def _log_mgf_upper(terms: Counted, c: float) -> float:
    """Return a proven upper bound of the composition's K."""
    bounds = [(loss.log_mgf(c), count) for loss, count in terms]
    return math.fsum(count * (k.value + k.error) for k, count in bounds)
