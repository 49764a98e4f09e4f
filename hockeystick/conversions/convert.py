"""From any guarantee or plan to any notion, and how close to the truth that is.

There is one function for each target. What has losses is asked for those (``by_losses``); what has
no mu or rho of its own has that of its largest loss; plans of several releases add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, overload

from hockeystick import accountants
from hockeystick._validate import name_in, real
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.closed_form import least_delta, least_epsilon
from hockeystick.conversions.by_losses import (
    attained_divergence,
    mu_square_of,
    plan_divergence,
    rho_of,
    root_up,
)
from hockeystick.conversions.theorems import (
    balle_wang,
    evaluated,
    kairouz_oh_viswanath,
    liu_mu,
    one_of_two,
    response_divergence,
    steinke_rho,
    up_product,
)
from hockeystick.errors import IncompatibleError, ParameterError, UnsupportedError
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.mechanisms.base import checked
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, Origin, PureDP, RenyiDP
from hockeystick.notions.guarantees import OMEGA, ORDER
from hockeystick.numerics import float_above, least_reading
from hockeystick.privacy_loss import RenyiCurveLoss, Terms
from hockeystick.results import Certified
from hockeystick.tradeoffs import GaussianTradeOff, PerfectPrivacy
from hockeystick.tradeoffs.functions.piecewise import ApproxTradeOff
from hockeystick.tradeoffs.functions.renyi import RenyiTradeOff
from hockeystick.tradeoffs.operations.renyi_integral import renyi_divergence
from hockeystick.tradeoffs.profiles.one_order import delta_by_orders, epsilon_by_orders
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiLine, RenyiPoints

_A_SOURCE: Final = "a notion or a plan, such as hs.ZCDP(rho=0.5)"
# The relative width at which a number counts as known, and the least one that floats can tell.
_TIGHT: Final = 1e-9
_ROUNDED: Final = 1.0 - 2.0**-48
PARAMETERS: Final = {"ApproxDP": ["delta", "epsilon"], "TCDP": ["omega"], "RenyiDP": ["orders"]}
_ORDERS: Final = "an order > 1, or several: --orders 2,4 or orders=[2, 4]"
_NO_LARGEST: Final = "its losses have no largest value, or none that is known; try ApproxDP"
_FAILS: Final = (
    "with a delta above 0 the class holds a release that shows everything with probability delta, "
    "so that divergences are infinite and f(0) < 1"
)
_NO_MORE_ORDERS: Final = "it says nothing of orders above {:g}"
_NORMAL: Final = "Renyi divergence of normal distributions: alpha mu^2 / 2"
_CONVEX: Final = "van Erven and Harremoes 2014, corollary 2: (alpha - 1) D_alpha is convex"
_Notion = TypeVar("_Notion", bound=Notion)
# The free parameters of a target, checked: epsilon or delta, omega, or rising orders.
Given: TypeAlias = Mapping[str, Any]
Rule: TypeAlias = Callable[[Mechanism, Given], _Notion]


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
    name = name_in("to", asked, TARGETS)
    parameters = read(name, given)
    if parameters == {"delta": 1.0}:
        return proven(ApproxDP(0.0, 1.0), "every release is (epsilon, 1)-DP")
    released = strength(source)
    if released == math.inf:
        raise refused(source, name, "it allows everything to be released")
    if released == 0.0:
        source = PureDP(0.0)
    return TARGETS[name](source if name == "FDP" else simplest(source), parameters)


def read(target: str, given: Mapping[str, object]) -> Given:
    """Return the parameters of a target, or raise."""
    names = PARAMETERS.get(target, ())
    for name, value in given.items():
        if name not in names:
            takes = ", ".join(names) or "no parameters"
            raise ParameterError(name, value, f"left out: {target} takes {takes}")
    match target:
        case "TCDP":
            return {"omega": real("omega", given.get("omega"), OMEGA)}
        case "RenyiDP":
            return {"orders": _orders(given.get("orders"))}
        case "ApproxDP":
            epsilon, delta = given.get("epsilon"), given.get("delta")
            at = one_of_two(epsilon, delta, zero=True)
            return {"delta" if epsilon is None else "epsilon": at}
        case _:
            return {}


def _orders(orders: Any) -> tuple[float, ...]:
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
        case ApproxDP(delta=1.0):
            return math.inf
        case RenyiDP():
            return min(divergence for _, divergence in source.divergences)
        case FDP(tradeoff=f):
            return 0.0 if f.forward == f.backward == PerfectPrivacy() else 1.0
        case Notion() if source.rises_with:
            return max(float(getattr(source, name)) for name in source.rises_with)
        case _:
            return 1.0


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


def _to_pure(source: Mechanism, given: Given) -> PureDP:
    try:
        found = _to_approx(source, {"delta": 0.0})
    except IncompatibleError:
        raise refused(source, "PureDP", _NO_LARGEST) from None
    theorem, lower = (found.origin.theorem, found.origin.lower[:1]) if found.origin else ("", ())
    # The ends of the largest loss of a release differ by no more than readings and round-off.
    most = 0.0 if isinstance(source, FDP) else found.epsilon * _ROUNDED
    return proven(
        PureDP(found.epsilon), theorem, tight=all(low >= most for low in lower), lower=lower
    )


def _by_largest_loss(
    source: Mechanism, given: Given, rule: Rule[_Notion], target: str, why_not: str
) -> _Notion:
    try:
        pure = _to_pure(source, given)
    except IncompatibleError:
        raise refused(source, target, why_not) from None
    return through(pure, rule(pure, given))


def _to_approx(source: Mechanism, given: Given) -> ApproxDP:
    ((name, at),) = given.items()
    asked, tight = "epsilon" if name == "delta" else "delta", True
    answer: Certified | float
    match source:
        case GDP() | ZCDP() | TCDP() | RenyiDP() if given == {"delta": 0.0}:
            why_not = "its losses have no largest value, as delta = 0 would need"
            raise refused(source, "ApproxDP", why_not)
        case PureDP() | ApproxDP():
            theorem = "Kairouz, Oh and Viswanath 2017, theorem 2: randomized response is the worst"
            own = source.delta if isinstance(source, ApproxDP) else 0.0
            answer = kairouz_oh_viswanath(source.epsilon, own, **given)
        case GDP():
            theorem = "Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, corollary 2.13"
            answer = balle_wang(source.mu, **given)
        case ZCDP() | TCDP() | RenyiDP():
            theorem = "Asoodeh et al. 2021, theorem 3: the best conversion of one order"
            curve = _curve_of(source)
            by_orders = epsilon_by_orders if asked == "epsilon" else delta_by_orders
            answer, tight = by_orders(curve, at), _is_one_order(curve)
        case FDP(tradeoff=f):
            theorem = "Dong, Roth and Su 2022, proposition 2.12"
            answer = getattr(f, asked)(at)
        case _:
            certified: Certified = getattr(accountants, asked)(source, **given)
            theorem, answer = f"accountant {certified.accountant!r}", certified
    lower: tuple[float, ...] = ()
    if isinstance(answer, Certified):
        tight = answer.upper - answer.lower <= _TIGHT * answer.upper or answer.upper == math.inf
        least = float(answer.lower)
        lower = (least, 0.0) if asked == "epsilon" else (0.0, least)
        answer = float(answer.upper)
    if asked == "epsilon" and answer == math.inf:
        why_not = f"no finite epsilon has a delta as small as {at:g}"
        raise refused(source, "ApproxDP", why_not)
    result = ApproxDP(answer, at) if asked == "epsilon" else ApproxDP(at, answer)
    return proven(result, theorem, tight=tight or answer == 0.0, lower=lower)


def _points_of(source: RenyiDP) -> RenyiPoints:
    return RenyiPoints([pair for pair in source.divergences if pair[1] < math.inf])


def _curve_of(source: ZCDP | TCDP | RenyiDP) -> RenyiLine | RenyiPoints:
    if isinstance(source, RenyiDP):
        return _points_of(source)
    return RenyiLine(source.rho, source.omega if isinstance(source, TCDP) else math.inf)


def _is_one_order(curve: RenyiLine | RenyiPoints) -> bool:
    """Return whether the best order is the only one, and large enough for floats to tell."""
    points = curve.divergences if isinstance(curve, RenyiPoints) else ()
    return len(points) == 1 and points[0][1] * (points[0][0] - 1.0) >= _TIGHT


def _to_fdp(source: Mechanism, given: Given) -> FDP:
    match source:
        case PureDP() | ApproxDP():
            delta = source.delta if isinstance(source, ApproxDP) else 0.0
            theorem = "Wasserman and Zhou 2010; Dong, Roth and Su 2022, proposition 2.5"
            return proven(FDP(ApproxTradeOff(source.epsilon, delta)), theorem)
        case GDP():
            theorem = "Dong, Roth and Su 2022, definition 2.6"
            return proven(FDP(GaussianTradeOff(source.mu)), theorem)
        case ZCDP() | TCDP() | RenyiDP():
            theorem = "data processing to two outcomes, of which the divergences are those of f"
            found = FDP(RenyiTradeOff(_curve_of(source)))
            return proven(found, theorem, tight=isinstance(source, RenyiDP))
        case FDP():
            return proven(source, "the guarantee itself")
        case _:
            theorem = "the plan's privacy profiles, by the contour accountant"
            return proven(FDP(accountants.tradeoff(source)), theorem, tight=False)


def _to_gdp(source: Mechanism, given: Given) -> GDP:
    match source:
        case PureDP():
            theorem = "Liu et al. 2022: the kink of f_(epsilon,0) lies on G_mu, which is convex"
            return proven(GDP(liu_mu(source.epsilon)), theorem)
        case ApproxDP():
            raise refused(source, "GDP", _FAILS)
        case GDP():
            return proven(source, "Dong, Roth and Su 2022, definition 2.6")
        case ZCDP():
            why_not = (
                "sqrt(2 rho)-GDP does not follow, as f of randomized response falls below it, and "
                "no larger mu is proven; convert to FDP for all that follows"
            )
            raise refused(source, "GDP", why_not)
        case TCDP() | RenyiDP():
            why_not = "it bounds some orders only: delta may fall more slowly than a Gaussian's"
            raise refused(source, "GDP", why_not)
        case _:
            return _mu_of_plan(source, given)


def _mu_of_plan(source: Mechanism, given: Given) -> GDP:
    known = mu_square_of(source)
    if known is not None and (mu := root_up(known.value)) < math.inf:
        theorem = (
            "the mu of Gaussian noise (Dong, Roth and Su 2022, corollary 3.3), of Laplace noise "
            "(proposition A.6) or responses (Liu et al. 2022), sampled or not"
        )
        return proven(GDP(mu), theorem, tight=known.exact)
    steps = _steps(source, given, _to_gdp)
    if steps is None:
        why_not = "no mu is known to bound it: see its trade-off function"
        return _by_largest_loss(source, given, _to_gdp, "GDP", why_not)
    mu = evaluated(lambda m: m.sqrt(sum(count * m.mpf(one.mu) ** 2 for one, count in steps)))
    theorem = "Dong, Roth and Su 2022, corollary 3.3: the squares of mu add up"
    return proven(GDP(mu), theorem, tight=False)


def _steps(
    source: Mechanism, given: Given, rule: Rule[_Notion]
) -> list[tuple[_Notion, int]] | None:
    """Return what follows from each release of a plan, with how often it runs; None for one."""
    runs = runs_of(source)
    if runs == ((source, 1),):
        return None
    return [(rule(simplest(part), given), count) for part, count in runs]


def _to_zcdp(source: Mechanism, given: Given) -> ZCDP:
    line = _to_tcdp(source, given)
    found = ZCDP(line.rho)
    return found if line.origin is None else found.because(line.origin)


def _to_tcdp(source: Mechanism, given: Given) -> TCDP:
    omega, target = given.get("omega", math.inf), "TCDP" if given else "ZCDP"
    match source:
        case PureDP():
            theorem = "Steinke 2024, theorems 4 and 5: rho = eps tanh(eps/2)"
            return proven(TCDP(steinke_rho(source.epsilon), omega), theorem)
        case ApproxDP():
            raise refused(source, target, _FAILS)
        case GDP():
            return proven(TCDP(up_product(0.5, source.mu, source.mu), omega), _NORMAL)
        case TCDP() if omega > source.omega:
            raise refused(source, target, _NO_MORE_ORDERS.format(source.omega))
        case ZCDP() | TCDP():
            theorem = "definition: D_alpha <= rho alpha at all orders, and so at those below omega"
            return proven(TCDP(source.rho, omega), theorem)
        case RenyiDP():
            if omega > (last := _points_of(source).divergences[-1][0]):
                raise refused(source, target, _NO_MORE_ORDERS.format(last))
            orders = tuple(order for order, _ in source.divergences if order < omega)
            known = _to_renyi(source, {"orders": (*orders, omega)})
            line = RenyiCurveLoss.of(known.divergences).zcdp_line()
            return proven(TCDP(line.rho, omega), _CONVEX, tight=False)
        case _:
            return _rho_of_plan(source, given)


def _rho_of_plan(source: Mechanism, given: Given) -> TCDP:
    """Return the line above all divergences or that above many, whichever is lower."""
    rules = (_rho_by_losses, _rho_by_orders)
    found: list[TCDP] = []
    refusals: list[IncompatibleError] = []
    for rule in rules[:1] if given.get("omega", math.inf) == math.inf else rules:
        try:
            found.append(rule(source, given))
        except IncompatibleError as refusal:
            refusals.append(refusal)
        if found and found[0].origin is not None and found[0].origin.kind == "exact":
            break
    if not found:
        raise refusals[0]
    return min(found, key=lambda one: one.rho)


def _rho_by_losses(source: Mechanism, given: Given) -> TCDP:
    omega, target, whole = given.get("omega", math.inf), "TCDP" if given else "ZCDP", None
    known = rho_of(source, omega)
    if known is not None and (rho := float_above(known.value, least_reading)) < math.inf:
        theorem = (
            "the rho of normal and of bounded losses, sampled or not, adds up: Bun and Steinke "
            "2016, Steinke 2024, Rogers and Steinke 2021"
        )
        whole = proven(TCDP(rho, omega), theorem, tight=known.exact)
        if known.exact or omega == math.inf:
            return whole
    steps = _steps(source, given, _to_tcdp)
    if steps is None:
        why_not = "no rho is known to bound all its Renyi divergences"
        return whole or _by_largest_loss(source, given, _to_tcdp, target, why_not)
    rho = evaluated(lambda m: sum(count * m.mpf(one.rho) for one, count in steps))
    theorem = "Bun and Steinke 2016, lemma 1.7: rho adds up"
    return proven(TCDP(rho, omega), theorem, tight=False)


# Orders to ask a plan for: geometric in alpha - 1, from where the divergence is about that of 1.
_LOWEST: Final = 2.0**-10
_MANY: Final = 40


def _rho_by_orders(source: Mechanism, given: Given) -> TCDP:
    """Return the least line above the divergences of many orders, and the chords between them."""
    omega = given["omega"]
    high = omega - 1.0
    low = min(_LOWEST, 0.5 * high)
    ratio = (high / low) ** (1.0 / (_MANY - 1))
    inner = {1.0 + low * ratio**k for k in range(_MANY - 1)}
    orders = tuple(sorted({order for order in inner if 1.0 < order < omega}))
    step = _to_renyi(source, {"orders": (*orders, omega)})
    return through(step, _to_tcdp(step, given))


def _to_renyi(source: Mechanism, given: Given) -> RenyiDP:
    orders = given["orders"]
    match source:
        case PureDP():
            theorem = "Bun and Steinke 2016, proposition 3.3: randomized response is the worst"
            found = {order: response_divergence(source.epsilon, order) for order in orders}
            return proven(RenyiDP(found), theorem)
        case ApproxDP():
            raise refused(source, "RenyiDP", _FAILS)
        case GDP():
            found = {order: up_product(order, 0.5, source.mu, source.mu) for order in orders}
            return proven(RenyiDP(found), _NORMAL)
        case TCDP() if orders[-1] > source.omega:
            raise refused(source, "RenyiDP", _NO_MORE_ORDERS.format(source.omega))
        case ZCDP() | TCDP():
            theorem = "definition: D_alpha <= rho alpha, which the Gaussian mechanism attains"
            found = {order: up_product(order, source.rho) for order in orders}
            return proven(RenyiDP(found), theorem)
        case RenyiDP():
            curve = _points_of(source)
            if orders[-1] > (last := curve.divergences[-1][0]):
                raise refused(source, "RenyiDP", _NO_MORE_ORDERS.format(last))
            found = {order: _on_chord(curve, order) for order in orders}
            itself = len(found) == 1 and found.items() == dict(source.divergences).items()
            return proven(RenyiDP(found), _CONVEX, tight=itself)
        case FDP(tradeoff=RenyiTradeOff()):
            why_not = "f has less than its divergences; convert the divergences themselves"
            raise refused(source, "RenyiDP", why_not)
        case _:
            return _divergences_of_plan(source, given)


def _on_chord(curve: RenyiPoints, order: float) -> float:
    known = dict(curve.divergences)
    if order in known:
        return known[order]
    return evaluated(lambda m: curve.moment_at(m.mpf(order) - 1) / (m.mpf(order) - 1))


def _divergences_of_plan(source: Mechanism, given: Given) -> RenyiDP:
    found, tight = {}, True
    for order in reversed(given["orders"]):
        if isinstance(source, FDP):
            theorem = "Dong, Roth and Su 2022, appendix B: the divergences of f"
            lower, upper = renyi_divergence(source.tradeoff, order)
        else:
            theorem = "Mironov 2017, proposition 1: divergences of one order add up"
            directions = composition_of(source, "rdp").directions
            ends = [plan_divergence(terms, order) for terms in directions]
            lower, upper = max(low for low, _ in ends), max(high for _, high in ends)
        if upper == math.inf:
            why_not = f"the divergence of order {order:g} is infinite, or nothing is known of it"
            raise refused(source, "RenyiDP", why_not)
        found[order] = upper
        tight = tight and upper - lower <= _TIGHT * upper
    return proven(RenyiDP(found), theorem, tight=tight)


TARGETS: Final[Mapping[str, Rule[Notion]]] = MappingProxyType(
    {
        "PureDP": _to_pure,
        "ApproxDP": _to_approx,
        "GDP": _to_gdp,
        "ZCDP": _to_zcdp,
        "TCDP": _to_tcdp,
        "RenyiDP": _to_renyi,
        "FDP": _to_fdp,
    }
)


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
        case ZCDP() | TCDP():
            return (_slope(directions, found.rho, getattr(found, "omega", math.inf)),)
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
