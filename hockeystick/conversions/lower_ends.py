"""Proven lower ends of what a conversion found: no guarantee of the same kind is below them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from hockeystick.accountants.base import composition_of
from hockeystick.accountants.closed_form import least_delta, least_epsilon
from hockeystick.conversions.to_renyi import attained_divergence, attained_divergences
from hockeystick.errors import ParameterError, UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, RenyiDP
from hockeystick.privacy_loss import Terms

_A_SOURCE: Final = "a notion or a plan, such as hs.ZCDP(rho=0.5)"
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

    Raises:
        ParameterError: If x is neither a notion nor a plan, or found is no notion.

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
    """Return lower ends of the numbers of a notion, none where only accountants know them."""
    match found:
        case ApproxDP():
            return _of_profile(found, composition_of(source, "rdp").directions)
        case ZCDP():
            return _positive(_slope(source, found.rho, math.inf))
        case TCDP():
            return _positive(_slope(source, found.rho, found.omega))
        case GDP():
            slope = _slope(source, 0.5 * found.mu * found.mu, math.inf)
            return _positive(math.sqrt(2.0 * slope) * _DOWN)
        case RenyiDP():
            lower = attained_divergences(source, (order for order, _ in found.divergences))
            return tuple(lower) if any(lower) else ()
        case _:
            return ()


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
    """Return orders less one up to omega, which is one of them."""
    last = omega - 1.0
    inner = [c for c in _LARGE_SMALL_REST if c < last]
    return inner if last == math.inf else [last, *inner]


def _positive(lower: float) -> tuple[float, ...]:
    """Return a lower end that says something."""
    return (lower,) if lower > 0.0 else ()
