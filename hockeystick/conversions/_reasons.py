"""How a result says why it holds, and a refusal why nothing can be said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, TypeVar

from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import Notion, Origin

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
