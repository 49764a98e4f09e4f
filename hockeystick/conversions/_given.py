"""What a conversion is told besides its source: the free parameters of the target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from hockeystick._suggest import hint
from hockeystick._validate import real
from hockeystick.errors import ParameterError
from hockeystick.notions.base import OMEGA
from hockeystick.notions.renyi import ORDER

_ORDERS: str = "an order > 1, or several: --orders 2,4 or orders=[2, 4]"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The free parameters of a target, checked; of those not asked for, None or nothing."""

    epsilon: float | None = None
    delta: float | None = None
    omega: float = math.inf
    orders: tuple[float, ...] = ()


def nothing(target: str, given: Mapping[str, object]) -> Given:
    """Return the parameters of a target that has none."""
    _refuse_others(target, given, ())
    return Given()


def epsilon_or_delta(target: str, given: Mapping[str, object]) -> Given:
    """Return the epsilon or the delta that is given, or raise."""
    _refuse_others(target, given, ("epsilon", "delta"))
    epsilon, delta = given.get("epsilon"), given.get("delta")
    check_one_of_two(epsilon, delta)
    if epsilon is not None:
        return Given(epsilon=real("epsilon", epsilon))
    return Given(delta=real("delta", delta))


def check_one_of_two(epsilon: object, delta: object) -> None:
    """Raise unless one of the two is given without the other."""
    if (epsilon is None) == (delta is None):
        given = None if epsilon is None else (epsilon, delta)
        allowed = "given: delta to ask for epsilon, or epsilon to ask for delta"
        raise ParameterError("exactly one of epsilon and delta", given, allowed)


def largest_order(target: str, given: Mapping[str, object]) -> Given:
    """Return the omega that is given, or raise."""
    _refuse_others(target, given, ("omega",))
    return Given(omega=real("omega", given.get("omega"), OMEGA))


def some_orders(target: str, given: Mapping[str, object]) -> Given:
    """Return the orders that are given, rising, or raise."""
    _refuse_others(target, given, ("orders",))
    orders = given.get("orders")
    if isinstance(orders, str | bytes) or orders is None:
        raise ParameterError("orders", orders, _ORDERS)
    try:
        listed = tuple(orders) if isinstance(orders, Iterable) else (orders,)
    except TypeError:
        listed = ()
    if not listed:
        raise ParameterError("orders", orders, _ORDERS)
    return Given(orders=tuple(sorted({real("orders", order, ORDER) for order in listed})))


def _refuse_others(target: str, given: Mapping[str, object], known: tuple[str, ...]) -> None:
    """Raise where a parameter is given that the target does not have."""
    for name, value in given.items():
        if name not in known:
            has = f"; its own are {', '.join(known)}{hint(name, known)}" if known else ""
            raise ParameterError(name, value, f"left out: {target} has no such parameter{has}")
