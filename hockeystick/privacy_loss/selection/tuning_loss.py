"""What the losses of the best of a random number of runs share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from hockeystick.mechanisms.selection.tuning import RunCount
from hockeystick.numerics import ULP
from hockeystick.numerics.rounding import DIGITS, evaluated_up
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.core.base import CGFEstimate
from hockeystick.privacy_loss.core.composition import Terms
from hockeystick.privacy_loss.core.terms import cgf_upper
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss
from hockeystick.privacy_loss.guarantees.renyi import RunsBoundLoss

_DIFFERENCE: Final = 1e-3
# Exponents of 2 for the order up to which K is bounded by a chord.
_EXPONENTS: Final = tuple(0.25 * step for step in range(-32, 49))


class TunedLoss(RunsBoundLoss):
    """The best of some runs: ``terms`` are one run's losses, ``reverse`` the other direction's."""

    __slots__ = ()

    reverse: Terms

    @property
    @abstractmethod
    def count(self) -> RunCount:
        """The distribution of the number of runs."""


class FactorLoss(TunedLoss):
    """``K(c) <= ln(1 + C (e^(K_run(c)) - 1))`` by a factor C of each order, as ``tuning`` proves.

    Below ``tangent_order`` K is at most the line from 0 to the bound there.
    """

    __slots__ = ()

    @property
    def tangent_order(self) -> float:
        """The order below which the line from 0 is the least bound, about."""
        return _tangent_order(self)

    @property
    def supremum(self) -> float:
        return self.largest(self.terms, self.reverse)

    @property
    def opposite_supremum(self) -> float:
        """That in the other direction."""
        return self.largest(self.reverse, self.terms)

    @abstractmethod
    def largest(self, terms: Terms, reverse: Terms) -> float:
        """Return the largest loss in the direction of ``terms``, rounded up."""

    @abstractmethod
    def log_factor(self, c: float) -> float:
        """Return an upper bound of ``ln C``."""

    def seen_bound(self, c: float) -> float:
        """Return an upper bound of K(c) where all runs are seen, inf where it is of no use."""
        return math.inf

    def bound(self, c: float) -> float:
        if c == 0.0:
            return 0.0
        least = self.direct_bound(c)
        if c >= self.tangent_order:
            return least
        return min(
            least,
            self._theorem_bound(self.tangent_order) / self.tangent_order * c * (1.0 + 8.0 * ULP),
        )

    def direct_bound(self, c: float) -> float:
        """Return the least of the bounds at this order itself, rounded up."""
        suprema = self.supremum, self.opposite_supremum
        responses = randomized_response_bound(*suprema, c).value
        return min(self._theorem_bound(c), self.seen_bound(c), responses)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if c > self.largest_order:
            return CGFEstimate(math.inf, math.inf, 0.0)
        c = min(c, (1.0 - 2.0 * _DIFFERENCE) * self.largest_order)
        h = _DIFFERENCE * c
        low, middle, high = (self.bound(c + d) for d in (-h, 0.0, h))
        return CGFEstimate(middle, (high - low) / (2 * h), (high - 2 * middle + low) / (h * h))

    def _theorem_bound(self, c: float) -> float:
        """Return the bound of the factor, rounded up."""
        return log_mixed(self.log_factor(c), cgf_upper(self.terms, c))


@lru_cache(maxsize=256)
def _tangent_order(loss: FactorLoss) -> float:
    """Return the order of the least bound per order, among powers of 2."""
    within = (min(float(2.0**exponent), loss.largest_order) for exponent in _EXPONENTS)
    return min((loss.direct_bound(c) / c, c) for c in within)[1]


def evaluated(value: Callable[[Any], Any]) -> float:
    """Return a number >= 0, computed by mpmath, rounded up."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        return evaluated_up(value(mp))


def randomized_response_bound(largest: float, opposite_supremum: float, c: float) -> CGFEstimate:
    """Return an upper bound of K by the suprema of the loss in both directions.

    It is that of randomized response where both are finite; else ``c`` times the supremum.
    """
    line = CGFEstimate(c * largest * (1.0 + 4.0 * ULP), largest, 0.0)
    if max(largest, opposite_supremum) == math.inf:
        return line
    loss = RandomizedResponsePairLoss(max(largest, opposite_supremum))
    return min(
        line, CGFEstimate(sum(loss.cgf_bounds(c)) * (1.0 + 4.0 * ULP), *loss.cgf_estimate(c)[1:])
    )


def sum_up(first: float, second: float) -> float:
    """Return a sum of numbers >= 0, rounded up."""
    return (first + second) * (1.0 + 8.0 * ULP)


def log_mixed(log_factor: float, k: float) -> float:
    """Return ``ln(1 + C (e^k - 1))``, rounded up; both arguments are upper bounds."""
    if k == 0.0 or k == math.inf:
        return k
    rest = math.log(-math.expm1(-k))
    x = log_factor + k + rest
    error = 8.0 * ULP * (abs(log_factor) + k + abs(rest) + 1.0)
    value = x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))
    return value * (1.0 + 2.0 * error + 16.0 * ULP)
