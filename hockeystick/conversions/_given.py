"""What a conversion is given, what its source is worth, and why it cannot be had."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import NoReturn, TypeVar, final

from hockeystick._suggest import hint
from hockeystick._validate import real
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, Origin, PureDP, RenyiDP
from hockeystick.notions.base import OMEGA
from hockeystick.notions.concentrated import ORDER
from hockeystick.tradeoffs import PerfectPrivacy

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


_Notion = TypeVar("_Notion", bound=Notion)

UNBOUNDED = "the class holds the Gaussian mechanism, whose losses have no largest value"
FAILS = (
    "with a delta above 0 the class holds a release that shows everything with probability delta, "
    "so that divergences are infinite and f(0) < 1"
)
TAIL = (
    "it bounds divergences of some orders only, so that delta may fall as slowly as a power of "
    "e^-epsilon; that of a Gaussian falls faster"
)
NO_NOISE = "without noise everything is released"
FEW_ORDERS = "divergences of larger orders may be infinite, and the target bounds them"


def exact(notion: _Notion, theorem: str) -> _Notion:
    """Return a result that is the least possible for the class."""
    return told(notion, theorem, tight=True)


def bound(notion: _Notion, theorem: str) -> _Notion:
    """Return a result that is proven, but may not be the least."""
    return told(notion, theorem, tight=False)


def told(notion: _Notion, theorem: str, *, tight: bool, lower: tuple[float, ...] = ()) -> _Notion:
    """Return a result that is the least possible for the class, or may not be."""
    return notion.because(Origin("exact" if tight else "bound", theorem, lower))


def through(step: Notion, result: _Notion) -> _Notion:
    """Return a bound by way of another notion, with the theorems of both steps."""
    names = [one.origin.theorem for one in (step, result) if one.origin is not None]
    return bound(result, "; then ".join(dict.fromkeys(names)))


def and_bounds(theorem: str, steps: Iterable[Notion]) -> str:
    """Return a theorem with those of the steps that are but bounds."""
    origins = [one.origin for one in steps if one.origin is not None]
    loose = [origin.theorem for origin in origins if origin.kind == "bound"]
    return "; ".join(dict.fromkeys([theorem, *loose]))


def refuse(source: Mechanism, target: str, reason: str) -> NoReturn:
    """Raise the error that says why nothing of a target is proven to follow from a source."""
    raise IncompatibleError(f"no {target} is proven to follow from a {source}: {reason}")


@singledispatch
def strength(source: Mechanism) -> float:
    """Return 0 for a guarantee of perfect privacy, inf for a vacuous one, else a number between."""
    return 1.0


@strength.register
def _(source: PureDP) -> float:
    return source.epsilon


@strength.register
def _(source: ApproxDP) -> float:
    return math.inf if source.delta == 1.0 else max(source.epsilon, source.delta)


@strength.register
def _(source: GDP) -> float:
    return source.mu


@strength.register
def _(source: ZCDP | TCDP) -> float:
    return source.rho


@strength.register
def _(source: RenyiDP) -> float:
    return min(divergence for _, divergence in source.divergences)


@strength.register
def _(source: FDP) -> float:
    f = source.tradeoff
    return 0.0 if f.forward == f.backward == PerfectPrivacy() else 1.0
