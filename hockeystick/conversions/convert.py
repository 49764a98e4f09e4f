"""From any guarantee or plan to any notion, and how close to the truth that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, TypeVar, overload

from hockeystick._validate import one_of
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.closed_form import least_delta, least_epsilon
from hockeystick.conversions.by_losses import attained_divergence
from hockeystick.conversions.given import proven, read, refused, simplest, strength
from hockeystick.conversions.routes import TARGETS
from hockeystick.errors import ParameterError, UnsupportedError, same_name
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.privacy_loss import Terms

_Notion = TypeVar("_Notion", bound=Notion)
_A_SOURCE: Final = "a notion or a plan, such as hs.ZCDP(rho=0.5)"


@overload
def convert(x: Mechanism, to: type[_Notion], **given: object) -> _Notion: ...
@overload
def convert(x: Mechanism, to: str, **given: object) -> Notion: ...
def convert(x: Mechanism, to: type[Notion] | str, **given: object) -> Notion:
    """Return the guarantee of one notion that another one, or a plan, implies.

    From each notion the tightest route that is known is taken; plans go through the accountants.

    Guarantees:
        "x implies the result" is proven, every number rounded to the safe side. ``origin`` of the
        result says how: kind "exact" means that no smaller result holds for all that satisfy x
        (but for round-off), "bound" that it holds; and by which theorem.

    Edge cases:
        The rho or mu of a plan is as large as the largest losses need, where sampling saves
        nothing; ``lower_ends`` says how close to it the truth is, and
        ``hs.accountants.gaussian_summary`` has the mu at error rates that matter.
        A guarantee that allows everything is refused; delta = 1 gives epsilon 0.

    Args:
        x: A notion, a mechanism or a plan.
        to: A class of notions, such as ``hs.ApproxDP``, or its name, as "ZCDP", "zCDP" or "RDP".
        given: The free parameters of the target. ApproxDP: epsilon or delta, one of them;
            RenyiDP: orders, one or several; TCDP: omega; others: none.

    Raises:
        ParameterError: If a parameter is outside its domain, missing or not one of the target's.
        IncompatibleError: If x implies no such guarantee, or none is known; it says why.
        UnsupportedError: If x is a plan with a part that no accountant can read.

    Example:
        >>> from hockeystick.conversions import convert
        >>> from hockeystick.notions import ZCDP, ApproxDP
        >>> found = convert(ZCDP(rho=0.5), ApproxDP, delta=1e-6)
        >>> print(f"{found.epsilon:.6f}, {found.origin.kind}: {found.origin.theorem}")
        5.221534, bound: Asoodeh et al. 2021, theorem 3: the best conversion of one order
    """
    source = checked("x", x, allowed=_A_SOURCE)
    asked = to.__name__ if isinstance(to, type) else to
    if not isinstance(asked, str):
        raise ParameterError("to", to, f"a notion: one of {', '.join(TARGETS)}")
    name = one_of("to", same_name(asked, TARGETS), tuple(TARGETS))
    parameters = read(name, given)
    if name == "ApproxDP" and (parameters.asked, parameters.at) == ("epsilon", 1.0):
        return proven(ApproxDP(0.0, 1.0), "every release is (epsilon, 1)-DP")
    released = strength(source)
    if released == math.inf:
        raise refused(source, name, "it allows everything to be released")
    if released == 0.0:
        source = PureDP(0.0)
    return TARGETS[name](source if name == "FDP" else simplest(source), parameters)


_CLOSE: Final = 1.0 - 1e-4
_DOWN: Final = 1.0 - 2.0**-50
# Orders less one: a line above all divergences mostly touches them at an end.
_LARGE_SMALL_REST: Final = (2.0**24, 2.0**-10, 2.0**16, 2.0**10, 64.0, 8.0, 1.0)


def lower_ends(x: Mechanism, found: Notion) -> tuple[float, ...]:
    """Return proven lower ends of what a conversion found: epsilon and delta, or mu, rho, ...

    Some data have a pair of outputs P and Q with divergences ``D_alpha(P||Q)`` of which lower
    bounds are known, so that, for tCDP over the alpha up to omega,

        rho >= sup_alpha D_alpha / alpha,    mu >= sqrt(2 sup_alpha D_alpha / alpha).

    Guarantees:
        With a smaller number in its place, the others as they are, the guarantee would not hold of
        x; if x is a notion, not of all that satisfy it.

    Edge cases:
        0 where none is known of one of two numbers; nothing where none is known of any, of an FDP,
        and of what is exact, unless it came with an interval.

    Args:
        x: A notion, a mechanism or a plan.
        found: What ``convert`` made of it.

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
        raise ParameterError("found", found, "what convert made of x, such as convert(x, hs.ZCDP)")
    if found.origin is not None and (found.origin.lower or found.origin.kind == "exact"):
        return found.origin.lower
    try:
        ends = _ends(found, composition_of(source, "rdp").directions)
    except UnsupportedError:
        return ()
    return ends if any(ends) else ()


def _ends(found: Notion, directions: Sequence[Terms]) -> tuple[float, ...]:
    match found:
        case ApproxDP(epsilon=epsilon, delta=delta):
            least = lowest = 0.0
            if 0.0 < delta < 1.0:
                least = max(least_epsilon(terms, delta) for terms in directions)
            if epsilon < math.inf:
                lowest = max(least_delta(terms, epsilon) for terms in directions)
            return min(least, epsilon), min(lowest, delta)
        case ZCDP():
            return (_slope(directions, found.rho, math.inf),)
        case TCDP():
            return (_slope(directions, found.rho, found.omega),)
        case GDP():
            slope = _slope(directions, 0.5 * found.mu * found.mu, math.inf)
            return (math.sqrt(2.0 * slope) * _DOWN,)
        case RenyiDP():
            return tuple(
                max(attained_divergence(terms, order) for terms in directions)
                for order, _ in found.divergences
            )
        case _:
            return ()


def _slope(directions: Sequence[Terms], upper: float, omega: float) -> float:
    """Return the largest known ``D_alpha / alpha``, or one next to the upper bound of all."""
    last = omega - 1.0
    orders = [*([last] if last < math.inf else []), *(c for c in _LARGE_SMALL_REST if c < last)]
    best = 0.0
    for terms in directions:
        for c in orders:
            if best >= _CLOSE * upper:
                return best
            best = max(best, attained_divergence(terms, 1.0 + c) / (1.0 + c) * _DOWN)
    return best
