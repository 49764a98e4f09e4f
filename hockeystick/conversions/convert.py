"""From any guarantee or plan to any notion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar, final, overload

from hockeystick._suggest import same_name
from hockeystick._validate import one_of
from hockeystick.conversions._given import Given, exact, read, refused, strength
from hockeystick.conversions.to_approx import to_approx, to_pure
from hockeystick.conversions.to_gdp import to_fdp, to_gdp
from hockeystick.conversions.to_renyi import to_renyi
from hockeystick.conversions.to_zcdp import to_tcdp, to_zcdp
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
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
    """Return the name of the notion that is asked for, or raise."""
    for name, target in TARGETS.items():
        if to is target.notion:
            return name
    if not isinstance(to, str):
        raise ParameterError("to", to, f"a notion: one of {', '.join(TARGETS)}")
    return one_of("to", same_name(to, TARGETS), tuple(TARGETS))
