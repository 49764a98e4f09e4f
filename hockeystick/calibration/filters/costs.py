"""The cost of one run in the additive measure of a budget: exact fractions, rounded up.

Numbers that are given mean the decimals that they print as, so that ten times 0.1 is 1; orders
are what they are as floats, and what is computed is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import singledispatch
from typing import Final

from hockeystick.conversions import by_losses
from hockeystick.conversions.convert import convert
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Gaussian, Laplace, Mechanism, RandomizedResponse, runs_of
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.numerics import decimal, largest_reading
from hockeystick.numerics.rounding import short_up

NOTHING: Final = Fraction(0)


def sum_over_parts(mechanism: Mechanism, of_part: Callable[[Mechanism], Fraction]) -> Fraction:
    """Return the sum of the costs of a plan's parts."""
    return sum((of_part(part) * count for part, count in runs_of(mechanism)), NOTHING)


@singledispatch
def epsilon_of(part: Mechanism) -> Fraction:
    """Return the largest loss of one run."""
    return largest_reading(convert(part, PureDP).epsilon)


@epsilon_of.register
def _(part: PureDP | RandomizedResponse) -> Fraction:
    return decimal(_finite(part.epsilon, part, "PureDP"))


@epsilon_of.register
def _(part: Laplace) -> Fraction:
    _finite(math.inf if part.scale == 0.0 else 0.0, part, "PureDP")
    return _inverse(part.scale)


@singledispatch
def rho_of(part: Mechanism) -> Fraction:
    """Return the rho of one run: the exact sum over its losses, or else by conversion."""
    known = by_losses.rho_of(part)
    return largest_reading(convert(part, ZCDP).rho) if known is None else short_up(known.value)


@rho_of.register
def _(part: PureDP | ApproxDP) -> Fraction:
    return largest_reading(convert(part, ZCDP).rho)


@rho_of.register
def _(part: ZCDP) -> Fraction:
    return decimal(_finite(part.rho, part, "ZCDP"))


def mu_square_of(part: Mechanism) -> Fraction:
    """Return the square of the mu of one run: the exact sum over its losses, or by conversion."""
    known = by_losses.mu_square_of(part)
    return largest_reading(convert(part, GDP).mu) ** 2 if known is None else short_up(known.value)


@singledispatch
def divergence_of(part: Mechanism, order: float) -> Fraction:
    """Return the Renyi divergence of one run, the larger one of both directions."""
    ((_, divergence),) = convert(part, RenyiDP, orders=order).divergences
    return largest_reading(divergence)


@divergence_of.register
def _(part: Gaussian | GDP | ZCDP, order: float) -> Fraction:
    return rho_of(part) * Fraction(order)


@divergence_of.register
def _(part: RenyiDP, order: float) -> Fraction:
    given = dict(part.divergences).get(order, math.inf)
    if given < math.inf:
        return decimal(given)
    ((_, divergence),) = convert(part, RenyiDP, orders=order).divergences
    return largest_reading(divergence)


@singledispatch
def truncated_rho_of(part: Mechanism, omega: float) -> Fraction:
    """Return the rho of one run for orders up to omega."""
    return largest_reading(convert(part, TCDP, omega=omega).rho)


@truncated_rho_of.register
def _(part: Gaussian | GDP | ZCDP, omega: float) -> Fraction:
    return rho_of(part)


@truncated_rho_of.register
def _(part: TCDP, omega: float) -> Fraction:
    if part.omega < omega:
        return largest_reading(convert(part, TCDP, omega=omega).rho)
    return decimal(_finite(part.rho, part, "TCDP"))


@singledispatch
def delta_of(part: Mechanism) -> Fraction:
    """Return the delta of one run: 0 unless it states one."""
    return NOTHING


@delta_of.register
def _(part: ApproxDP) -> Fraction:
    return decimal(part.delta)


@singledispatch
def without_failure(part: Mechanism) -> Mechanism:
    """Return a mechanism without its delta: of an (epsilon, delta) guarantee the epsilon-DP one."""
    return part


@without_failure.register
def _(part: ApproxDP) -> Mechanism:
    return PureDP(part.epsilon)


def _finite(value: float, part: Mechanism, notion: str) -> float:
    """Return a finite number, or raise where everything is released."""
    if value == math.inf:
        raise IncompatibleError(
            f"no {notion} is proven to follow from a {part}: it allows everything"
        )
    return value


def _inverse(value: float) -> Fraction:
    """Return one over a number > 0, rounded up where it is no short fraction; 0 for inf."""
    return NOTHING if math.isinf(value) else short_up(1 / decimal(value))
