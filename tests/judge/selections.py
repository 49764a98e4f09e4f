"""Selections: one of a few candidates, the first above a threshold, the best of random runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from tests.judge.cases import Case, Family, of_terms
from tests.judge.outcomes import Array, Outcomes
from tests.judge.profiles import Real, failing, listed, mp, number

_GAPS = (-3, -1, 0, 2)


def _pair(p: Real, q: Real) -> Case:
    return of_terms(listed((p, 1 - p), (q, 1 - q)))


def _selection(chance: Callable[[Real], Real], distance: int, most: Real) -> Family:
    """Two candidates whose scores move against each other: the gap grows by 2 for each record.

    ``chance`` is the probability of the first one at half a gap, in units of the sensitivity.
    """
    attacks = tuple(
        _pair(chance(mp.mpf(gap) / 2 + distance), chance(mp.mpf(gap) / 2)) for gap in _GAPS
    )
    symmetric = _pair(chance(mp.mpf(distance) / 2), chance(-mp.mpf(distance) / 2))
    return Family((symmetric, *attacks), of_terms(failing(most * distance, mp.mpf(0))))


def exponential(distance: int, epsilon: float) -> Family:
    """The odds of two candidates are e^(epsilon times half the gap)."""
    e = number(epsilon)
    return _selection(lambda x: 1 / (1 + mp.exp(-e * x)), distance, e)


def permute_and_flip(distance: int, epsilon: float) -> Family:
    """Half of the time the worse candidate comes first, and is taken by its coin."""
    e = number(epsilon)

    def chance(x: Real) -> Real:
        other = mp.exp(-e * abs(x)) / 2
        return 1 - other if x >= 0 else other

    return _selection(chance, distance, e)


def laplace_max(distance: int, epsilon: float) -> Family:
    """The difference of two Laplace noises of scale 2/epsilon against the gap."""
    e = number(epsilon)

    def chance(x: Real) -> Real:
        # A gap of 2 x over the scale 2/epsilon.
        z = e * abs(x)
        tail = mp.exp(-z) * (2 + z) / 4
        return 1 - tail if x >= 0 else tail

    return _selection(chance, distance, e)


def noisy_max(distance: int, epsilon: float, noise: str) -> Family:
    ways = {"gumbel": exponential, "exponential": permute_and_flip, "laplace": laplace_max}
    return ways[noise](distance, epsilon)


@lru_cache(maxsize=256)
def _threshold(threshold: float, query: float, places: tuple[int, ...]) -> tuple[Real, ...]:
    """Where the first of some queries, at these places, is above a threshold at 0: or nowhere."""
    # Simpson's rule: the densities' corners, at whole numbers, are ends of its panels.
    end = 256 * math.ceil(40.0 * max(threshold, query))
    x = np.arange(-end, end + 1) / 256.0
    simpson = np.full(x.size, 2.0)
    simpson[1::2] = 4.0
    simpson[[0, -1]] = 1.0
    weight = simpson * np.exp(-np.abs(x) / threshold)
    weight /= weight.sum()
    found, below = [], np.ones_like(x)
    for place in places:
        z = (x - place) / query
        tail = 0.5 * np.exp(-np.abs(z))
        under = np.where(z < 0.0, tail, 1.0 - tail)
        found.append(mp.mpf(float((weight * below * (1.0 - under)).sum())))
        below = below * under
    return (*found, 1 - mp.fsum(found))


def _closed(threshold: Real, query: Real, place: int) -> Real:
    """The chance that one query is above, by the difference of two Laplace noises."""
    t = mp.mpf(abs(place))
    if threshold == query:
        tail = mp.exp(-t / query) * (2 + t / query) / 4
    else:
        a, b = threshold**2, query**2
        tail = (a * mp.exp(-t / threshold) - b * mp.exp(-t / query)) / (2 * (a - b))
    return tail if place <= 0 else 1 - tail


def above_threshold(distance: int, threshold: float, query: float) -> Family:
    """One query at the threshold, or two that fall and one that rises."""
    a, b = number(threshold), number(query)
    most = failing(distance * (1 / a + 2 / b), mp.mpf(0))
    attacks = [
        _pair(_closed(a, b, start + distance), _closed(a, b, start)) for start in (-1, 0, 1, -3)
    ]
    ups = _threshold(threshold, query, (0, 0, distance))
    downs = _threshold(threshold, query, (distance, distance, 0))
    # The quadrature is good to some 9 digits: a little of each is given away.
    attacks.append(_blurred(ups, downs))
    return Family(tuple(attacks), of_terms(most))


def _blurred(p: tuple[Real, ...], q: tuple[Real, ...]) -> Case:
    """A pair whose answer is replaced by a coin's now and then, which costs less."""
    slack = mp.mpf("1e-6")
    even = slack / len(p)
    return of_terms(
        listed([(1 - slack) * a + even for a in p], [(1 - slack) * a + even for a in q])
    )


