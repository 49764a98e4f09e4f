"""What a conversion is given, what its source is worth, and what it results in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, final

from hockeystick._suggest import hint
from hockeystick._validate import real
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, Origin, PureDP, RenyiDP
from hockeystick.notions.guarantees import OMEGA, ORDER
from hockeystick.tradeoffs import PerfectPrivacy

_ORDERS: Final = "an order > 1, or several: --orders 2,4 or orders=[2, 4]"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The free parameters of a target, checked; of those not asked for, None or nothing."""

    epsilon: float | None = None
    delta: float | None = None
    omega: float = math.inf
    orders: tuple[float, ...] = ()


def read(target: str, names: tuple[str, ...], given: Mapping[str, object]) -> Given:
    """Return the parameters of a target, which has those of the given names, or raise."""
    for name, value in given.items():
        if name not in names:
            has = f"; its own are {', '.join(names)}{hint(name, names)}" if names else ""
            raise ParameterError(name, value, f"left out: {target} has no such parameter{has}")
    if "omega" in names:
        return Given(omega=real("omega", given.get("omega"), OMEGA))
    if "orders" in names:
        return Given(orders=_orders(given.get("orders")))
    if "delta" not in names:
        return Given()
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


def _orders(orders: object) -> tuple[float, ...]:
    """Return one order or several, rising, or raise."""
    listed: tuple[object, ...] = ()
    if orders is not None and not isinstance(orders, str | bytes):
        try:
            listed = tuple(orders) if isinstance(orders, Iterable) else (orders,)
        except TypeError:  # an array without dimensions
            listed = ()
    if not listed:
        raise ParameterError("orders", orders, _ORDERS)
    return tuple(sorted({real("orders", order, ORDER) for order in listed}))


_Notion = TypeVar("_Notion", bound=Notion)

ITSELF: Final = "the guarantee itself"
UNBOUNDED: Final = "the class holds the Gaussian mechanism, whose losses have no largest value"
FAILS: Final = (
    "with a delta above 0 the class holds a release that shows everything with probability delta, "
    "so that divergences are infinite and f(0) < 1"
)
TAIL: Final = (
    "it bounds divergences of some orders only, so that delta may fall as slowly as a power of "
    "e^-epsilon; that of a Gaussian falls faster"
)
NO_NOISE: Final = "without noise everything is released"
FEW_ORDERS: Final = "divergences of larger orders may be infinite, and the target bounds them"


def simplest(source: Mechanism) -> Mechanism:
    """Return the simplest notion that states the same guarantee, or the source."""
    match source:
        case ApproxDP(delta=0.0):
            return PureDP(source.epsilon)
        case TCDP(omega=math.inf):
            return ZCDP(source.rho)
        case _:
            return source


def strength(source: Mechanism) -> float:
    """Return 0 for a guarantee of perfect privacy, inf for a vacuous one, else a number between."""
    match source:
        case PureDP():
            return source.epsilon
        case ApproxDP():
            return math.inf if source.delta == 1.0 else max(source.epsilon, source.delta)
        case GDP():
            return source.mu
        case ZCDP() | TCDP():
            return source.rho
        case RenyiDP():
            return min(divergence for _, divergence in source.divergences)
        case FDP(tradeoff=f) if f.forward == f.backward == PerfectPrivacy():
            return 0.0
        case _:
            return 1.0


def exact(notion: _Notion, theorem: str) -> _Notion:
    """Return a result that is the least possible for the class."""
    return proven(notion, theorem, tight=True)


def bound(notion: _Notion, theorem: str) -> _Notion:
    """Return a result that is proven, but may not be the least."""
    return proven(notion, theorem, tight=False)


def proven(notion: _Notion, theorem: str, *, tight: bool, lower: tuple[float, ...] = ()) -> _Notion:
    """Return a result that is the least possible for the class, or may not be."""
    return notion.because(Origin("exact" if tight else "bound", theorem, lower))


def is_exact(result: Notion) -> bool:
    """Return whether a conversion found the least possible."""
    return result.origin is not None and result.origin.kind == "exact"


def through(step: Notion, result: _Notion) -> _Notion:
    """Return a bound by way of another notion, with the theorems of both steps."""
    names = [one.origin.theorem for one in (step, result) if one.origin is not None]
    return bound(result, "; then ".join(dict.fromkeys(names)))


def and_bounds(theorem: str, steps: Iterable[Notion]) -> str:
    """Return a theorem with those of the steps that are but bounds."""
    origins = [one.origin for one in steps if one.origin is not None]
    loose = [origin.theorem for origin in origins if origin.kind == "bound"]
    return "; ".join(dict.fromkeys([theorem, *loose]))


def refused(source: Mechanism, target: str, reason: str) -> IncompatibleError:
    """Return the error that says why nothing of a target is proven to follow from a source."""
    return IncompatibleError(f"no {target} is proven to follow from a {source}: {reason}")
