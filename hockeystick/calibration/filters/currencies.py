"""What a budget is spent in: how mechanisms are charged, and when a budget is used up."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, final

from hockeystick.calibration.filters.amounts import (
    divergence_of,
    epsilon_of,
    mu_square_of,
    rho_of,
    summed,
    truncated_rho_of,
)
from hockeystick.calibration.ledger.runs import Amounts
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import GDP, TCDP, ZCDP, Notion, PureDP, RenyiDP
from hockeystick.numerics import decimal, float_above, float_below
from hockeystick.numerics.rounding import as_mpf
from hockeystick.numerics.working_precision import working_digits

if TYPE_CHECKING:
    pass

_DIGITS = 50


class AdditiveMeasure(ABC):
    """Amounts that add up over adaptively chosen releases, and what they may add up to."""

    __slots__ = ()

    @abstractmethod
    def cost(self, mechanism: Mechanism) -> Amounts:
        """Return what one run of a mechanism costs.

        Raises:
            IncompatibleError: If no such amount is known for a part of it.
            UnsupportedError: If nothing is known of a part of it.
        """

    @abstractmethod
    def covers(self, spent: Amounts) -> bool:
        """Return whether the budget allows that so much is spent."""

    @abstractmethod
    def told(self, spent: Amounts) -> Notion:
        """Return an amount as a guarantee, rounded up."""

    @abstractmethod
    def rest(self, spent: Amounts) -> Notion:
        """Return the largest guarantee that one more step may have, rounded down."""


@final
@dataclass(frozen=True, slots=True)
class OneNumber(AdditiveMeasure):
    """A number that adds up, to a limit; as a guarantee it is shown by way of ``shown``."""

    limit: Fraction
    of_part: Callable[[Mechanism], Fraction]
    shown: Callable[[float], Notion]

    def cost(self, mechanism: Mechanism) -> Amounts:
        """Return the sum over the parts."""
        return (summed(mechanism, self.of_part),)

    def covers(self, spent: Amounts) -> bool:
        """Return whether the number is within the limit."""
        return spent[0] <= self.limit

    def told(self, spent: Amounts) -> Notion:
        """Return the number as a guarantee."""
        return self.shown(float_above(spent[0]))

    def rest(self, spent: Amounts) -> Notion:
        """Return what is left of the limit."""
        return self.shown(float_below(self.limit - spent[0]))


@final
@dataclass(frozen=True, slots=True)
class Squares(AdditiveMeasure):
    """The squares of mu, which add up to that of the budget."""

    limit: Fraction

    def cost(self, mechanism: Mechanism) -> Amounts:
        """Return the sum over the parts."""
        return (summed(mechanism, mu_square_of),)

    def covers(self, spent: Amounts) -> bool:
        """Return whether the sum of the squares is within the limit."""
        return spent[0] <= self.limit

    def told(self, spent: Amounts) -> Notion:
        """Return the root."""
        mu = root(spent[0])
        while mu < math.inf and decimal(mu) ** 2 < spent[0]:
            mu = math.nextafter(mu, math.inf)
        return GDP(mu)

    def rest(self, spent: Amounts) -> Notion:
        """Return the root of what is left."""
        left = max(self.limit - spent[0], Fraction(0))
        mu = root(left)
        while decimal(mu) ** 2 > left:
            mu = math.nextafter(mu, 0.0)
        return GDP(mu)


@final
@dataclass(frozen=True, slots=True)
class Divergences(AdditiveMeasure):
    """Renyi divergences of given orders; each order has a limit of its own, and all are kept."""

    limits: tuple[tuple[float, Fraction], ...]

    def cost(self, mechanism: Mechanism) -> Amounts:
        """Return the sum over the parts at each order."""
        return tuple(
            summed(mechanism, partial(divergence_of, order=order)) for order, _ in self.limits
        )

    def covers(self, spent: Amounts) -> bool:
        """Return whether every order is within its limit."""
        limits = (limit for _, limit in self.limits)
        return all(sum_ <= limit for sum_, limit in zip(spent, limits, strict=True))

    def told(self, spent: Amounts) -> Notion:
        """Return the divergences as a guarantee."""
        orders = (order for order, _ in self.limits)
        return RenyiDP(list(zip(orders, map(float_above, spent), strict=True)))

    def rest(self, spent: Amounts) -> Notion:
        """Return what is left at each order."""
        pairs = zip(self.limits, spent, strict=True)
        return RenyiDP([(order, float_below(limit - sum_)) for (order, limit), sum_ in pairs])


def by_rho(limit: float) -> OneNumber:
    """Return the currency of zero-concentrated privacy."""
    return OneNumber(decimal(limit), rho_of, ZCDP)


def by_truncated_rho(limit: float, omega: float) -> OneNumber:
    """Return the currency of truncated concentrated privacy, for orders up to omega."""
    part = partial(truncated_rho_of, omega=omega)
    return OneNumber(decimal(limit), part, lambda rho: TCDP(rho, omega))


def by_epsilon(limit: float) -> OneNumber:
    """Return the currency of pure privacy."""
    return OneNumber(decimal(limit), epsilon_of, PureDP)


def root(value: Fraction) -> float:
    """Return the root of a number >= 0, to about the last bit."""
    from mpmath import mp

    with working_digits(_DIGITS):
        return float(mp.sqrt(as_mpf(value)))
