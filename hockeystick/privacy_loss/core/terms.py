"""K of a composition on the real axis, estimated or bounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from hockeystick.numerics import ULP
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss.core.base import CGFEstimate, PrivacyLoss
from hockeystick.privacy_loss.core.composition import Terms

TermSequence: TypeAlias = Sequence[tuple[PrivacyLoss, int]]

# Orders are searched for ``|ln c|`` up to this.
LARGEST_LOG_ORDER: Final = 60.0


def total(terms: TermSequence, c: float) -> CGFEstimate:
    """Return the estimate of the composition's K, the sum over its runs."""
    value = first = second = 0.0
    for loss, count in terms:
        one = loss.cgf_estimate(c)
        value += count * one.value
        first += count * one.first_derivative
        second += count * one.second_derivative
    return CGFEstimate(value, first, second)


def cgf_upper(terms: Terms, c: float) -> float:
    """Return a proven upper bound of the composition's ``K(c)``."""
    if c > largest_order(terms):
        return math.inf
    return sum_of_bounds(terms, c) * (1.0 + 8.0 * ULP)


def sum_of_bounds(terms: TermSequence, c: float) -> float:
    """Return an upper bound of the composition's ``K(c)``, without the rounding of the products."""
    found = [(loss.cgf_bounds(c), count) for loss, count in terms]
    return math.fsum(count * (k.midpoint + k.radius) for k, count in found)


def largest_order(terms: TermSequence) -> float:
    """Return the largest c at which K is known to be finite; inf for every c."""
    return min((loss.largest_order for loss, _ in terms), default=math.inf)


def breakpoints(terms: TermSequence) -> tuple[float, ...]:
    """Return the orders at which the derivative of the bound of K jumps, ascending."""
    return tuple(sorted({c for loss, _ in terms for c in loss.breakpoints}))


def candidate_orders(terms: TermSequence, c: float) -> tuple[float, ...]:
    """Return c, at most the last order of a finite K, and the breakpoints next to it."""
    last, near = largest_order(terms), breakpoints(terms)
    c = min(c, last)
    below, beyond = [x for x in near if x < c], [x for x in near if c < x <= last]
    return (c, *below[-1:], *beyond[:1])


def minimising_orders(terms: Terms, condition: Callable[[float], float]) -> tuple[float, ...]:
    """Return the orders c one of which minimises a function whose derivative has this sign.

    The function decreases where the condition, which increases, is negative. Where its derivative
    jumps, the minimum may be at a breakpoint next to the change of sign.
    """
    last = largest_order(terms)

    def sign(log_c: float) -> float:
        c = math.exp(log_c)
        return condition(c) if c <= last else math.inf

    log_c = increasing_root(sign, 1.0, tolerance=1e-6, farthest=LARGEST_LOG_ORDER)
    return candidate_orders(terms, math.exp(log_c))
