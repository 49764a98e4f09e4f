"""What each notion takes from a guarantee or a plan: one function for each target.

What has losses is asked for those (``by_losses``); what has no mu or rho of its own has that of its
largest loss; plans of several releases add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from hockeystick import accountants
from hockeystick.accountants.base import composition_of
from hockeystick.conversions.by_losses import above, mu_square_of, plan_divergence, rho_of, root_up
from hockeystick.conversions.given import Given, proven, refused, simplest, through
from hockeystick.conversions.theorems import (
    balle_wang,
    evaluated,
    kairouz_oh_viswanath,
    liu_mu,
    response_divergence,
    steinke_rho,
    up_product,
)
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.privacy_loss import RenyiCurveLoss
from hockeystick.results import Certified
from hockeystick.tradeoffs import GaussianTradeOff
from hockeystick.tradeoffs.functions.piecewise import ApproxTradeOff
from hockeystick.tradeoffs.functions.renyi import RenyiTradeOff
from hockeystick.tradeoffs.operations.renyi_integral import renyi_divergence
from hockeystick.tradeoffs.profiles.one_order import delta_by_orders, epsilon_by_orders
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiLine, RenyiPoints

# The relative width at which a number counts as known, and the least one that floats can tell.
_TIGHT: Final = 1e-9
_ROUNDED: Final = 1.0 - 2.0**-48
_NO_LARGEST: Final = "its losses have no largest value, or none that is known; try ApproxDP"
_FAILS: Final = (
    "with a delta above 0 the class holds a release that shows everything with probability delta, "
    "so that divergences are infinite and f(0) < 1"
)
_NO_MORE_ORDERS: Final = "it says nothing of orders above {:g}"
_NORMAL: Final = "Renyi divergence of normal distributions: alpha mu^2 / 2"
_CONVEX: Final = "van Erven and Harremoes 2014, corollary 2: (alpha - 1) D_alpha is convex"
_Notion = TypeVar("_Notion", bound=Notion)
Rule: TypeAlias = Callable[[Mechanism, Given], _Notion]


def to_pure(source: Mechanism, given: Given) -> PureDP:
    """Return the largest loss that a source allows."""
    try:
        found = to_approx(source, Given())
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
    """Return what the largest loss of a source implies of a target, or else raise."""
    try:
        pure = to_pure(source, given)
    except IncompatibleError:
        raise refused(source, target, why_not) from None
    return through(pure, rule(pure, given))


def to_approx(source: Mechanism, given: Given) -> ApproxDP:
    """Return epsilon at the delta that is given, or delta at the epsilon."""
    asked, at, tight = given.asked, given.at, True
    how = {"delta" if asked == "epsilon" else "epsilon": at}
    answer: Certified | float
    match source:
        case GDP() | ZCDP() | TCDP() | RenyiDP() if how == {"delta": 0.0}:
            why_not = "its losses have no largest value, as delta = 0 would need"
            raise refused(source, "ApproxDP", why_not)
        case PureDP() | ApproxDP():
            theorem = "Kairouz, Oh and Viswanath 2017, theorem 2: randomized response is the worst"
            own = source.delta if isinstance(source, ApproxDP) else 0.0
            answer = kairouz_oh_viswanath(source.epsilon, own, **how)
        case GDP():
            theorem = "Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, corollary 2.13"
            answer = balle_wang(source.mu, **how)
        case ZCDP() | TCDP() | RenyiDP():
            theorem = "Asoodeh et al. 2021, theorem 3: the best conversion of one order"
            curve = _curve_of(source)
            by_orders = epsilon_by_orders if asked == "epsilon" else delta_by_orders
            answer, tight = by_orders(curve, at), _is_one_order(curve)
        case FDP(tradeoff=f):
            theorem = "Dong, Roth and Su 2022, proposition 2.12"
            answer = getattr(f, asked)(at)
        case _:
            certified: Certified = getattr(accountants, asked)(source, **how)
            theorem, answer = f"accountant {certified.accountant!r}", certified
    lower: tuple[float, ...] = ()
    if isinstance(answer, Certified):
        tight = answer.upper - answer.lower <= _TIGHT * answer.upper or answer.upper == math.inf
        least = float(answer.lower)
        lower = (least, 0.0) if asked == "epsilon" else (0.0, least)
    value = float(answer.upper) if isinstance(answer, Certified) else answer
    if asked == "epsilon" and value == math.inf:
        why_not = f"no finite epsilon has a delta as small as {at:g}"
        raise refused(source, "ApproxDP", why_not)
    result = ApproxDP(value, at) if asked == "epsilon" else ApproxDP(at, value)
    return proven(result, theorem, tight=tight or value == 0.0, lower=lower)


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


def to_fdp(source: Mechanism, given: Given) -> FDP:
    """Return the trade-off function that a source allows."""
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


def to_gdp(source: Mechanism, given: Given) -> GDP:
    """Return the mu with which G_mu lies below all that a source allows."""
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
    steps = _steps(source, given, to_gdp)
    if steps is None:
        why_not = "no mu is known to bound it: see its trade-off function"
        return _by_largest_loss(source, given, to_gdp, "GDP", why_not)
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


def to_zcdp(source: Mechanism, given: Given) -> ZCDP:
    """Return the rho of a line above all divergences that a source allows."""
    line = to_tcdp(source, given)
    found = ZCDP(line.rho)
    return found if line.origin is None else found.because(line.origin)


def to_tcdp(source: Mechanism, given: Given) -> TCDP:
    """Return the rho of a line above the divergences of orders up to omega, or of all."""
    omega, target = given.omega, _line(given)
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
            known = to_renyi(source, Given(orders=(*orders, omega)))
            line = RenyiCurveLoss.of(known.divergences).zcdp_line()
            return proven(TCDP(line.rho, omega), _CONVEX, tight=False)
        case _:
            return _rho_of_plan(source, given)


def _line(given: Given) -> str:
    return "ZCDP" if given.omega == math.inf else "TCDP"


def _rho_of_plan(source: Mechanism, given: Given) -> TCDP:
    """Return the line above all divergences or that above many, whichever is lower."""
    rules = (_rho_by_losses,) if given.omega == math.inf else (_rho_by_losses, _rho_by_orders)
    found: list[TCDP] = []
    refusals: list[IncompatibleError] = []
    for rule in rules:
        try:
            found.append(rule(source, given))
        except IncompatibleError as error:
            refusals.append(error)
        if found and found[0].origin and found[0].origin.kind == "exact":
            return found[0]
    if not found:
        raise refusals[0]
    return min(found, key=lambda one: one.rho)


def _rho_by_losses(source: Mechanism, given: Given) -> TCDP:
    known, whole = rho_of(source, given.omega), None
    if known is not None and (rho := above(known.value)) < math.inf:
        theorem = (
            "the rho of normal and of bounded losses, sampled or not, adds up: Bun and Steinke "
            "2016, Steinke 2024, Rogers and Steinke 2021"
        )
        whole = proven(TCDP(rho, given.omega), theorem, tight=known.exact)
        if known.exact or given.omega == math.inf:
            return whole
    steps = _steps(source, given, to_tcdp)
    if steps is None:
        why_not = "no rho is known to bound all its Renyi divergences"
        return whole or _by_largest_loss(source, given, to_tcdp, _line(given), why_not)
    rho = evaluated(lambda m: sum(count * m.mpf(one.rho) for one, count in steps))
    theorem = "Bun and Steinke 2016, lemma 1.7: rho adds up"
    return proven(TCDP(rho, given.omega), theorem, tight=False)


# Orders to ask a plan for: geometric in alpha - 1, from where the divergence is about that of 1.
_LOWEST: Final = 2.0**-10
_MANY: Final = 40


def _rho_by_orders(source: Mechanism, given: Given) -> TCDP:
    """Return the least line above the divergences of many orders, and the chords between them."""
    high = given.omega - 1.0
    low = min(_LOWEST, 0.5 * high)
    ratio = (high / low) ** (1.0 / (_MANY - 1))
    inner = {1.0 + low * ratio**k for k in range(_MANY - 1)}
    orders = tuple(sorted({order for order in inner if 1.0 < order < given.omega}))
    step = to_renyi(source, Given(orders=(*orders, given.omega)))
    return through(step, to_tcdp(step, given))


def to_renyi(source: Mechanism, given: Given) -> RenyiDP:
    """Return the divergences of the given orders that a source allows."""
    match source:
        case PureDP():
            theorem = "Bun and Steinke 2016, proposition 3.3: randomized response is the worst"
            found = {order: response_divergence(source.epsilon, order) for order in given.orders}
            return proven(RenyiDP(found), theorem)
        case ApproxDP():
            raise refused(source, "RenyiDP", _FAILS)
        case GDP():
            found = {order: up_product(order, 0.5, source.mu, source.mu) for order in given.orders}
            return proven(RenyiDP(found), _NORMAL)
        case TCDP() if given.orders[-1] > source.omega:
            raise refused(source, "RenyiDP", _NO_MORE_ORDERS.format(source.omega))
        case ZCDP() | TCDP():
            theorem = "definition: D_alpha <= rho alpha, which the Gaussian mechanism attains"
            found = {order: up_product(order, source.rho) for order in given.orders}
            return proven(RenyiDP(found), theorem)
        case RenyiDP():
            curve = _points_of(source)
            if given.orders[-1] > (last := curve.divergences[-1][0]):
                raise refused(source, "RenyiDP", _NO_MORE_ORDERS.format(last))
            found = {order: _on_chord(curve, order) for order in given.orders}
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
    """Return the divergences of a plan or a function, the larger ones of both directions."""
    found, tight = {}, True
    for order in reversed(given.orders):
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
        "PureDP": to_pure,
        "ApproxDP": to_approx,
        "GDP": to_gdp,
        "ZCDP": to_zcdp,
        "TCDP": to_tcdp,
        "RenyiDP": to_renyi,
        "FDP": to_fdp,
    }
)
