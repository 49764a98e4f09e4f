"""What implies truncated concentrated differential privacy: a line above the lower orders."""

from __future__ import annotations

import math
from functools import singledispatch
from itertools import pairwise
from typing import Any

from hockeystick.conversions._evaluated import evaluated
from hockeystick.conversions._given import Given
from hockeystick.conversions._reasons import FAILS, FEW_ORDERS, bound, exact, refuse, through, told
from hockeystick.conversions.to_approx import points_of
from hockeystick.conversions.to_renyi import to_renyi
from hockeystick.conversions.to_zcdp import to_zcdp
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiPoints

_PART = "definition: D_alpha <= rho alpha at all orders, and so at those below omega"
_SUM = "Bun, Dwork, Rothblum and Steinke 2018, lemma 6: the rhos add up"
_CONVEX = "van Erven and Harremoes 2014, corollary 2: (alpha - 1) D_alpha is convex"
# Orders to ask a plan for: geometric in alpha - 1, from where the divergence is about that of 1.
_LOWEST = 2.0**-10
_ORDERS = 40


@singledispatch
def to_tcdp(source: Mechanism, given: Given) -> TCDP:
    """Return the sum of the rhos of a plan's parts, or the line above its divergences."""
    parts = runs_of(source)
    if parts == ((source, 1),):
        return _smaller(source, given)
    steps = [(to_tcdp(part, given), count) for part, count in parts]
    rho = evaluated(lambda m: sum((n * m.mpf(one.rho) for one, n in steps), m.zero))
    tight = all(one.origin is not None and one.origin.kind == "exact" for one, _ in steps)
    added = told(TCDP(rho, given.omega), _SUM, tight=tight)
    return (
        added
        if tight or given.omega == math.inf
        else min(added, _by_orders(source, given), key=lambda one: one.rho)
    )


@to_tcdp.register
def _(source: PureDP | GDP, given: Given) -> TCDP:
    return _truncated(to_zcdp(source, given), given)


@to_tcdp.register
def _(source: ApproxDP, given: Given) -> TCDP:
    if source.delta > 0.0:
        refuse(source, "TCDP", FAILS)
    return to_tcdp(PureDP(source.epsilon), given)


@to_tcdp.register
def _(source: ZCDP, given: Given) -> TCDP:
    return exact(TCDP(source.rho, given.omega), _PART)


@to_tcdp.register
def _(source: TCDP, given: Given) -> TCDP:
    if given.omega > source.omega:
        refuse(source, "TCDP", f"it says nothing of orders above {source.omega:g}")
    return exact(TCDP(source.rho, given.omega), _PART)


@to_tcdp.register
def _(source: RenyiDP, given: Given) -> TCDP:
    curve = points_of(source)
    if given.omega > curve.divergences[-1][0]:
        refuse(source, "TCDP", FEW_ORDERS)
    return bound(TCDP(evaluated(lambda m: _steepest(curve, given.omega, m)), given.omega), _CONVEX)


@to_tcdp.register
def _(source: FDP, given: Given) -> TCDP:
    return _smaller(source, given)


def _smaller(source: Mechanism, given: Given) -> TCDP:
    """Return the line above all divergences or that above many, whichever is lower."""
    try:
        whole = _truncated(to_zcdp(source, given), given)
    except IncompatibleError:
        if given.omega == math.inf:
            raise
        return _by_orders(source, given)
    if given.omega == math.inf or (whole.origin is not None and whole.origin.kind == "exact"):
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
