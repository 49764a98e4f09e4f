"""Points of the real axis at which the cgf K is read: the optimal order, the saddle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hockeystick.numerics.roots import Differentiable, increasing_root, increasing_root_by_newton
from hockeystick.privacy_loss import AnalyticLoss
from hockeystick.privacy_loss.core.terms import (
    LARGEST_LOG_ORDER,
    TermSequence,
    breakpoints,
    largest_order,
    total,
)

# Where a search for an order begins, and the last of Newton's steps for ln c.
_FIRST_ORDER: Final = 4.5
_LAST_STEP: Final = 1e-3


def cgf_estimates(
    terms: Sequence[tuple[AnalyticLoss, int]], orders: Sequence[float]
) -> list[float]:
    """Return K of the composition at several orders; it proves nothing."""
    values = [(count, loss.cgf_estimates(orders)) for loss, count in terms]
    return [math.fsum(count * one[k] for count, one in values) for k in range(len(orders))]


def candidate_orders(terms: TermSequence, c: float) -> tuple[float, ...]:
    """Return c, at most the last order of a finite K, and the breakpoints next to it."""
    last, near = largest_order(terms), breakpoints(terms)
    c = min(c, last)
    below, beyond = [x for x in near if x < c], [x for x in near if c < x <= last]
    return (c, *below[-1:], *beyond[:1])


def optimal_order(terms: TermSequence, log_delta: float) -> float:
    """Return the ``c = alpha - 1`` that gives the least epsilon by ``renyi_epsilon``.

    The derivative in c vanishes where ``c K' - K + ln(1+c) + ln delta = 0``, which increases.
    """
    last = largest_order(terms)

    def condition(log_c: float) -> float:
        c = math.exp(log_c)
        if c > last:
            return math.inf
        k = total(terms, c)
        return c * k.first_derivative - k.value + math.log1p(c) + log_delta

    return math.exp(increasing_root(condition, 1.5, tolerance=1e-5, farthest=LARGEST_LOG_ORDER))


def optimal_order_at(terms: TermSequence, epsilon: float) -> float:
    """Return the ``c = alpha - 1`` that gives the least delta at an epsilon."""

    def condition(log_c: float) -> float:
        c = math.exp(log_c)
        return total(terms, c).first_derivative - epsilon - math.log1p(1.0 / c)

    return math.exp(increasing_root(condition, 1.5, tolerance=1e-5, farthest=LARGEST_LOG_ORDER))


def rough_optimal_order(
    terms: TermSequence, log_delta: float, start: float = _FIRST_ORDER
) -> float:
    """Return about ``optimal_order``, in fewer evaluations the nearer the start is."""
    last = largest_order(terms)

    def condition(log_c: float) -> tuple[float, float]:
        c = math.exp(log_c)
        if c > last:
            return math.inf, 0.0
        k = total(terms, c)
        value = c * k.first_derivative - k.value + math.log1p(c)
        return _log_ratio(
            (value, c * (c * k.second_derivative + 1.0 / (1.0 + c))), (-log_delta, 0.0)
        )

    return _order(condition, start)


def rough_optimal_order_at(
    terms: TermSequence, epsilon: float, start: float = _FIRST_ORDER
) -> float:
    """Return about ``optimal_order_at``, in fewer evaluations the nearer the start is."""

    def condition(log_c: float) -> tuple[float, float]:
        c = math.exp(log_c)
        k = total(terms, c)
        goal = epsilon + math.log1p(1.0 / c), -1.0 / (1.0 + c)
        return _log_ratio((k.first_derivative, c * k.second_derivative), goal)

    return _order(condition, start)


def saddle(terms: TermSequence, epsilon: float, start: float = _FIRST_ORDER) -> float:
    """Return about the c > 0 that minimises ``K(c) - epsilon c - ln c - ln(1 + c)``."""

    def condition(log_c: float) -> tuple[float, float]:
        c = math.exp(log_c)
        k = total(terms, c)
        goal = epsilon + 1.0 / c + 1.0 / (1.0 + c), -1.0 / c - c / ((1.0 + c) * (1.0 + c))
        return _log_ratio((k.first_derivative, c * k.second_derivative), goal)

    return _order(condition, start)


def _order(condition: Differentiable, start: float) -> float:
    """Return the c > 0 at which a condition, a function of ln c with its derivative, is 0."""
    return math.exp(
        increasing_root_by_newton(
            condition, math.log(start), last_step=_LAST_STEP, farthest=LARGEST_LOG_ORDER
        )
    )


def _log_ratio(value: tuple[float, float], goal: tuple[float, float]) -> tuple[float, float]:
    """Return ln of a value over its goal, all with derivatives; only a sign where one is below 0.

    Both are about powers or exponentials of c, for which the logarithm is nearly linear.
    """
    if not (0.0 < value[0] < math.inf and goal[0] > 0.0):
        return math.copysign(math.inf, value[0] - goal[0]), 0.0
    return math.log(value[0] / goal[0]), value[1] / value[0] - goal[1] / goal[0]


def saddle_log_delta(terms: TermSequence, c: float) -> tuple[float, float]:
    """Return the epsilon whose saddle is c, and the saddle-point estimate of ln delta there."""
    return saddle_terms(terms, c)[:2]


def saddle_terms(terms: TermSequence, c: float) -> tuple[float, float, float]:
    """Return the same two, and the second derivative of what the saddle minimises."""
    k = total(terms, c)
    if k.value == math.inf:
        return math.inf, -math.inf, 0.0
    epsilon = k.first_derivative - 1.0 / c - 1.0 / (1.0 + c)
    second = k.second_derivative + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c))
    log_integrand = k.value - epsilon * c - math.log(c) - math.log1p(c)
    return epsilon, log_integrand - 0.5 * math.log(2.0 * math.pi * second), second
