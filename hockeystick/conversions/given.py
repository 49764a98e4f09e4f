"""What a conversion is asked for, what its source is worth, and what it results in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar, final

from hockeystick._validate import real
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, Origin, PureDP, RenyiDP
from hockeystick.notions.guarantees import OMEGA, ORDER
from hockeystick.tradeoffs import GaussianTradeOff, PerfectPrivacy

_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"ApproxDP": ("epsilon", "delta"), "TCDP": ("omega",), "RenyiDP": ("orders",)}
)
_ORDERS: Final = "an order > 1, or several: --orders 2,4 or orders=[2, 4]"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The free parameters of a target, checked: epsilon asked for at a delta, or the reverse."""

    asked: Literal["epsilon", "delta"] = "epsilon"
    at: float = 0.0
    omega: float = math.inf
    orders: tuple[float, ...] = ()


def read(target: str, given: Mapping[str, object]) -> Given:
    """Return the parameters of a target, or raise."""
    names = _PARAMETERS.get(target, ())
    for name, value in given.items():
        if name not in names:
            takes = ", ".join(names) or "no parameters"
            raise ParameterError(name, value, f"left out: {target} takes {takes}")
    if target == "TCDP":
        return Given(omega=real("omega", given.get("omega"), OMEGA))
    if target == "RenyiDP":
        return Given(orders=_orders(given.get("orders")))
    if target != "ApproxDP":
        return Given()
    epsilon, delta = given.get("epsilon"), given.get("delta")
    at = one_of_two(epsilon, delta)
    return Given(asked="epsilon" if epsilon is None else "delta", at=at)


def one_of_two(epsilon: object, delta: object) -> float:
    """Return the one of the two that is given without the other, or raise."""
    if (epsilon is None) == (delta is None):
        given = None if epsilon is None else (epsilon, delta)
        allowed = "given: delta to ask for epsilon, or epsilon to ask for delta"
        raise ParameterError("exactly one of epsilon and delta", given, allowed)
    return real("delta", delta) if epsilon is None else real("epsilon", epsilon)


def _orders(orders: Any) -> tuple[float, ...]:
    """Return one order or several, rising, or raise."""
    try:
        listed = tuple(orders)
    except TypeError:
        listed = (orders,)
    if orders is None or not listed:
        raise ParameterError("orders", orders, _ORDERS)
    return tuple(sorted({real("orders", order, ORDER) for order in listed}))


def simplest(source: Mechanism) -> Mechanism:
    """Return the simplest notion or plan that states the same guarantee, or the source."""
    match source:
        case ApproxDP(delta=0.0):
            return PureDP(source.epsilon)
        case TCDP(omega=math.inf):
            return ZCDP(source.rho)
        case FDP(tradeoff=GaussianTradeOff(mu=mu)):
            return GDP(mu)
        case FDP():
            return source.expanded
        case _:
            return source


def strength(source: Mechanism) -> float:
    """Return 0 for a guarantee of perfect privacy, inf for a vacuous one, else a number between."""
    match source:
        case ApproxDP():
            return math.inf if source.delta == 1.0 else max(source.epsilon, source.delta)
        case RenyiDP():
            return min(divergence for _, divergence in source.divergences)
        case FDP(tradeoff=f):
            return 0.0 if f.forward == f.backward == PerfectPrivacy() else 1.0
        case Notion() if source.rises_with:
            return float(getattr(source, source.rises_with[0]))
        case _:
            return 1.0


_Notion = TypeVar("_Notion", bound=Notion)


def proven(
    notion: _Notion, theorem: str, *, tight: bool = True, lower: tuple[float, ...] = ()
) -> _Notion:
    """Return a result with why it holds; tight where it is the least possible for the class."""
    return notion.because(Origin("exact" if tight else "bound", theorem, lower))


def through(step: Notion, result: _Notion) -> _Notion:
    """Return a bound by way of another notion, with the theorems of both steps."""
    names = [one.origin.theorem for one in (step, result) if one.origin is not None]
    return proven(result, "; then ".join(names), tight=False)


def refused(source: Mechanism, target: str, reason: str) -> IncompatibleError:
    """Return the error that says why nothing of a target is proven to follow from a source."""
    return IncompatibleError(f"no {target} is proven to follow from a {source}: {reason}")
