"""What implies zero-concentrated differential privacy: a line above all Renyi divergences."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hockeystick.conversions.by_losses import NORMAL, above, reveals, rho_of
from hockeystick.conversions.given import (
    FAILS,
    FEW_ORDERS,
    ITSELF,
    NO_NOISE,
    Given,
    and_bounds,
    bound,
    exact,
    is_exact,
    proven,
    refused,
    simplest,
    through,
)
from hockeystick.conversions.theorems import evaluated, steinke_rho, up_product
from hockeystick.conversions.to_approx import by_largest_loss, points_of
from hockeystick.conversions.to_gdp import is_release, to_gdp
from hockeystick.conversions.to_renyi import to_renyi, total
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics import FloatAndDecimal
from hockeystick.tradeoffs import GaussianTradeOff
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiPoints

_PART = "definition: D_alpha <= rho alpha at all orders, and so at those below omega"
_TRUNCATED_SUM = "Bun, Dwork, Rothblum and Steinke 2018, lemma 6: the rhos add up"
_CONVEX = "van Erven and Harremoes 2014, corollary 2: (alpha - 1) D_alpha is convex"
# Orders to ask a plan for: geometric in alpha - 1, from where the divergence is about that of 1.
_LOWEST = 2.0**-10
_ORDERS = 40


def to_tcdp(source: Mechanism, given: Given) -> TCDP:
    """Return the rho of a line above the divergences of orders up to omega."""
    source = simplest(source)
    match source:
        case PureDP() | GDP():
            return _truncated(to_zcdp(source, given), given)
        case ApproxDP():
            raise refused(source, "TCDP", FAILS)
        case TCDP() if given.omega > source.omega:
            raise refused(source, "TCDP", f"it says nothing of orders above {source.omega:g}")
        case ZCDP() | TCDP():
            return exact(TCDP(source.rho, given.omega), _PART)
        case RenyiDP():
            return _above_points(source, given)
        case FDP():
            return _smaller(source, given)
        case _:
            return _added(source, given)


def _added(source: Mechanism, given: Given) -> TCDP:
    """Return the sum of the rhos of a plan's parts, or the line above its divergences."""
    parts = runs_of(source)
    if parts == ((source, 1),):
        return _smaller(source, given)
    steps = [(to_tcdp(part, given), count) for part, count in parts]
    rho = total([(one.rho, n) for one, n in steps])
    tight = all(is_exact(one) for one, _ in steps)
    added = proven(TCDP(rho, given.omega), _TRUNCATED_SUM, tight=tight)
    if tight or given.omega == math.inf:
        return added
    return min(added, _by_orders(source, given), key=lambda one: one.rho)


def _above_points(source: RenyiDP, given: Given) -> TCDP:
    """Return the least line above divergences, and what convexity says between."""
    curve = points_of(source)
    if given.omega > curve.divergences[-1][0]:
        raise refused(source, "TCDP", FEW_ORDERS)
    return bound(TCDP(evaluated(lambda m: _steepest(curve, given.omega, m)), given.omega), _CONVEX)


def _smaller(source: Mechanism, given: Given) -> TCDP:
    """Return the line above all divergences or that above many, whichever is lower."""
    try:
        whole = _truncated(to_zcdp(source, given), given)
    except IncompatibleError:
        if given.omega == math.inf:
            raise
        return _by_orders(source, given)
    if given.omega == math.inf or is_exact(whole):
        return whole
    try:
        return min(whole, _by_orders(source, given), key=lambda one: one.rho)
    except IncompatibleError:
        return whole


def _truncated(whole: ZCDP, given: Given) -> TCDP:
    """Return the bound of a line above all divergences on those up to omega, with its origin."""
    result = TCDP(whole.rho, given.omega)
    return result if whole.origin is None else result.because(whole.origin)


def _by_orders(source: Mechanism, given: Given) -> TCDP:
    """Return the least line above the divergences of many orders, and the chords between them."""
    high = given.omega - 1.0
    low = min(_LOWEST, 0.5 * high)
    ratio = (high / low) ** (1.0 / (_ORDERS - 1))
    inner = {1.0 + low * ratio**k for k in range(_ORDERS - 1)}
    orders = tuple(sorted({order for order in inner if 1.0 < order < given.omega}))
    step = to_renyi(source, Given(orders=(*orders, given.omega)))
    return through(step, to_tcdp(step, given))


