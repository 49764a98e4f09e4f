"""Which additive measure keeps a budget, and with which options."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import singledispatch
from typing import Any, Final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.calibration.filters.approximate import Rule, approx_dp_measure
from hockeystick.calibration.filters.measures import (
    AdditiveMeasure,
    Divergences,
    Squares,
    by_epsilon,
    by_rho,
    by_truncated_rho,
)
from hockeystick.calibration.filters.one_order import (
    expected_order,
    expected_slack,
    one_order_measure,
)
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import (
    FixedSizeSubsampled,
    Mechanism,
    PoissonSubsampled,
    TruncatedPoissonSubsampled,
    WithReplacementSubsampled,
    runs_of,
)
from hockeystick.mechanisms.base import checked
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics import decimal

ORDER: Final = Domain(
    symbol="alpha", low=1, high=math.inf, low_open=True, high_open=True, typical=(1.25, 64.0)
)
_SAMPLED: Final = (
    FixedSizeSubsampled,
    PoissonSubsampled,
    TruncatedPoissonSubsampled,
    WithReplacementSubsampled,
)
_NO_ORDER: Final = "left out: only an ApproxDP budget without a rule has an order"
_FINITE: Final = "a guarantee that bounds something: its numbers finite, delta below 1"


@singledispatch
def additive_measure(budget: Notion, slack: float | None, rule: Rule | None) -> AdditiveMeasure:
    """Return the additive measure of a budget."""
    raise IncompatibleError(
        f"no filter is known for a {budget}; use RenyiDP, ZCDP, TCDP, GDP, PureDP or ApproxDP"
    )


@additive_measure.register
def _(budget: RenyiDP, slack: float | None, rule: Rule | None) -> AdditiveMeasure:
    bounded = ((order, limit) for order, limit in budget.divergences if limit < math.inf)
    return Divergences(tuple((order, decimal(limit)) for order, limit in bounded))


@additive_measure.register
def _(budget: ZCDP, slack: float | None, rule: Rule | None) -> AdditiveMeasure:
    return by_rho(budget.rho)


@additive_measure.register
def _(budget: TCDP, slack: float | None, rule: Rule | None) -> AdditiveMeasure:
    return by_truncated_rho(budget.rho, budget.omega)


@additive_measure.register
def _(budget: GDP, slack: float | None, rule: Rule | None) -> AdditiveMeasure:
    return Squares(decimal(budget.mu) ** 2)


@additive_measure.register
def _(budget: PureDP, slack: float | None, rule: Rule | None) -> AdditiveMeasure:
    return by_epsilon(budget.epsilon)


@additive_measure.register
def _(budget: ApproxDP, slack: float | None, rule: Rule | None) -> AdditiveMeasure:
    return approx_dp_measure(budget, slack or 0.0, rule or Rule.CONCENTRATED)


@singledispatch
def _is_finite(budget: Notion) -> bool:
    """Return whether a budget bounds anything; for unknown kinds left to the choice of measure."""
    return True


@_is_finite.register
def _(budget: PureDP) -> bool:
    return budget.epsilon < math.inf


@_is_finite.register
def _(budget: ApproxDP) -> bool:
    return budget.epsilon < math.inf and budget.delta < 1.0


@_is_finite.register
def _(budget: GDP) -> bool:
    return budget.mu < math.inf


@_is_finite.register
def _(budget: ZCDP | TCDP) -> bool:
    return budget.rho < math.inf


@_is_finite.register
def _(budget: RenyiDP) -> bool:
    return any(divergence < math.inf for _, divergence in budget.divergences)


def checked_budget(budget: object) -> Notion:
    """Return the budget if it is a guarantee that bounds something, or raise."""
    if not isinstance(budget, Notion) or not _is_finite(budget):
        raise ParameterError("budget", budget, _FINITE + _as_a_guarantee(budget))
    return budget


def _as_a_guarantee(budget: object) -> str:
    """Return how a number or a text is written as a guarantee; nothing for what is neither."""
    if isinstance(budget, str):
        return ", such as ZCDP(rho=0.5), without quotes (io.parse_plan(text) reads one from a text)"
    if isinstance(budget, int | float):
        return f" (write ZCDP(rho={budget!r}), or ApproxDP(epsilon={budget!r}, delta=1e-5))"
    return ""


def checked_options(
    budget: Notion, slack: object, rule: object
) -> tuple[float | None, Rule | None]:
    """Return the options of an (epsilon, delta) budget, which others do not have."""
    if not isinstance(budget, ApproxDP):
        for name, value in (("slack", slack), ("rule", rule)):
            if value is not None:
                raise ParameterError(name, value, "left out: only an ApproxDP budget has it")
        return None, None
    typical = (0.5 * budget.delta, budget.delta)
    domain = Domain(symbol="delta'", low=0, high=budget.delta, typical=typical)
    half = 0.5 * budget.delta if slack is None else slack
    known = Rule.CONCENTRATED if rule is None else _validate.choice("rule", rule, Rule)
    return _validate.real("slack", half, domain), known


def measure_of(
    budget: Notion, slack: float | None, rule: Rule | None, order: float | None
) -> AdditiveMeasure:
    """Return the additive measure of a budget, at one order where it has one."""
    if order is not None and isinstance(budget, ApproxDP):
        return one_order_measure(budget, slack or 0.0, order)
    return additive_measure(budget, slack, rule)


def chosen_by(expected: object, budget: Notion, slack: object, rule: object) -> tuple[float, float]:
    """Return the slack and the order of an (epsilon, delta) budget for an expected plan.

    Raises:
        ParameterError: If the budget has no order, or the plan leaves no slack or no order.
        IncompatibleError: If the plan has no finite divergence at any order.
        UnsupportedError: If nothing is known of a part of it.
    """
    if not isinstance(budget, ApproxDP) or rule is not None:
        raise ParameterError("expected", expected, _NO_ORDER)
    plan = checked("expected", expected)
    part = (
        expected_slack(plan, budget) if slack is None else checked_options(budget, slack, None)[0]
    )
    return part or 0.0, expected_order(plan, budget, part or 0.0)


def recorded_order(budget: Notion, state: Mapping[str, Any]) -> float | None:
    """Return the order that a state of a filter tells, None where it has none; or raise."""
    if "order" not in state:
        return None
    if not isinstance(budget, ApproxDP) or state["rule"] is not None:
        raise ParameterError("order", state["order"], _NO_ORDER)
    return _validate.real("order", state["order"], ORDER)


def is_sampled(mechanism: Mechanism) -> bool:
    """Return whether a part of a plan reads a random sample of the data."""
    return any(isinstance(part, _SAMPLED) for part, _ in runs_of(mechanism))
