"""Readings of a composition on the real axis, some losses being known by bounds alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from hockeystick.numerics import ULP
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss.core.base import CGFEstimate, PrivacyLoss
from hockeystick.privacy_loss.core.composition import Terms

TermSequence: TypeAlias = Sequence[tuple[PrivacyLoss, int]]

# The real axis is searched for ln c up to this far from 0.
LARGEST_LOG_ORDER: Final = 60.0


def total(terms: TermSequence, c: float) -> CGFEstimate:
    """Return the estimate of the composition's K: each run's, times the runs, added up."""
    value = first = second = 0.0
    for loss, count in terms:
        one = loss.cgf_estimate(c)
        value += count * one.value
        first += count * one.first_derivative
        second += count * one.second_derivative
    return CGFEstimate(value, first, second)


def cgf_upper(terms: Terms, c: float) -> float:
    """Return a proven upper bound of the composition's ``K(c)``."""
    if c > last_order(terms):
        return math.inf
    return sum_of_bounds(terms, c) * (1.0 + 8.0 * ULP)


def sum_of_bounds(terms: TermSequence, c: float) -> float:
    """Return an upper bound of the composition's ``K(c)``, but for the rounding of its terms."""
    found = [(loss.cgf_bounds(c), count) for loss, count in terms]
    return math.fsum(count * (k.midpoint + k.radius) for k, count in found)


def last_order(terms: TermSequence) -> float:
    """Return the largest c at which K is known to be bounded, inf where there is none."""
    return min((loss.last_order for loss, _ in terms), default=math.inf)


def corners(terms: TermSequence) -> tuple[float, ...]:
    """Return where the slope of the bound of K jumps, rising."""
    return tuple(sorted({c for loss, _ in terms for c in loss.corners}))


def places(terms: Terms, condition: Callable[[float], float]) -> tuple[float, ...]:
    """Return orders c, within reach, where a function is least whose slope has this sign.

    The function falls where the condition, which increases, is negative. Where its slope jumps,
    the least value is at the corner next to where the sign changes.
    """
    last = last_order(terms)

    def sign(log_c: float) -> float:
        c = math.exp(log_c)
        return condition(c) if c <= last else math.inf

    c = min(math.exp(increasing_root(sign, 1.0, tolerance=1e-6, farthest=LARGEST_LOG_ORDER)), last)
    near = corners(terms)
    below, above = [x for x in near if x < c], [x for x in near if c < x <= last]
    return (c, *below[-1:], *above[:1])