def tuned(inner: Family, kind: str, *numbers: float) -> Family:
    """The best of a random number of runs, for scores that rise or fall with the loss."""
    attacks = []
    for case in inner.attacks[:2]:
        attacks += [_best(case.low.fewer(48), order, kind, numbers) for order in (1, -1)]
    return Family(tuple(attacks))


def _best(one: Outcomes, order: int, kind: str, numbers: tuple[float, ...]) -> Case:
    small = _coarse(one)
    sequence = np.argsort(order * small.losses)
    masses = []
    for law in (small.p, small.q):
        total = mp.mpf(0)
        reached = [_generating(kind, numbers, total)]
        ordered = [mp.mpf(float(value)) for value in law[sequence]]
        whole = mp.fsum(ordered)
        for value in ordered:
            total += value / whole
            reached.append(_generating(kind, numbers, total))
        none = reached[0]
        masses.append([none, *(b - a for a, b in pairwise(reached))])
    return _blurred(tuple(masses[0]), tuple(masses[1]))


def _coarse(one: Outcomes) -> Outcomes:
    losses = one.losses
    keep = np.isfinite(losses)
    p, q, losses = one.p[keep], one.q[keep], losses[keep]
    ends = np.interp(np.linspace(0, 1, 41), np.linspace(0, 1, losses.size), np.sort(losses))
    place = np.clip(np.searchsorted(ends, losses), 0, 40)
    merged: list[Array] = [np.bincount(place, one, 41).astype(np.float64) for one in (p, q)]
    used = (merged[0] > 0) & (merged[1] > 0)
    return Outcomes(merged[0][used], merged[1][used], False)


def _generating(kind: str, numbers: tuple[float, ...], x: Real) -> Real:
    if kind == "Poisson":
        return mp.exp(number(numbers[0]) * (x - 1))
    if kind == "Binomial":
        return (1 - number(numbers[1]) * (1 - x)) ** int(numbers[0])
    eta, gamma = number(numbers[0]), number(numbers[1])
    left = 1 - (1 - gamma) * x
    if eta == 0:
        return mp.log(left) / mp.log(gamma)
    return (left**-eta - 1) / (gamma**-eta - 1)


def radial(scale: float, dimension: int, distance: int) -> Case:
    """One coordinate of noise with the density exp(-|z|/b) in three dimensions, along the shift.

    Its law there has the density (1 + |x|/b) e^(-|x|/b) / (4 b).
    """
    assert dimension == 3

    def low() -> Outcomes:
        edges = np.concatenate(
            [np.linspace(-30.0, 30.0, 500) * scale, np.linspace(0.0, float(distance), 200)]
        )
        edges = np.unique(edges)
        masses = []
        for shift in (float(distance), 0.0):
            z = np.abs(edges - shift) / scale
            tail = np.exp(-z) * (2.0 + z) / 4.0
            side = edges < shift
            below = np.where(side, tail, 1.0 - tail)
            above = np.where(side, 1.0 - tail, tail)
            left = np.concatenate([[0.0], below, [1.0]])
            right = np.concatenate([[1.0], above, [0.0]])
            by_left, by_right = np.diff(left), -np.diff(right)
            masses.append(np.where(np.append(side, False), by_left, by_right))
        return Outcomes(np.maximum(masses[0], 0.0), np.maximum(masses[1], 0.0), False)

    return Case(None, low, None)


LEAVES: dict[str, Callable[..., Any]] = {
    "Exponential": exponential,
    "PermuteAndFlip": permute_and_flip,
    "ReportNoisyMax": noisy_max,
    "AboveThreshold": above_threshold,
}
