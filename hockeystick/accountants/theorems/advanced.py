"""Advanced composition: epsilon grows with the root of the number of runs, at a larger delta."""

from __future__ import annotations

import math
from typing import ClassVar, Final, final

from hockeystick.accountants.base import DirectedAccountant, Kind
from hockeystick.accountants.closed_forms.closed_form import least_delta, least_epsilon
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.theorems.guarantees import guarantees
from hockeystick.numerics import log_readings
from hockeystick.privacy_loss import Composition, Terms, largest_loss

_OUTWARD: Final = 2.0**-40
# Beyond these, sums of squares of epsilons underflow or overflow.
_LEAST_PROXY, _LARGEST_PROXY = 1e-290, 1e290


@final
class Advanced(DirectedAccountant):
    """The closed form of Kairouz, Oh and Viswanath, which is never above the earlier ones.

    With ``B = sum n eps (e^eps - 1) / (e^eps + 1)`` and ``V = sum n eps^2``, (eps_i, delta_i)
    guarantees compose to ``1 - (1 - d) prod (1 - delta_i)^n`` at

        epsilon = min( sum n eps,  B + sqrt(2 V ln(1/d)),  B + sqrt(2 V ln(e + sqrt(V)/d)) ).

    Guarantees:
        An upper bound. The privacy loss of randomized response, the worst case, has the mean B and
        stays within ``+-eps``, so that Hoeffding bounds its tail by ``exp(-t^2 / 2V)`` beyond
        ``B + t``; integrating the tail against ``e^-x`` gives the third form. The mean of Dwork,
        Rothblum and Vadhan, ``sum n eps (e^eps - 1)``, is larger, so that theirs is never below
        the second. The lower end is that of the exact composition.

    References:
        Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2017,
        theorems 3.4 and 3.5; Dwork, Rothblum and Vadhan 2010, theorem III.3.
    """

    name: ClassVar[str] = "advanced"
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "Kairouz-Oh-Viswanath closed form, for guarantees alone"

    def epsilon(self, composition: Composition, delta: float) -> Interval:
        guarantees(self, composition)
        return super().epsilon(composition, delta)

    def delta(self, composition: Composition, epsilon: float) -> Interval:
        guarantees(self, composition)
        return super().delta(composition, epsilon)

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        lower = least_epsilon(terms, delta)
        upper = max(min(_epsilon_upper(terms, delta), largest_loss(terms)), lower)
        return Interval(lower, upper, upper)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of guarantees without failures: the same forms, solved for it."""
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        lower = least_delta(terms, epsilon)
        upper = min(max(_delta_upper(terms, epsilon), lower, 5e-324), 1.0)
        return Interval(lower, upper, upper)


def _epsilon_upper(terms: Terms, delta: float) -> float:
    """Return the smaller of the second and the third form, rounded up."""
    mean, variance_proxy = _moments(terms)
    if not _LEAST_PROXY < variance_proxy < _LARGEST_PROXY:
        return math.inf
    log_delta, half = log_readings(delta)[0], 0.5 * math.log(variance_proxy)
    log_inverse = min(-log_delta, _log_sum(1.0, half - log_delta))
    return (mean + math.sqrt(2.0 * variance_proxy * log_inverse)) * (1.0 + _OUTWARD)


def _delta_upper(terms: Terms, epsilon: float) -> float:
    """Return the least d of the second and the third form at an epsilon, rounded up.

    Both forms decrease in d, so that the d at which one equals epsilon is the least that it proves.
    With ``x = epsilon - B > 0`` and ``t = x^2 / 2V``,

        x = sqrt(2 V ln(1/d))           gives  d = e^-t,
        x = sqrt(2 V ln(e + sqrt(V)/d)) gives  d = sqrt(V) / (e^t - e), if t > 1.

    B and V are rounded up and x down, each of which raises d.
    """
    mean, variance_proxy = _moments(terms)
    excess = (epsilon - mean) - _OUTWARD * (epsilon + mean)
    if not _LEAST_PROXY < variance_proxy < _LARGEST_PROXY or excess <= 0.0:
        return 1.0
    exponent = 0.5 * excess * excess / variance_proxy * (1.0 - _OUTWARD)
    least = -exponent
    if exponent > 1.0:
        third = 0.5 * math.log(variance_proxy) - exponent - math.log(-math.expm1(1.0 - exponent))
        least = min(least, third)
    least += _OUTWARD * (4.0 + exponent + abs(math.log(variance_proxy)))
    return math.exp(min(least, 0.0))


def _moments(terms: Terms) -> tuple[float, float]:
    """Return B and V, rounded up."""
    sizes = [(loss.supremum, count) for loss, count in terms]
    mean = math.fsum(count * size * math.tanh(0.5 * size) for size, count in sizes)
    variance_proxy = math.fsum(count * size * size for size, count in sizes)
    return mean * (1.0 + _OUTWARD), variance_proxy * (1.0 + _OUTWARD)


def _log_sum(first: float, second: float) -> float:
    """Return ``ln(e^first + e^second)``."""
    high, low = max(first, second), min(first, second)
    return high + math.log1p(math.exp(low - high))
