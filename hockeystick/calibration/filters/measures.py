"""Additive measures: the cost of a mechanism, and the limit that a budget sets on their sum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Self, final

from hockeystick.calibration.filters.costs import (
    divergence_of,
    epsilon_of,
    mu_square_of,
    rho_of,
    sum_over_parts,
    truncated_rho_of,
)
from hockeystick.calibration.session.runs import Costs
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import GDP, TCDP, ZCDP, Notion, PureDP, RenyiDP
from hockeystick.numerics import decimal, float_above, float_below
from hockeystick.numerics.rounding import as_mpf
from hockeystick.numerics.working_precision import working_digits

_DIGITS = 50


class AdditiveMeasure(ABC):
    """Costs that add up over adaptively chosen releases, and the limit on their sum."""

    __slots__ = ()

    @abstractmethod
    def cost(self, mechanism: Mechanism) -> Costs:
        """Return the cost of one run of a mechanism.

        Raises:
            IncompatibleError: If the cost of a part of it is not known.
            UnsupportedError: If nothing is known of a part of it.
        """

    @property
    @abstractmethod
    def limits(self) -> Costs:
        """What ``covers`` compares sums with, in a stated order."""

    @abstractmethod
    def lowered(self, limits: Costs) -> Self:
        """Return the measure with limits that are at most these and its own."""

    @abstractmethod
    def covers(self, spent: Costs) -> bool:
        """Return whether the sum of the costs is within the limit."""

    @abstractmethod
    def guarantee(self, spent: Costs) -> Notion:
        """Return a sum of costs as a guarantee, rounded up."""

    @abstractmethod
    def remaining(self, spent: Costs) -> Notion:
        """Return the largest guarantee that one more step may have, rounded down."""


@final
@dataclass(frozen=True, slots=True)
class OneNumber(AdditiveMeasure):
    """A number that adds up, with a limit; ``notion`` makes a guarantee of it."""

    limit: Fraction
    of_part: Callable[[Mechanism], Fraction]
    notion: Callable[[float], Notion]

    def cost(self, mechanism: Mechanism) -> Costs:
        return (sum_over_parts(mechanism, self.of_part),)

    @property
    def limits(self) -> Costs:
        return (self.limit,)

    def lowered(self, limits: Costs) -> Self:
        return replace(self, limit=min(self.limit, *limits))

    def covers(self, spent: Costs) -> bool:
        return spent[0] <= self.limit

    def guarantee(self, spent: Costs) -> Notion:
        return self.notion(float_above(spent[0]))

    def remaining(self, spent: Costs) -> Notion:
        return self.notion(float_below(self.limit - spent[0]))


@final
@dataclass(frozen=True, slots=True)
class Squares(AdditiveMeasure):
    """The squares of mu, which add up to that of the budget."""

    limit: Fraction

    def cost(self, mechanism: Mechanism) -> Costs:
        return (sum_over_parts(mechanism, mu_square_of),)

    @property
    def limits(self) -> Costs:
        return (self.limit,)

    def lowered(self, limits: Costs) -> Self:
        return replace(self, limit=min(self.limit, *limits))

    def covers(self, spent: Costs) -> bool:
        return spent[0] <= self.limit

    def guarantee(self, spent: Costs) -> Notion:
        mu = root(spent[0])
        while mu < math.inf and decimal(mu) ** 2 < spent[0]:
            mu = math.nextafter(mu, math.inf)
        return GDP(mu)

    def remaining(self, spent: Costs) -> Notion:
        left = max(self.limit - spent[0], Fraction(0))
        mu = root(left)
        while decimal(mu) ** 2 > left:
            mu = math.nextafter(mu, 0.0)
        return GDP(mu)


@final
@dataclass(frozen=True, slots=True)
class Divergences(AdditiveMeasure):
    """Renyi divergences of given orders; each order has a limit of its own, and all are kept."""

    by_order: tuple[tuple[float, Fraction], ...]

    def cost(self, mechanism: Mechanism) -> Costs:
        return tuple(
            sum_over_parts(mechanism, partial(divergence_of, order=order))
            for order, _ in self.by_order
        )

    @property
    def limits(self) -> Costs:
        return tuple(limit for _, limit in self.by_order)

    def lowered(self, limits: Costs) -> Self:
        pairs = zip(self.by_order, limits, strict=True)
        return replace(self, by_order=tuple((a, min(own, limit)) for (a, own), limit in pairs))

    def covers(self, spent: Costs) -> bool:
        return all(sum_ <= limit for sum_, limit in zip(spent, self.limits, strict=True))

    def guarantee(self, spent: Costs) -> Notion:
        orders = (order for order, _ in self.by_order)
        return RenyiDP(list(zip(orders, map(float_above, spent), strict=True)))

    def remaining(self, spent: Costs) -> Notion:
        pairs = zip(self.by_order, spent, strict=True)
        return RenyiDP([(order, float_below(limit - sum_)) for (order, limit), sum_ in pairs])


def by_rho(limit: float) -> OneNumber:
    """Return the additive measure of zero-concentrated privacy."""
    return OneNumber(decimal(limit), rho_of, ZCDP)


def by_truncated_rho(limit: float, omega: float) -> OneNumber:
    """Return the additive measure of truncated concentrated privacy, for orders up to omega."""
    part = partial(truncated_rho_of, omega=omega)
    return OneNumber(decimal(limit), part, lambda rho: TCDP(rho, omega))


def by_epsilon(limit: float) -> OneNumber:
    """Return the additive measure of pure privacy."""
    return OneNumber(decimal(limit), epsilon_of, PureDP)


def root(value: Fraction) -> float:
    """Return the root of a number >= 0, to about the last bit."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(_DIGITS):
        return float(mp.sqrt(as_mpf(value)))
