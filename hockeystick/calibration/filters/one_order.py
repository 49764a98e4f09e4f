"""Budgets of (epsilon, delta) kept at one Renyi order, which an expected plan chooses.

Let ``S_t(c)`` be the sum of the divergences of order 1 + c of the releases so far, each the largest
of both directions, and L_t the loss of all of them. Given the past, ``E exp(c L)`` of the next
release is at most ``exp(c tau)`` with its divergence tau, so that ``exp(c (L_t - S_t(c)))`` is a
supermartingale from 1, whatever chooses mechanisms, their parameters and the time T to stop. Where
``S_T(c) <= B`` always,

    delta(eps) <= E (1 - e^(eps - L_T))_+ <= sup_l (1 - e^(eps - l))_+ e^(-c (l - B)),

which is Canonne, Kamath and Steinke's ``exp(c (B - eps)) c^c / (1+c)^(1+c)``: B is the limit where
this is the slack.

**No curve of orders is better.** Let a filter keep ``S(c_j) <= B_j`` at several orders, and prove
its delta by weights, as ``E f(L_T) <= slack`` with ``f(l) = slack sum_j w_j e^(c_j (l - B_j))``,
where the w_j add up to 1 and ``f(l) >= (1 - e^(eps - l))_+``. Then ln f is convex and
``ln(1 - e^(eps - l))_+`` concave, so that some line ``c (l - B) + ln slack`` lies between them:
c is a mean ``sum t_j c_j``, and ``c B >= sum t_j c_j B_j + sum t_j ln(t_j / w_j)``. That line
proves that B at the single order 1 + c is (eps, slack)-DP; and since ``c S(c)`` is convex in c,
whatever the curve admits has ``c S(c) <= sum t_j c_j B_j <= c B``: the single order admits it too.

**The order must be fixed in advance.** To go on while *some* order is within its own limit is no
guarantee: outputs then choose which one. ``tests/calibration/filters/test_adversaries.py`` has an
adversary that spends 1.3 times the slack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, final

from hockeystick.calibration.filters.costs import (
    delta_of,
    divergence_without_failure,
    sum_over_parts,
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
CANDIDATES: Final = (
    1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0, 4.5,
    5.0, 5.5, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 14.0, 16.0, 18.0, 20.0, 24.0, 28.0, 32.0, 40.0,
    48.0, 56.0, 64.0, 80.0, 96.0, 128.0, 192.0, 256.0, 512.0, 1024.0, 4096.0,
)
# fmt: on
# How often the interval around the best candidate is halved, and the digits of what is tried there.
_HALVINGS: Final = 3
_ORDER_DIGITS: Final = 5
_SOME_ORDER: Final = "larger: at no Renyi order does the slack leave any of it"


@final
@dataclass(frozen=True, slots=True)
class OneOrderMeasure(AdditiveMeasure):
    """The costs ``(divergence, delta)`` of an (epsilon, delta) budget at one Renyi order.

    The divergences of the releases, without their failures, add up to at most the divergence that
    is (epsilon, slack)-DP by Canonne, Kamath and Steinke, and the deltas to at most the rest.
    """

    order: float
    slack: Fraction

    def cost(self, mechanism: Mechanism) -> Costs:
        divergence = partial(divergence_without_failure, order=self.order)
        return sum_over_parts(mechanism, divergence), sum_over_parts(mechanism, delta_of)

    def guarantee(self, spent: Costs) -> ApproxDP:
        divergence, delta = float_above(spent[0]), spent[1]
        if divergence == 0.0:
            return ApproxDP(0.0, min(float_above(delta), 1.0))
        slack = float_below(self.slack)
        epsilon = canonne_kamath_steinke(self.order, divergence, delta=slack)
        return ApproxDP(epsilon, min(float_above(delta + self.slack), 1.0))

    def remaining(self, spent: Costs) -> RenyiDP:
        """Return the largest divergence that one more release may have at the order."""
        most, failures = self.limits
        left = float_below(most - spent[0]) if spent[1] <= failures else 0.0
        return RenyiDP([(self.order, left)])


def one_order_measure(budget: ApproxDP, slack: float, order: float) -> OneOrderMeasure:
    """Return the measure of an (epsilon, delta) budget at an order."""
    most = divergence_limit(budget.epsilon, slack, order)
    if most is None:
        raise ParameterError("budget", budget, _SOME_ORDER)
    kept = decimal(slack)
    return OneOrderMeasure((most, decimal(budget.delta) - kept), order, kept)


def expected_order(plan: Mechanism, budget: ApproxDP, slack: float) -> float:
    """Return the order at which the budget covers an expected plan most often.

    Only the choice depends on the plan, and not the guarantee, which any order fixed in advance
    gives.
    """
    shares = _Shares(plan, budget.epsilon, slack)
    for order in CANDIDATES:
        shares.add(order)
    best = shares.best()
    for _ in range(_HALVINGS):
        below, above = shares.neighbours(best)
        for other in (below, above):
            shares.add(float(f"{0.5 * (best + other):.{_ORDER_DIGITS}g}"))
        best = shares.best()
    return best


@final
class _Shares:
    """Which share of its limit a plan costs, at the orders that were tried."""

    __slots__ = ("_by_order", "_epsilon", "_plan", "_refusal", "_slack")

    def __init__(self, plan: Mechanism, epsilon: float, slack: float) -> None:
        self._plan, self._epsilon, self._slack = plan, epsilon, slack
        self._by_order: dict[float, Fraction] = {}
        self._refusal: HockeystickError | None = None

    def add(self, order: float) -> None:
        """Try an order, unless the slack leaves nothing there, or the plan has no divergence."""
        most = divergence_limit(self._epsilon, self._slack, order)
        if most is None or order in self._by_order:
            return
        try:
            cost = sum_over_parts(self._plan, partial(divergence_without_failure, order=order))
        except HockeystickError as error:
            self._refusal = error
        else:
            self._by_order[order] = cost / most

    def best(self) -> float:
        """Return the order of the least share, or raise where there is none."""
        if self._by_order:
            return min(self._by_order, key=lambda order: self._by_order[order])
        if self._refusal is not None:
            raise self._refusal
        budget = ApproxDP(self._epsilon, self._slack)
        raise ParameterError("budget", budget, _SOME_ORDER)

    def neighbours(self, order: float) -> tuple[float, float]:
        """Return the orders that were tried next to one, or itself at an end."""
        known = sorted(self._by_order)
        place = known.index(order)
        return known[max(place - 1, 0)], known[min(place + 1, len(known) - 1)]


def expected_slack(plan: Mechanism, budget: ApproxDP) -> float:
    """Return the part of delta that an expected plan's own failures leave."""
    failures = sum_over_parts(plan, delta_of)
    if failures == 0 and budget.delta > 0.0:
        return budget.delta
    left = float_below(decimal(budget.delta) - failures)
    while left > 0.0 and decimal(left) + failures > decimal(budget.delta):
        left = math.nextafter(left, 0.0)
    if left <= 0.0:
        raise ParameterError("expected", plan, "a plan whose own deltas leave some of the budget's")
    return left


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
