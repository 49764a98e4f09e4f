"""From any guarantee or plan to any notion, and how close to the truth that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar, final, overload

from hockeystick._suggest import same_name
from hockeystick._validate import one_of
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.closed_form import least_delta, least_epsilon
from hockeystick.conversions.given import Given, exact, read, refused, strength
from hockeystick.conversions.to_approx import to_approx, to_pure
from hockeystick.conversions.to_gdp import to_fdp, to_gdp
from hockeystick.conversions.to_renyi import attained_divergence, attained_divergences, to_renyi
from hockeystick.conversions.to_zcdp import to_tcdp, to_zcdp
from hockeystick.errors import ParameterError, UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.privacy_loss import Terms
from hockeystick.tradeoffs import GaussianTradeOff


@final
@dataclass(frozen=True, slots=True)
class Target:
    """A notion to convert to.

    ``route`` is the conversion, by the type of the source; ``parameters`` are the names of what is
    given besides it; ``least`` is the guarantee of what releases nothing.
    """

    notion: type[Notion]
    route: Callable[[Mechanism, Given], Notion]
    least: Callable[[Given], Notion]
    parameters: tuple[str, ...] = ()


_ALL: Final = (
    Target(PureDP, to_pure, lambda given: PureDP(0)),
    Target(
        ApproxDP,
        to_approx,
        lambda given: ApproxDP(given.epsilon or 0, given.delta or 0),
        ("epsilon", "delta"),
    ),
    Target(GDP, to_gdp, lambda given: GDP(0)),
    Target(ZCDP, to_zcdp, lambda given: ZCDP(0)),
    Target(TCDP, to_tcdp, lambda given: TCDP(0, given.omega), ("omega",)),
    Target(RenyiDP, to_renyi, lambda given: RenyiDP(dict.fromkeys(given.orders, 0.0)), ("orders",)),
    Target(FDP, to_fdp, lambda given: FDP(GaussianTradeOff(0))),
)

TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {target.notion.__name__: target for target in _ALL}
)


_Notion = TypeVar("_Notion", bound=Notion)
_A_SOURCE: Final = "a notion or a plan, such as hs.ZCDP(rho=0.5)"


@overload
def convert(x: Mechanism, to: type[_Notion], **given: object) -> _Notion: ...
@overload
def convert(x: Mechanism, to: str, **given: object) -> Notion: ...
def convert(x: Mechanism, to: type[Notion] | str, **given: object) -> Notion:
    """Return the guarantee of one notion that another one, or a plan, implies.

    From each notion the tightest route that is known is taken: Renyi divergences become
    (epsilon, delta) by the best conversion of the best real order, pure differential privacy
    becomes zCDP with ``eps tanh(eps/2)``, (epsilon, delta)-DP moves along its trade-off function.
    Plans go through the accountants.

    Guarantees:
        "x implies the result" is proven, every number rounded to the safe side. ``origin`` of the
        result says how: kind "exact" means that no smaller result holds for all that satisfy x
        (but for round-off), "bound" that it holds; and by which theorem.

    Edge cases:
        One number for all orders or error rates, as zCDP and GDP have, is as large as the largest
        losses need, where sampling saves nothing; ``lower_ends`` says how close to it the truth is,
        and ``hs.accountants.gaussian_summary`` has the mu at error rates that matter.

        A guarantee that nothing is released implies the same of every notion; one that allows
        everything implies nothing and is refused. delta = 1 gives epsilon 0.

    Args:
        x: A notion, a mechanism or a plan.
        to: A class of notions, such as ``hs.ApproxDP``, or its name, as "ZCDP", "zCDP" or "RDP".
        given: The free parameters of the target. ApproxDP: epsilon or delta, one of them;
            RenyiDP: orders, one or several; TCDP: omega; others: none.

    Returns:
        An instance of the notion asked for.

    Raises:
        ParameterError: If a parameter is outside its domain, missing or not one of the target's.
        IncompatibleError: If x implies no such guarantee, or none is known; it says why.
        UnsupportedError: If x is a plan with a part that no accountant can read.

    References:
        See ``hockeystick.conversions.theorems``.

    Example:
        >>> from hockeystick.conversions import convert
        >>> from hockeystick.notions import ZCDP, ApproxDP
        >>> found = convert(ZCDP(rho=0.5), ApproxDP, delta=1e-6)
        >>> print(f"{found.epsilon:.6f}, {found.origin.kind}: {found.origin.theorem}")
        5.221534, bound: Asoodeh et al. 2021, theorem 3: the best conversion of one order
    """
    source = checked("x", x, allowed=_A_SOURCE)
    name = _name(to)
    target = TARGETS[name]
    parameters = read(name, target.parameters, given)
    released = strength(source)
    if released == 0.0:
        return exact(target.least(parameters), "nothing is released")
    if released == math.inf and parameters.delta == 1.0:
        return exact(target.least(parameters), "every release is (epsilon, 1)-DP")
    if released == math.inf:
        raise refused(source, name, "it allows everything to be released")
    return target.route(source, parameters)


def _name(to: object) -> str:
    for name, target in TARGETS.items():
        if to is target.notion:
            return name
    if not isinstance(to, str):
        raise ParameterError("to", to, f"a notion: one of {', '.join(TARGETS)}")
    return one_of("to", same_name(to, TARGETS), tuple(TARGETS))


# Orders less one: a line above all divergences mostly touches them at an end.
_LARGE_SMALL_REST: Final = (2.0**24, 2.0**-10, 2.0**16, 2.0**10, 64.0, 8.0, 1.0)
_FOUND: Final = "what convert made of x, such as convert(x, hs.ZCDP)"
_CLOSE: Final = 1.0 - 1e-4
_DOWN: Final = 1.0 - 2.0**-50


def lower_ends(x: Mechanism, found: Notion) -> tuple[float, ...]:
    """Return proven lower ends of the numbers that a conversion found.

    Some data have a pair of outputs P and Q with divergences ``D_alpha(P||Q)`` of which lower
    bounds are known. Whatever rho-zCDP holds, ``D_alpha <= rho alpha``, and whatever mu-GDP holds,
    ``D_alpha <= mu^2 alpha / 2``, so that

        rho >= sup_alpha D_alpha / alpha,    mu >= sqrt(2 sup_alpha D_alpha / alpha),

    for tCDP over the alpha up to omega. Of epsilon and delta they are those of the accountant.

    Guarantees:
        With a smaller number in its place, the others as they are, the guarantee would not hold of
        x; if x is a notion, not of all that satisfy it.

    Edge cases:
        0 where none is known of one of two numbers. Nothing is returned where none is known of any,
        of an FDP, and of what is exact, unless it came with an interval.

    Args:
        x: A notion, a mechanism or a plan.
        found: What ``convert`` made of it.

    Returns:
        Lower ends of epsilon and delta, of mu, of rho, or of each divergence; or none.

    References:
        Bun and Steinke 2016, definition 1.1; Dong, Roth and Su 2022, theorem 2.7 and corollary B.6.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 1000
        >>> found = hs.convert(plan, hs.ZCDP)
        >>> (lower,) = hs.conversions.lower_ends(plan, found)
        >>> 413.222 < lower < 413.223 < found.rho < 413.224
        True
    """
    source = checked("x", x, allowed=_A_SOURCE)
    if not isinstance(found, Notion):
        raise ParameterError("found", found, _FOUND)
    if found.origin is not None and (found.origin.lower or found.origin.kind == "exact"):
        return found.origin.lower
    try:
        return _ends(found, source)
    except UnsupportedError:
        return ()


def _ends(found: Notion, source: Mechanism) -> tuple[float, ...]:
    match found:
        case ApproxDP():
            return _of_profile(found, composition_of(source, "rdp").directions)
        case ZCDP():
            lower = _slope(source, found.rho, math.inf)
        case TCDP():
            lower = _slope(source, found.rho, found.omega)
        case GDP():
            slope = _slope(source, 0.5 * found.mu * found.mu, math.inf)
            lower = math.sqrt(2.0 * slope) * _DOWN
        case RenyiDP():
            ends = attained_divergences(source, (order for order, _ in found.divergences))
            return tuple(ends) if any(ends) else ()
        case _:
            return ()
    return (lower,) if lower > 0.0 else ()


def _of_profile(found: ApproxDP, directions: Iterable[Terms]) -> tuple[float, float]:
    """Return lower ends of epsilon and of delta, each at the other one."""
    epsilon = delta = 0.0
    if 0.0 < found.delta < 1.0:
        epsilon = max(least_epsilon(terms, found.delta) for terms in directions)
    if found.epsilon < math.inf:
        delta = max(least_delta(terms, found.epsilon) for terms in directions)
    return min(epsilon, found.epsilon), min(delta, found.delta)


def _slope(source: Mechanism, upper: float, omega: float) -> float:
    """Return the largest known ``D_alpha / alpha``, or one next to the upper bound of all."""
    best = 0.0
    for terms in composition_of(source, "rdp").directions:
        for c in _orders(omega):
            if best >= _CLOSE * upper:
                return best
            best = max(best, attained_divergence(terms, 1.0 + c) / (1.0 + c) * _DOWN)
    return best


def _orders(omega: float) -> Iterable[float]:
    """Return the orders less one to look at: up to omega, which is one of them."""
    last = omega - 1.0
    inner = [c for c in _LARGE_SMALL_REST if c < last]
    return inner if last == math.inf else [last, *inner]
