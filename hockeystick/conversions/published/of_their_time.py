"""What the tools of a time would have reported: proven bounds, with the grids they had."""

from __future__ import annotations

import math
from typing import ClassVar, Final, final

from hockeystick._validate import real
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.closed_form import BoundAccountant
from hockeystick.conversions.published.shuffling import OPEN_DELTA
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.mechanisms.base import checked
from hockeystick.numerics import log_readings
from hockeystick.numerics.rounding import OUTWARD_128
from hockeystick.privacy_loss import Terms
from hockeystick.privacy_loss.core.composition import largest_order, sum_of_bounds, total
from hockeystick.results import Certified

TENSORFLOW_ORDERS: Final = (
    *(1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5),
    *map(float, range(5, 64)),
    *(128.0, 256.0, 512.0),
)


def tensorflow_privacy_epsilon(plan: Mechanism, delta: float) -> Certified:
    """Return the epsilon that TensorFlow Privacy's ``compute_dp_sgd_privacy`` stood for about 2019.

    ``epsilon = min over its orders a of tau(a) + ln(1/delta) / (a - 1)``, where tau is the Renyi
    divergence, for the 72 orders 1.25, 1.5, ..., 4.5, 5, 6, ..., 63, 128, 256 and 512. It is what
    papers of the time report as the moments accountant, to the digits that they print.

    Guarantees:
        ``upper`` is a proven bound for the plan, rounding included, never below that of "rdp" and
        usually well above the truth. ``lower`` is the closed form of that part of the plan that
        costs most. The library summed the terms of fractional orders with the wrong signs, to a
        slightly larger number. Where no order has a finite divergence, epsilon is the largest loss.

    Args:
        plan: A mechanism or plan; one that releases nothing costs 0.
        delta: Above 0 and below 1.

    Raises:
        UnsupportedError: If no loss is known for a part of the plan.

    Mironov, "Renyi Differential Privacy", CSF 2017, proposition 3; Mironov, Talwar and Zhang,
    "Renyi Differential Privacy of the Sampled Gaussian Mechanism", 2019;
    https://github.com/tensorflow/privacy, analysis/compute_dp_sgd_privacy.py.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.conversions.published.of_their_time import tensorflow_privacy_epsilon
        >>> plan = hs.DPSGD(rate=0.01, steps=10_000, noise_multiplier=6)
        >>> print(f"{tensorflow_privacy_epsilon(plan, 1e-5):.3f}")
        0.823
        >>> print(f"{hs.epsilon(plan, 1e-5):.3f}")
        0.601
    """
    probability = real("delta", delta, OPEN_DELTA)
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
class _TensorFlowPrivacy(BoundAccountant):
    """Mironov's conversion to epsilon at the best order of the grid."""

    name: ClassVar[str] = "tensorflow-privacy-2019"
    summary: ClassVar[str] = "upper bound by 72 orders, as published papers report it"

    def epsilon_upper(self, terms: Terms, delta: float) -> float:
        log_inverse = -log_readings(delta)[0]
        last = largest_order(terms)
        orders = (order - 1.0 for order in TENSORFLOW_ORDERS if order - 1.0 <= last)
        bounds = [((total(terms, c).value + log_inverse) / c, c) for c in orders]
        if not bounds:
            return math.inf
        best = min(bounds)[1]
        return (sum_of_bounds(terms, best) + log_inverse) / best * (1.0 + OUTWARD_128)

    def delta_upper(self, terms: Terms, epsilon: float) -> float:
        return 1.0  # asked by nobody