def _steepest(curve: RenyiPoints, omega: float, m: Any) -> Any:
    """Return the supremum of ``K(c) / (c (1 + c))`` over c in (0, omega - 1), K the chords.

    On a chord ``K = a + b c`` with ``a < 0`` it is largest where ``b c^2 + 2 a c + a = 0``; on the
    first one, with ``a = 0``, towards c = 0.
    """
    corners = [(m.mpf(order) - 1, (m.mpf(order) - 1) * size) for order, size in curve.divergences]
    largest = corners[0][1] / corners[0][0]
    for (x0, y0), (x1, y1) in pairwise(corners):
        end = min(x1, m.mpf(omega) - 1)
        b = (y1 - y0) / (x1 - x0)
        a = y0 - b * x0
        if end <= x0 or b <= 0:
            continue
        top = min(max((-a + m.sqrt(max(a * a - a * b, m.zero))) / b, x0), end)
        largest = max(largest, (a + b * top) / (top * (1 + top)))
    return largest


_STEINKE = "Steinke 2024, theorems 4 and 5: rho = eps tanh(eps/2)"
_GAUSSIAN = "Renyi divergence of normal distributions: alpha mu^2 / 2"
_NOISE = (
    "Renyi divergence of normal distributions: alpha mu^2 / 2; at most that of discrete ones an "
    "integer apart, and just that at order 1 (Canonne, Kamath and Steinke 2020, theorem 4)"
)
_FALLS = (
    "D_alpha / alpha falls from the Kullback-Leibler divergence at order 1: the logarithms of the "
    "moments are concave in (alpha - 1/2)^2"
)
_LINE = (
    "Bun and Steinke 2016, Steinke 2024, Rogers and Steinke 2021 for bounded losses; a sample "
    "costs at most what the worst of its cases does, by quasi-convexity"
)
_SUM = "Bun and Steinke 2016, lemma 1.7: rho adds up"
_NO_RHO = "no rho is known to bound all its Renyi divergences"
_UNSEEN = "divergences of all orders cannot be seen at finitely many of them"


def to_zcdp(source: Mechanism, given: Given) -> ZCDP:
    """Return the rho of a line above all divergences that a source allows."""
    source = simplest(source)
    match source:
        case PureDP():
            return exact(ZCDP(steinke_rho(source.epsilon)), _STEINKE)
        case ApproxDP():
            raise refused(source, "ZCDP", FAILS)
        case GDP():
            return exact(ZCDP(up_product(0.5, source.mu, source.mu)), _GAUSSIAN)
        case ZCDP():
            return exact(source, ITSELF)
        case TCDP() | RenyiDP():
            raise refused(source, "ZCDP", FEW_ORDERS)
        case FDP(tradeoff=GaussianTradeOff()):
            return to_zcdp(to_gdp(source, given), given)
        case FDP() if not is_release(source):
            return by_largest_loss(source, given, to_zcdp, "ZCDP", _UNSEEN)
        case FDP():
            return _of_losses(source, given)
        case _:
            return _of_parts(source, given)


def _of_parts(source: Mechanism, given: Given) -> ZCDP:
    parts = runs_of(source)
    if parts == ((source, 1),):
        return _of_losses(source, given)
    each = [to_zcdp(part, given) for part, _ in parts]
    rho = math.inf
    if all(one.rho < math.inf for one in each):
        exactly = [
            (count, _before_rounding(part, one.rho))
            for (part, count), one in zip(parts, each, strict=True)
        ]
        binary = sum((count * one.binary for count, one in exactly), Fraction(0))
        rho = above(binary, sum((count * one.decimal for count, one in exactly), Fraction(0)))
    tight = all(map(is_exact, each))
    return proven(ZCDP(rho), and_bounds(_SUM, each), tight=tight)


def _before_rounding(part: Mechanism, rho: float) -> FloatAndDecimal:
    """Return the rho of a part as it was before it was rounded up to a float, if that is known.

    100 runs of Gaussian noise 10 have rho 1/2; 100 times the float above 1/200 is more.
    """
    if not isinstance(part, Notion):
        known = rho_of(part)
        if known is not None and above(known.value) == rho:
            return FloatAndDecimal(known.value, known.value)
    return FloatAndDecimal.of(rho)


def _of_losses(source: Mechanism, given: Given) -> ZCDP:
    """Return the rho that the losses of a mechanism imply, or else its largest loss."""
    known = rho_of(source)
    if known is not None and (rho := above(known.value)) < math.inf:
        normal = all(issubclass(one, NORMAL) for one in known.losses)
        if known.exact:
            return exact(ZCDP(rho), _NOISE if normal else _FALLS)
        return bound(ZCDP(rho), _LINE)
    if reveals(source):
        raise refused(source, "ZCDP", NO_NOISE)
    return by_largest_loss(source, given, to_zcdp, "ZCDP", _NO_RHO)
