"""The cost of one run in the additive measure of a budget: exact fractions, rounded up.

Numbers that are given mean the decimals that they print as, so that ten times 0.1 is 1; orders
are what they are as floats, and what is computed is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
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


def epsilon_of(part: Mechanism) -> Fraction:
    """Return the largest loss of one run."""
    if isinstance(part, PureDP | RandomizedResponse):
        return decimal(_finite(part.epsilon, part, "PureDP"))
    if isinstance(part, Laplace):
        _finite(math.inf if part.scale == 0.0 else 0.0, part, "PureDP")
        return NOTHING if math.isinf(part.scale) else short_up(1 / decimal(part.scale))
    return largest_reading(convert(part, PureDP).epsilon)


def largest_loss(part: Mechanism) -> Fraction | None:
    """Return the largest loss of one run, None where there is none."""
    try:
        return epsilon_of(part)
    except IncompatibleError:
        return None


def rho_of(part: Mechanism) -> Fraction:
    """Return the rho of one run: the exact sum over its losses, or else by conversion."""
    if isinstance(part, ZCDP):
        return decimal(_finite(part.rho, part, "ZCDP"))
    known = None if isinstance(part, PureDP | ApproxDP) else by_losses.rho_of(part)
    return largest_reading(convert(part, ZCDP).rho) if known is None else short_up(known.value)


def mu_square_of(part: Mechanism) -> Fraction:
    """Return the square of the mu of one run: the exact sum over its losses, or by conversion."""
    known = by_losses.mu_square_of(part)
    return largest_reading(convert(part, GDP).mu) ** 2 if known is None else short_up(known.value)


def divergence_of(part: Mechanism, order: float) -> Fraction:
    """Return the Renyi divergence of one run, the larger one of both directions."""
    if isinstance(part, Gaussian | GDP | ZCDP):
        return rho_of(part) * Fraction(order)
    given = math.inf
    if isinstance(part, RenyiDP):
        given = dict(part.divergences).get(order, math.inf)
    if given < math.inf:
        return decimal(given)
    ((_, divergence),) = convert(part, RenyiDP, orders=order).divergences
    return largest_reading(divergence)


def truncated_rho_of(part: Mechanism, omega: float) -> Fraction:
    """Return the rho of one run for orders up to omega."""
    if isinstance(part, Gaussian | GDP | ZCDP):
        return rho_of(part)
    if isinstance(part, TCDP) and part.omega >= omega:
        return decimal(_finite(part.rho, part, "TCDP"))
    return largest_reading(convert(part, TCDP, omega=omega).rho)


def delta_of(part: Mechanism) -> Fraction:
    """Return the delta of one run: 0 unless it states one."""
    return decimal(part.delta) if isinstance(part, ApproxDP) else NOTHING


def without_failure(part: Mechanism) -> Mechanism:
    """Return a mechanism without its delta: of an (epsilon, delta) guarantee the epsilon-DP one."""
    return PureDP(part.epsilon) if isinstance(part, ApproxDP) else part


def divergence_without_failure(part: Mechanism, order: float) -> Fraction:
    """Return the divergence of one run of a part, of an (epsilon, delta) one without its delta."""
    return divergence_of(without_failure(part), order)


def _finite(value: float, part: Mechanism, notion: str) -> float:
    """Return a finite number, or raise where everything is released."""
    if value == math.inf:
        raise IncompatibleError(
            f"no {notion} is proven to follow from a {part}: it allows everything"
        )
    return value
