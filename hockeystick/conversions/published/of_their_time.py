"""What the tools of a time would have reported: proven bounds, with the grids they had."""

from __future__ import annotations

import math
from typing import ClassVar, Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.accountants.base import DirectedAccountant, Interval, Kind, composition_of
from hockeystick.accountants.closed_form import least_delta, least_epsilon
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.mechanisms.base import checked
from hockeystick.numerics import log_readings
from hockeystick.privacy_loss import Terms, largest_loss
from hockeystick.privacy_loss.core.terms import largest_order, sum_of_bounds, total
from hockeystick.results import Certified

TENSORFLOW_ORDERS: Final = (
    *(1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5),
    *map(float, range(5, 64)),
    *(128.0, 256.0, 512.0),
)
_DELTA: Final = Domain(
    symbol="delta", low=0, high=1, low_open=True, high_open=True, typical=(1e-12, 1e-4)
)
_OUTWARD: Final = 2.0**-46


def tensorflow_privacy_epsilon(plan: Mechanism, delta: float) -> Certified:
    """Return the epsilon that TensorFlow Privacy's ``compute_dp_sgd_privacy`` stood for about 2019.

    ``epsilon = min over its orders a of tau(a) + ln(1/delta) / (a - 1)``, where tau is the Renyi
    divergence, for the 72 orders 1.25, 1.5, ..., 4.5, 5, 6, ..., 63, 128, 256 and 512: Mironov's
    conversion on that grid. It is what papers of the time report, under the name of the moments
    accountant, and reproduces them to the digits that they print.

    Guarantees:
        ``upper`` is a valid bound for the plan: the divergences are proven, rounding included, and
        so are the conversion and every single order. It is never below that of "rdp", which takes
        the best real order and a sharper conversion, and usually well above the truth.
        ``lower`` is the closed form of that part of the plan that costs most. The library summed
        the terms of fractional orders with the wrong signs, to a slightly larger number; where the
        best order is whole, that makes no difference.

    Edge cases:
        A plan that releases nothing costs 0. Where no order has a finite divergence, epsilon is
        the largest loss.

    Args:
        plan: A mechanism or plan.
        delta: Above 0 and below 1.

    Returns:
        A proven interval, its upper end the number that was reported, rounded up.

    Raises:
        UnsupportedError: If no loss is known for a part of the plan.

    References:
        Mironov, "Renyi Differential Privacy", CSF 2017, proposition 3; Mironov, Talwar and Zhang,
        "Renyi Differential Privacy of the Sampled Gaussian Mechanism", 2019;
        https://github.com/tensorflow/privacy, analysis/compute_dp_sgd_privacy.py.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.DPSGD(rate=0.01, steps=10_000, noise_multiplier=6)
        >>> print(f"{tensorflow_privacy_epsilon(plan, 1e-5):.3f}")
        0.823
        >>> print(f"{hs.epsilon(plan, 1e-5):.3f}")
        0.601
    """
    probability = _validate.real("delta", delta, _DELTA)
    accountant = _TensorFlowPrivacy()
    composition = composition_of(checked("plan", plan), accountant.name)
    return Certified(
        *accountant.epsilon(composition, probability).ordered(),
        quantity="epsilon",
        accountant=accountant.name,
        adjacency=plan.adjacency,
        assumptions=assumptions_of(plan),
        at=probability,
    )


@final
class _TensorFlowPrivacy(DirectedAccountant):
    """Mironov's conversion at the best order of the grid, either way."""

    name: ClassVar[str] = "tensorflow-privacy-2019"
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "upper bound by 72 orders, as published papers report it"

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        log_inverse, places = -log_readings(delta)[0], _places(terms)
        upper = largest_loss(terms)
        if places:
            best = min(places, key=lambda c: (total(terms, c).value + log_inverse) / c)
            found = (sum_of_bounds(terms, best) + log_inverse) / best * (1.0 + _OUTWARD)
            upper = min(found, upper)
        lower = min(least_epsilon(terms, delta), upper)
        return Interval(lower, upper, upper)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        if not terms or epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        upper, places = 1.0, _places(terms)
        if places:
            best = min(places, key=lambda c: total(terms, c).value - c * epsilon)
            moment = sum_of_bounds(terms, best)
            exponent = moment - best * epsilon + _OUTWARD * (moment + best * epsilon)
            upper = min(math.exp(min(exponent, 0.0)) * (1.0 + _OUTWARD) + 5e-324, 1.0)
        lower = min(least_delta(terms, epsilon), upper)
        return Interval(lower, upper, upper)


def _places(terms: Terms) -> list[float]:
    """Return the orders less 1, which are exact floats, at which there may be a bound."""
    last = largest_order(terms)
    return [order - 1.0 for order in TENSORFLOW_ORDERS if order - 1.0 <= last]
