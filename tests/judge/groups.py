"""Groups of records: the trade-off function ``1 - (1 - f)^og`` by the composition of polygons."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from tests.judge.outcomes import Array, Outcomes, concave_hull
from tests.judge.profiles import Real, Terms, listed, mp
from tests.judge.truths import Truth
from tests.judge.verdicts import Known

_MOST_CORNERS = 40
_RATES = np.concatenate([np.logspace(-40, -2, 4000), np.linspace(0.0100001, 1.0, 4000)])


def of_group(truth: Truth, size: int, attack: Truth) -> Known:
    """What holds of groups: no more than the composed function allows, no less than an attack."""
    exact = _exactly(truth, size)
    if exact is not None:
        both = [exact, exact.swapped()]

        def curve(epsilon: float) -> Any:
            return max(one.delta(mp.mpf(epsilon)) for one in both)

        return Known(attack.lower if attack.attacked else lambda _: 0.0, curve)
    upper = _listed(truth, size)
    return Known(attack.lower if attack.attacked else lambda _: 0.0, upper)


def attained(truth: Truth, size: int) -> Callable[[float], Any] | None:
    """The composed curve of a guarantee of which f is all that is known: some release attains it.

    An asymmetric f is composed with itself, as where each record is added.
    """
    exact = _exactly(truth, size, symmetric=False)
    if exact is None:
        return None
    both = [exact, exact.swapped()]
    return lambda epsilon: max(one.delta(mp.mpf(epsilon)) for one in both)


def _exactly(truth: Truth, size: int, *, symmetric: bool = True) -> Terms | None:
    """The composition of a polygon of few corners, in many digits."""
    if len(truth.places) != 1 or truth.places[0].dominating is None:
        return None
    profile = truth.places[0].dominating.profile
    if not isinstance(profile, Terms) or len(profile.terms) > 8:
        return None
    if any(square for _, _, square in profile.terms):
        return None
    other = _corners(profile.swapped()) if symmetric else []
    corners = _hull([*_corners(profile), *other])
    across = sorted({x for x, _ in corners})
    for _ in range(size - 1):
        before = _inverse(corners, across)
        across = sorted({*(x for x, _ in corners), *before})
        if len(across) > _MOST_CORNERS:
            return None
    heights = []
    for x in across:
        y = x
        for _ in range(size):
            y = _at(corners, y)
        heights.append(y)
    p = [heights[0], *(b - a for a, b in pairwise(heights)), 1 - heights[-1]]
    q = [across[0], *(b - a for a, b in pairwise(across)), 1 - across[-1]]
    return listed(p, q)


def _corners(terms: Terms) -> list[tuple[Real, Real]]:
    """False and true positives of the tests by the ratio."""
    order = sorted(terms.terms, key=lambda t: -(mp.inf if t[1] == 0 else t[0] / t[1]))
    found = [(mp.mpf(0), mp.mpf(0))]
    for p, q, _ in order:
        x, y = found[-1]
        found.append((x + q, y + p))
    return found


def _hull(points: list[tuple[Real, Real]]) -> list[tuple[Real, Real]]:
    """The concave hull, from false positives 0 to 1, the highest point of each."""
    best: dict[Real, Real] = {}
    for x, y in [*points, (mp.mpf(1), mp.mpf(1))]:
        x = min(x, mp.mpf(1))
        best[x] = max(best.get(x, mp.mpf(0)), min(y, mp.mpf(1)))
    hull: list[tuple[Real, Real]] = []
    for x, y in sorted(best.items()):
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (y - hull[-2][1]) >= (
            hull[-1][1] - hull[-2][1]
        ) * (x - hull[-2][0]):
            hull.pop()
        hull.append((x, y))
    return hull


def _at(corners: list[tuple[Real, Real]], x: Real) -> Real:
    place = bisect_left([one for one, _ in corners], x)
    if place >= len(corners):
        return corners[-1][1]
    if corners[place][0] == x or place == 0:
        return corners[place][1]
    (a, b), (c, d) = corners[place - 1], corners[place]
    return b + (d - b) * (x - a) / (c - a)


def _inverse(corners: list[tuple[Real, Real]], heights: list[Real]) -> list[Real]:
    found = []
    for y in heights:
        for (a, b), (c, d) in pairwise(corners):
            if b < y < d:
                found.append(a + (c - a) * (y - b) / (d - b))
    return found


def _listed(truth: Truth, size: int) -> Callable[[float], float] | None:
    """An upper bound from lists that dominate, None where there are none."""
    tops: list[Outcomes] = []
    for place in truth.places:
        if place.dominating is None:
            return None
        tops += [place.dominating.high, place.dominating.high.swapped()]
    hull = concave_hull(tops)
    order = np.argsort(-hull.losses)
    x: Array = np.concatenate([[0.0], np.cumsum(hull.q[order])])
    y: Array = np.concatenate([[0.0], np.cumsum(hull.p[order])])
    reached = _RATES
    for _ in range(size):
        reached = np.interp(reached, x, y)

    def curve(epsilon: float) -> float:
        # Between neighbouring rates the power is at most that of the larger one.
        gain = reached[1:] - math.exp(min(epsilon, 700.0)) * _RATES[:-1]
        return min(max(float(gain.max()), float(reached[0]), 0.0) + 1e-9, 1.0)

    return curve
