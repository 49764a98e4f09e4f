"""Points of the real axis at which the cgf K is read: the optimal order, the saddle."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss import AnalyticLoss
from hockeystick.privacy_loss.core.terms import (
    LARGEST_LOG_ORDER,
    TermSequence,
    breakpoints,
    largest_order,
    total,
)


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


def saddle(terms: TermSequence, epsilon: float) -> float:
    """Return the c > 0 that minimises ``K(c) - epsilon c - ln c - ln(1 + c)``."""

    def condition(log_c: float) -> float:
        c = math.exp(log_c)
        return total(terms, c).first_derivative - epsilon - 1.0 / c - 1.0 / (1.0 + c)

    return math.exp(increasing_root(condition, 1.5, tolerance=1e-4, farthest=LARGEST_LOG_ORDER))


def saddle_log_delta(terms: TermSequence, c: float) -> tuple[float, float]:
    """Return the epsilon whose saddle is c, and the saddle-point estimate of ln delta there."""
    k = total(terms, c)
    epsilon = k.first_derivative - 1.0 / c - 1.0 / (1.0 + c)
    second = k.second_derivative + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c))
    log_integrand = k.value - epsilon * c - math.log(c) - math.log1p(c)
    return epsilon, log_integrand - 0.5 * math.log(2.0 * math.pi * second)
