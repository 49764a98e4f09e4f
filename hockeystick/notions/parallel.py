"""Parallel composition: releases of disjoint parts of the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce, singledispatch
from itertools import combinations
from typing import Any, TypeVar

from hockeystick._validate import choice
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.notions.approx import ApproxDP, PureDP
from hockeystick.notions.base import Notion
from hockeystick.notions.concentrated import TCDP, ZCDP, RenyiDP
from hockeystick.notions.fdp import FDP, GDP
from hockeystick.numerics.rounding import DIGITS, evaluated_up, float_up
from hockeystick.numerics.working_precision import working_digits
from hockeystick.tradeoffs import MaximumProfile, ProfileTradeOff, TradeOff

_Notion = TypeVar("_Notion", bound=Notion)
_ALLOWED = "guarantees of one notion, at least one"


def parallel(parts: Iterable[_Notion], adjacency: Adjacency | str = "add-remove") -> _Notion:
    """Return the guarantee of releases each of which reads its own part of the data.

    The data are split by a rule that does not depend on anyone's data; each part goes to one
    release. A record that is added, removed or zeroed is in one part: the worst guarantee holds
    for all. A record that is REPLACED may move from one part to another, so that two releases
    change: the two worst compose.

    Guarantees:
        Valid for all releases with these guarantees, every number rounded up.

    Edge cases:
        One part alone is that part.

    Args:
        parts: Guarantees of one notion, one per part of the data.
        adjacency: "add-remove", "zero-out" or "replace-one".

    Returns:
        A guarantee of the same notion.

    Raises:
        ParameterError: If there is no part, or they are not of one notion.
        IncompatibleError: If guarantees by Renyi divergences have no order in common.

    References:
        McSherry, "Privacy Integrated Queries", 2009, theorem 4, under add-remove. Some texts state
        it without the adjacency: under replace-one the worst alone does not suffice.

    Example:
        >>> import hockeystick as hs
        >>> hs.notions.parallel([hs.PureDP(1.0), hs.PureDP(0.5), hs.PureDP(0.25)])
        PureDP(epsilon=1.0)
        >>> hs.notions.parallel([hs.PureDP(1.0), hs.PureDP(0.5), hs.PureDP(0.25)], "replace-one")
        PureDP(epsilon=1.5)
    """
    try:
        listed = list(parts)
    except TypeError:
        raise ParameterError("parts", parts, _ALLOWED) from None
    if not listed or not isinstance(listed[0], Notion) or len({type(one) for one in listed}) > 1:
        raise ParameterError("parts", parts, _ALLOWED)
    moves = choice("adjacency", adjacency, Adjacency) is Adjacency.REPLACE_ONE
    changed = 2 if moves and len(listed) > 1 else 1
    if len(listed) == 1:
        return listed[0]
    together: _Notion = _together(listed[0], listed, changed)
    return together


@singledispatch
def _together(first: Notion, parts: Sequence[Notion], changed: int) -> Any:
    """Return the guarantee where 1 or 2 of the parts change."""
    raise ParameterError("parts", parts, _ALLOWED)


@_together.register
def _(first: PureDP, parts: Sequence[PureDP], changed: int) -> PureDP:
    return PureDP(_largest((one.epsilon for one in parts), changed))


@_together.register
def _(first: ApproxDP, parts: Sequence[ApproxDP], changed: int) -> ApproxDP:
    delta = min(_largest((one.delta for one in parts), changed), 1.0)
    return ApproxDP(_largest((one.epsilon for one in parts), changed), delta)


@_together.register
def _(first: GDP, parts: Sequence[GDP], changed: int) -> GDP:
    mus = sorted((one.mu for one in parts), reverse=True)[:changed]
    if changed == 1 or math.inf in mus or mus[1] == 0.0:
        return GDP(mus[0])
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        return GDP(evaluated_up(mp.sqrt(mp.fsum(mp.mpf(mu) ** 2 for mu in mus))))


@_together.register
def _(first: ZCDP, parts: Sequence[ZCDP], changed: int) -> ZCDP:
    return ZCDP(_largest((one.rho for one in parts), changed))


@_together.register
def _(first: TCDP, parts: Sequence[TCDP], changed: int) -> TCDP:
    omega = min(one.omega for one in parts)
    return TCDP(_largest((one.rho for one in parts), changed), omega)


@_together.register
def _(first: RenyiDP, parts: Sequence[RenyiDP], changed: int) -> RenyiDP:
    known = [dict(one.divergences) for one in parts]
    orders = [order for order in known[0] if all(order in other for other in known[1:])]
    if not orders:
        raise IncompatibleError("the guarantees have no order of their divergences in common")
    return RenyiDP({a: _largest((other[a] for other in known), changed) for a in orders})


@_together.register
def _(first: FDP, parts: Sequence[FDP], changed: int) -> FDP:
    functions = [one.tradeoff for one in parts]
    if changed == 2:
        functions = [f @ g for f, g in combinations(functions, 2)]
    return FDP(reduce(_worse, functions))


def _worse(f: TradeOff, g: TradeOff) -> TradeOff:
    """Return the lower convex envelope of the smaller of two functions and of their inverses."""
    one, other = f.symmetrize(), g.symmetrize()
    if one == other:
        return one
    profile = MaximumProfile(one.forward, other.forward)
    return ProfileTradeOff((profile, profile))


def _largest(sizes: Iterable[float], count: int) -> float:
    """Return the sum of the largest few numbers, rounded up."""
    most = sorted(sizes, reverse=True)[:count]
    return math.inf if math.inf in most else float_up(sum(map(Fraction, most), Fraction(0)))
