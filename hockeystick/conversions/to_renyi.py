"""What implies Renyi differential privacy of given orders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from hockeystick.accountants.base import composition_of
from hockeystick.conversions.given import (
    FAILS,
    FEW_ORDERS,
    ITSELF,
    Given,
    bound,
    exact,
    is_exact,
    proven,
    refused,
    simplest,
)
from hockeystick.conversions.theorems import evaluated, response_divergence, up_product
from hockeystick.conversions.to_approx import points_of
from hockeystick.errors import UnsupportedError
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.numerics import Ball
from hockeystick.privacy_loss import PrivacyLoss, Terms, attained
from hockeystick.tradeoffs.functions.renyi import RenyiTradeOff
from hockeystick.tradeoffs.operations.renyi_integral import renyi_divergence
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiPoints

_RESPONSE = "Bun and Steinke 2016, proposition 3.3: randomized response is the worst"
_GAUSSIAN = "Renyi divergence of normal distributions: alpha mu^2 / 2"
_LINE = "definition: D_alpha <= rho alpha, which the Gaussian mechanism attains"
_CONVEX = "van Erven and Harremoes 2014, corollary 2: (alpha - 1) D_alpha is convex"
_FUNCTION = "Dong, Roth and Su 2022, appendix B: the divergences of f"
_SUM = "Mironov 2017, proposition 1: divergences of one order add up"
_INFINITE = "the divergence of order {:g} is infinite, or nothing is known of it"
_ONE_WAY = (
    "f holds what divergences say of tests, and the pair of f may have larger ones than they; "
    "convert the divergences themselves"
)
_TIGHT = 1e-9
_OUTWARD = 1.0 + 2.0**-49
_NONE: Final[Mapping[PrivacyLoss, Ball]] = MappingProxyType({})


def to_renyi(source: Mechanism, given: Given) -> RenyiDP:
    """Return the divergences of the given orders that a source allows."""
    source = simplest(source)
    match source:
        case PureDP():
            found = {order: response_divergence(source.epsilon, order) for order in given.orders}
            return exact(RenyiDP(found), _RESPONSE)
        case ApproxDP():
            raise refused(source, "RenyiDP", FAILS)
        case GDP():
            return exact(_line(given, 0.5, source.mu, source.mu), _GAUSSIAN)
        case TCDP() if given.orders[-1] > source.omega:
            raise refused(source, "RenyiDP", f"it says nothing of orders above {source.omega:g}")
        case ZCDP() | TCDP():
            return exact(_line(given, source.rho), _LINE)
        case RenyiDP():
            return _of_points(source, given)
        case FDP():
            return _of_function(source, given)
        case _:
            return _of_parts(source, given)


def _of_parts(source: Mechanism, given: Given) -> RenyiDP:
    parts = runs_of(source)
    if parts == ((source, 1),):
        return _of_part(source, given)
    steps = [(to_renyi(part, given), count) for part, count in parts]
    found = {
        order: total([(one.divergences[k][1], count) for one, count in steps])
        for k, order in enumerate(given.orders)
    }
    tight = all(is_exact(one) for one, _ in steps)
    # The worst direction, or part, of one release need not be that of another.
    together = len(parts) == 1 or (tight and _is_attained(source, found))
    return proven(RenyiDP(found), _SUM, tight=tight and together)


def _is_attained(source: Mechanism, found: Mapping[float, float]) -> bool:
    """Return whether some data attain what the parts of a plan add up to."""
    try:
        least = attained_divergences(source, found)
    except UnsupportedError:
        return False
    return all(size - low <= _TIGHT * size for size, low in zip(found.values(), least, strict=True))


def total(sizes: list[tuple[float, int]]) -> float:
    """Return the sum of numbers, each with its multiplicity, rounded up."""
    return evaluated(lambda m: sum((n * m.mpf(size) for size, n in sizes), m.zero))


def _of_part(source: Mechanism, given: Given) -> RenyiDP:
    """Return the divergences of a mechanism's worst pair, the larger one of both directions."""
    cost = composition_of(source, "rdp")
    ends = [[plan_divergence(terms, order) for terms in cost.directions] for order in given.orders]
    found = {
        order: max(upper for _, upper in pair)
        for order, pair in zip(given.orders, ends, strict=True)
    }
    for order, upper in found.items():
        if upper == math.inf:
            raise refused(source, "RenyiDP", _INFINITE.format(order))
    lower = {order: max(low for low, _ in pair) for order, pair in zip(found, ends, strict=True)}
    tight = all(found[order] - lower[order] <= _TIGHT * found[order] for order in found)
    return proven(RenyiDP(found), _SUM, tight=tight)


