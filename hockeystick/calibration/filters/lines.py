"""Supermartingales behind an odometer, which bound a loss at all times at once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, TypeAlias, final

from hockeystick.calibration.filters.approximate import ApproxDPMeasure, Rule, largest_losses
from hockeystick.calibration.filters.costs import NOTHING, delta_of, sum_over_parts
from hockeystick.calibration.filters.one_order import CANDIDATES, divergence_without_failure
from hockeystick.calibration.session.runs import Costs
from hockeystick.errors import HockeystickError, IncompatibleError
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics import float_above
from hockeystick.numerics.rounding import float_up

# The lambdas are 8 times powers of 2, and the shares of delta 1/(1 + j^2) over no less than the sum
# of these over all j, pi coth(pi) = 3.1533...
_CENTRE: Final = 8.0
_LINES_EACH_WAY: Final = 20
_SHARES: Final = 3.16
# Covers the few roundings of a line, and both readings of delta.
_OUTWARD: Final = 1.0 + 2.0**-45
_MEASURE: Final = ApproxDPMeasure(NOTHING, NOTHING, NOTHING, NOTHING, Rule.CONCENTRATED)
# Places of the orders around the central one: sqrt(2) apart in order - 1. The shares of delta are
# 1/(1 + k^2) over no less than their sum, 2.884008...
_PLACES: Final = range(-6, 9)
_ROOTS: Final = (1.0, 2.0**0.5)
_ORDER_SHARES: Final = 2.8841
_NEWTON_STEPS: Final = 20
_CLOSE: Final = 1e-14
# What floats may lose of an exponent, relative to the sum of its terms, and of a sum; with room.
_LOST: Final = 2.0**-48
_REACHED: Final = 1.0 + 2.0**-45
Term: TypeAlias = tuple[float, float, float]


class Lines(ABC):
    """Costs that add up over adaptively chosen releases, and the bound of the loss they give."""

    __slots__ = ()

    @abstractmethod
    def cost(self, mechanism: Mechanism) -> Costs:
        """Return the cost of one run of a mechanism.

        Raises:
            IncompatibleError: If it may fail, or no bound is known of it.
            UnsupportedError: If nothing is known of a part of it.
        """

    @property
    @abstractmethod
    def nothing(self) -> Costs:
        """The cost of no run."""

    @abstractmethod
    def bound(self, spent: Costs, delta: float) -> float:
        """Return what the loss ever exceeds with probability at most delta, rounded up."""


@final
@dataclass(frozen=True, slots=True)
class RhoLines(Lines):
    """The least of ``(lambda_j + 1) rho + ln(1/delta_j) / lambda_j``, and the largest losses."""

    def cost(self, mechanism: Mechanism) -> Costs:
        """Return the sum of the largest losses, how many have none, rho and delta."""
        found = _MEASURE.cost(mechanism)
        _refuse_failure(mechanism, found[3])
        return found

    @property
    def nothing(self) -> Costs:
        return (NOTHING,) * 4

    def bound(self, spent: Costs, delta: float) -> float:
        losses, unbounded, rho, _ = spent
        pure = float_above(losses) if unbounded == 0 else math.inf
        places = range(-_LINES_EACH_WAY, _LINES_EACH_WAY + 1)
        return min(pure, *(_line(rho, delta, j) for j in places))


@final
@dataclass(frozen=True, slots=True)
class OrderLines(Lines):
    """A mixture over Renyi orders ``1 + c_k``, with ``c_k`` about ``(centre - 1) 2^(k/2)``.

    With weights ``w_k = 1 / (2.8841 (1 + k^2))`` for k from -6 to 8, which add up to less than 1,
    and the sums S_k of the divergences of each order, ``sum_k w_k exp(c_k (L - S_k))`` is a
    supermartingale that starts below 1: the bound is where it is 1/delta. An order at which some
    release has no finite divergence is left out, which only lowers the sum.
    """

    centre: float

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders, rising."""
        gap = self.centre - 1.0
        return tuple(1.0 + gap * 2.0 ** (k // 2) * _ROOTS[k % 2] for k in _PLACES)

    def cost(self, mechanism: Mechanism) -> Costs:
        """Return the largest losses, the divergences, and how many there are not of either."""
        _refuse_failure(mechanism, sum_over_parts(mechanism, delta_of))
        losses, unbounded = largest_losses(mechanism)
        sums, missing = [], []
        refusal: HockeystickError | None = None
        for order in self.orders:
            try:
                sums.append(
                    sum_over_parts(mechanism, partial(divergence_without_failure, order=order))
                )
                missing.append(NOTHING)
            except HockeystickError as error:
                sums.append(NOTHING)
                missing.append(Fraction(1))
                refusal = error
        if refusal is not None and unbounded and all(missing):
            raise refusal
        return losses, unbounded, *sums, *missing

    @property
    def nothing(self) -> Costs:
        return (NOTHING,) * (2 + 2 * len(_PLACES))

    def bound(self, spent: Costs, delta: float) -> float:
        """Return where the mixture is 1/delta, or the sum of the largest losses."""
        pure = float_above(spent[0]) if spent[1] == 0 else math.inf
        sums, missing = spent[2 : 2 + len(_PLACES)], spent[2 + len(_PLACES) :]
        terms: list[Term] = []
        for k, order, total, none in zip(_PLACES, self.orders, sums, missing, strict=True):
            above = float_up(total)
            if none == 0 and above < math.inf:
                log = math.log(delta) - math.log(_ORDER_SHARES * (1 + k * k))
                terms.append((order - 1.0, above, log))
        return min(pure, _crossing(terms))


def _crossing(terms: list[Term]) -> float:
    """Return where ``sum exp(c (x - S) + log)`` over the terms ``(c, S, log)`` is 1, rounded up.

    The logarithm of the sum is convex and increasing, so that Newton's steps from above stay above.
    """
    if not terms:
        return math.inf
    found = min(total - log / c for c, total, log in terms)
    for _ in range(_NEWTON_STEPS):
        logs = [c * (found - total) + log for c, total, log in terms]
        top = max(logs)
        parts = [math.exp(one - top) for one in logs]
        size = math.fsum(parts)
        slope = math.fsum(part * c for part, (c, _, _) in zip(parts, terms, strict=True)) / size
        step = (top + math.log(size)) / slope
        found -= step
        if step <= _CLOSE * found:
            break
    more = _CLOSE
    while not _reached(terms, found):
        found *= 1.0 + more
        more *= 2.0
    return found


def _reached(terms: list[Term], x: float) -> bool:
    """Return whether the sum is provably at least 1."""
    least = (
        c * (x - total) + log - _LOST * (c * (x + total) - log + 1.0) for c, total, log in terms
    )
    return math.fsum(math.exp(min(one, 1.0)) for one in least) >= _REACHED


def central_order(plan: Mechanism, delta: float) -> float:
    """Return the order of the least single line of an expected plan.

    Raises:
        IncompatibleError: If the plan has no finite divergence at any order.
        UnsupportedError: If nothing is known of a part of it.
    """
    lines: dict[float, float] = {}
    refusal: HockeystickError | None = None
    for order in CANDIDATES:
        try:
            total = sum_over_parts(plan, partial(divergence_without_failure, order=order))
        except HockeystickError as error:
            refusal = error
        else:
            lines[order] = float(total) - math.log(delta) / (order - 1.0)
    if not lines and refusal is not None:
        raise refusal
    return min(lines, key=lambda order: lines[order])


def _refuse_failure(mechanism: Mechanism, delta: Fraction) -> None:
    """Raise where a mechanism may fail."""
    if delta > 0:
        raise IncompatibleError(
            f"a {mechanism} may fail, and an odometer has no share of delta for that; use a "
            "Filter of an ApproxDP budget"
        )


def _line(rho: Fraction, delta: float, j: int) -> float:
    """Return one line's bound, rounded up."""
    slope = _CENTRE * 2.0**j
    log = math.log(_SHARES * (1.0 + j * j)) - math.log(delta)
    return ((slope + 1.0) * float_above(rho) + log / slope) * _OUTWARD
