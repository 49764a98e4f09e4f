"""Budgets of (epsilon, delta) kept at one Renyi order, which an expected plan chooses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final, Self, final

from hockeystick.calibration.filters.costs import (
    NOTHING,
    delta_of,
    divergence_of,
    sum_over_parts,
    without_failure,
)
from hockeystick.calibration.filters.measures import AdditiveMeasure
from hockeystick.calibration.session.runs import Costs
from hockeystick.conversions.theorems import canonne_kamath_steinke
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import ApproxDP, RenyiDP
from hockeystick.numerics import decimal, float_above, float_below
from hockeystick.numerics.rounding import as_mpf
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor

_DIGITS: Final = 60
# What mpmath may lose in a formula of a few operations, relative to its largest term, with room.
_LOST: Final = Fraction(1, 2**150)
# fmt: off
_CANDIDATES: Final = (
    1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0, 4.5,
    5.0, 5.5, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 14.0, 16.0, 18.0, 20.0, 24.0, 28.0, 32.0, 40.0,
    48.0, 56.0, 64.0, 80.0, 96.0, 128.0, 192.0, 256.0, 512.0, 1024.0, 4096.0,
)
# fmt: on
_SOME_ORDER: Final = "larger: at no Renyi order does the slack leave any of it"


@final
@dataclass(frozen=True, slots=True)
class OneOrderMeasure(AdditiveMeasure):
    """The costs ``(divergence, delta)`` of an (epsilon, delta) budget at one Renyi order.

    The divergences of the releases, without their failures, add up to at most the divergence that
    is (epsilon, slack)-DP by Canonne, Kamath and Steinke, and the deltas to at most the rest.
    """

    order: float
    most: Fraction
    slack: Fraction
    failures: Fraction

    def cost(self, mechanism: Mechanism) -> Costs:
        """Return the sums over the parts."""
        divergence = partial(_divergence_without_failure, order=self.order)
        return sum_over_parts(mechanism, divergence), sum_over_parts(mechanism, delta_of)

    @property
    def limits(self) -> Costs:
        """Those of the divergence and of the deltas."""
        return self.most, self.failures

    def lowered(self, limits: Costs) -> Self:
        """Return the measure with the lower one of both limits for each."""
        most, failures = map(min, zip(self.limits, limits, strict=True))
        return replace(self, most=most, failures=failures)

    def covers(self, spent: Costs) -> bool:
        """Return whether the divergence and the deltas are within their limits."""
        return spent[0] <= self.most and spent[1] <= self.failures

    def guarantee(self, spent: Costs) -> ApproxDP:
        """Return the guarantee of a plan with these costs, rounded up."""
        divergence, delta = float_above(spent[0]), spent[1]
        if divergence == 0.0:
            return ApproxDP(0.0, min(float_above(delta), 1.0))
        slack = float_below(self.slack)
        epsilon = canonne_kamath_steinke(self.order, divergence, delta=slack)
        return ApproxDP(epsilon, min(float_above(delta + self.slack), 1.0))

    def remaining(self, spent: Costs) -> RenyiDP:
        """Return the largest divergence that one more release may have at the order."""
        left = max(self.most - spent[0], NOTHING)
        return RenyiDP([(self.order, float_below(left) if spent[1] <= self.failures else 0.0)])


def one_order_measure(budget: ApproxDP, slack: float, order: float) -> OneOrderMeasure:
    """Return the measure of an (epsilon, delta) budget at an order.

    Raises:
        ParameterError: If the slack leaves nothing of epsilon at this order.
    """
    most = divergence_limit(budget.epsilon, slack, order)
    if most is None:
        raise ParameterError("budget", budget, _SOME_ORDER)
    kept = decimal(slack)
    return OneOrderMeasure(order, most, kept, decimal(budget.delta) - kept)


def expected_order(plan: Mechanism, budget: ApproxDP, slack: float) -> float:
    """Return the order at which the budget covers an expected plan most often.

    Only the choice depends on the plan, and not the guarantee, which any order fixed in advance
    gives.

    Raises:
        ParameterError: If the slack leaves nothing of epsilon at any order.
        IncompatibleError: If the plan has no finite divergence at any order.
        UnsupportedError: If nothing is known of a part of it.
    """
    limits = {order: divergence_limit(budget.epsilon, slack, order) for order in _CANDIDATES}
    open_orders = {order: most for order, most in limits.items() if most is not None}
    if not open_orders:
        raise ParameterError("budget", budget, _SOME_ORDER)
    shares: dict[float, Fraction] = {}
    refusal: HockeystickError | None = None
    for order, most in open_orders.items():
        try:
            cost = sum_over_parts(plan, partial(_divergence_without_failure, order=order))
        except HockeystickError as error:
            refusal = error
        else:
            shares[order] = cost / most
    if not shares and refusal is not None:
        raise refusal
    return min(shares, key=lambda order: shares[order])


def divergence_limit(epsilon: float, slack: float, order: float) -> Fraction | None:
    """Return the divergence that is (epsilon, slack)-DP, rounded down; None where there is none.

    By ``canonne_kamath_steinke``, ``tau = eps - (ln((a-1)^(a-1) / a^a) - ln slack) / (a-1)``; a
    term that is below 0 is left out.
    """
    from hockeystick.numerics.multiprecision import mp

    if slack == 0.0:
        return None
    with working_digits(_DIGITS):
        c = mp.mpf(order) - 1
        log_slack, factor = mp.log(as_mpf(decimal(slack))), log_cks_factor(c, mp)
        paid = max((factor - log_slack) / c, mp.zero)
        mantissa, exponent = paid.man_exp
        size = float((abs(factor) + abs(log_slack)) / c)
    exact = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    found = decimal(epsilon) - exact - (Fraction(size) + decimal(epsilon)) * _LOST
    return found if found > 0 else None


def _divergence_without_failure(part: Mechanism, order: float) -> Fraction:
    """Return the divergence of one run of a part, of an (epsilon, delta) one without its delta."""
    return divergence_of(without_failure(part), order)
