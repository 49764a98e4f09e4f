"""Parameters of theorems checked, and their formulas evaluated and rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hockeystick._validate import Domain, real
from hockeystick.conversions._given import check_one_of_two
from hockeystick.errors import ParameterError
from hockeystick.notions.guarantees import MU, ORDER
from hockeystick.numerics.working_precision import working_digits
from hockeystick.tradeoffs.reading import DIGITS, up


def evaluated(formula: Callable[[Any], Any]) -> float:
    """Return a number >= 0 computed by mpmath's context in many digits, rounded up."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        return up(max(formula(mp), mp.zero))


def other_of_two(
    of_delta: Callable[[Any], Any], of_epsilon: Callable[[Any], Any], epsilon: float | None
) -> float:
    """Return epsilon, or delta where an epsilon is given, rounded up."""
    if epsilon is None:
        return evaluated(of_delta)
    if epsilon == math.inf:
        return 0.0
    return min(evaluated(lambda m: min(of_epsilon(m), m.one)), 1.0)


def half_square(value: float) -> float:
    """Return ``value^2 / 2``, rounded up."""
    return evaluated(lambda m: m.mpf(value) ** 2 / 2)


def up_product(*factors: float) -> float:
    """Return a product of finite numbers >= 0, rounded up."""

    def product(m: Any) -> Any:
        result = m.one
        for factor in factors:
            result *= factor
        return result

    return evaluated(product)


def one_of_two(epsilon: object, delta: object, *, zero: bool = False) -> float:
    """Return the one of the two that is given, or raise."""
    check_one_of_two(epsilon, delta)
    if epsilon is not None:
        return real("epsilon", epsilon)
    value = real("delta", delta)
    if value == 0.0 and not zero:
        raise ParameterError("delta", delta, "a number > 0 and <= 1")
    return value


def order_of(order: object) -> float:
    """Return an order of a Renyi divergence, or raise."""
    return real("order", order, ORDER)


def positive_mu(mu: object) -> float:
    """Return a finite mu > 0, or raise."""
    value = finite("mu", mu, MU)
    if value == 0.0:
        raise ParameterError("mu", mu, "a finite number > 0")
    return value


def finite(name: str, value: object, domain: Domain) -> float:
    """Return a finite number of a domain, or raise."""
    number = real(name, value, domain)
    if number == math.inf:
        raise ParameterError(name, value, "a finite number >= 0")
    return number