def _of_points(source: RenyiDP, given: Given) -> RenyiDP:
    """Return the divergences where they are given, and what convexity says between."""
    curve = points_of(source)
    if given.orders[-1] > curve.divergences[-1][0]:
        raise refused(source, "RenyiDP", FEW_ORDERS)
    found = {order: _on_chord(curve, order) for order in given.orders}
    if found.items() == dict(source.divergences).items() and len(found) == 1:
        return exact(RenyiDP(found), ITSELF)
    return bound(RenyiDP(found), _CONVEX)


def _of_function(source: FDP, given: Given) -> RenyiDP:
    """Return the divergences of the pair with a trade-off function, or of the plan it is of."""
    f = source.tradeoff
    if isinstance(f.release, Mechanism):
        return _of_part(source, given)
    if isinstance(f, RenyiTradeOff):
        raise refused(source, "RenyiDP", _ONE_WAY)
    ends = {}
    for order in sorted(given.orders, reverse=True):
        ends[order] = renyi_divergence(f, order)
        if ends[order].upper == math.inf:
            raise refused(source, "RenyiDP", _INFINITE.format(order))
    tight = all(upper - lower <= _TIGHT * upper for lower, upper in ends.values())
    found = {order: upper for order, (_, upper) in ends.items()}
    return proven(RenyiDP(found), _FUNCTION, tight=tight)


def _line(given: Given, *slope: float) -> RenyiDP:
    return RenyiDP({order: up_product(order, *slope) for order in given.orders})


def _on_chord(curve: RenyiPoints, order: float) -> float:
    known = dict(curve.divergences)
    if order in known:
        return known[order]

    def divergence(m: Any) -> Any:
        c = m.mpf(order) - 1
        return curve.moment_at(c) / c

    return evaluated(divergence)


def plan_divergence(terms: Terms, order: float) -> tuple[float, float]:
    """Return ends of the divergence of an order, in one direction.

    The lower one is that of the attained losses: where only a dominating pair is known, no data
    need have its divergences.
    """
    c = order - 1.0
    known = {loss: loss.cgf_bounds(c) for loss, _ in terms}
    upper = math.fsum(count * (known[loss].midpoint + known[loss].radius) for loss, count in terms)
    # What underflows is not nothing.
    least = math.ulp(0.0) if terms else 0.0
    return attained_divergence(terms, order, known), max(upper / c * _OUTWARD, least)


def attained_divergence(
    terms: Terms, order: float, known: Mapping[PrivacyLoss, Ball] = _NONE
) -> float:
    """Return a lower bound of the divergence of an order that some data have, in one direction."""
    c = order - 1.0
    balls = [(known.get(loss) or loss.cgf_bounds(c), count) for loss, count in attained(terms)]
    # Where both are infinite, their difference is NaN, which max drops.
    lower = math.fsum(count * max(0.0, k.midpoint - k.radius) for k, count in balls)
    return lower / c / _OUTWARD


def attained_divergences(source: Mechanism, orders: Iterable[float]) -> list[float]:
    """Return lower bounds of the divergences of a plan at some orders, in the worst direction.

    Raises:
        UnsupportedError: If nothing is known of a part of it.
    """
    directions = composition_of(source, "rdp").directions
    return [max(attained_divergence(terms, order) for terms in directions) for order in orders]
