"""Pairs as lists of outcomes in floats, and how they are made fewer on either safe side.

To merge outcomes is to forget which of them came: what is left is dominated by what was. To split
an outcome into two of other ratios, whose masses add up to its own, is the reverse: merging them
again gives it back, so that the split pair dominates. Both serve both orders of a pair. Masses are
sums of products of positive numbers, so that they are precise relative to themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BINS = 700
# Relative to the masses above the threshold: covers every rounding of what is summed.
ROUND_OFF = 1e-10
# Masses below this are dropped (merged pairs) or shown (split pairs).
_LEAST = 1e-280
_FARTHEST = 600.0


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Masses of outcomes under P and under Q; ``above`` tells a pair that dominates."""

    p: Array
    q: Array
    above: bool

    @cached_property
    def losses(self) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(self.p) - np.log(self.q), dtype=np.float64)

    def swapped(self) -> Outcomes:
        return Outcomes(self.q, self.p, self.above)

    def delta(self, epsilon: float) -> float:
        """The divergence, rounded up where the pair dominates and down where it is dominated."""
        if epsilon > _FARTHEST and not self.above:
            return 0.0
        factor = math.exp(min(epsilon, 700.0))
        gains = self.p - factor * self.q
        taken = gains > 0.0
        slack = ROUND_OFF * float(self.p[taken].sum())
        value = float(gains[taken].sum())
        return min(value + slack + 1e-270, 1.0) if self.above else max(value - slack, 0.0)

    def times(self, other: Outcomes) -> Outcomes:
        p = np.outer(self.p, other.p).ravel()
        q = np.outer(self.q, other.q).ravel()
        return Outcomes(p, q, self.above).fewer()

    def power(self, count: int) -> Outcomes:
        result, base = nothing(self.above), self
        while count:
            if count & 1:
                result = result.times(base)
            count >>= 1
            base = base.times(base) if count else base
        return result

    def mixed(self, rate: float) -> Outcomes:
        return Outcomes((1.0 - rate) * self.q + rate * self.p, self.q, self.above)

    def revealed(self, rate: float) -> Outcomes:
        """Run with the probability rate, and all see whether."""
        rest = np.array([1.0 - rate])
        return Outcomes(np.append(rate * self.p, rest), np.append(rate * self.q, rest), self.above)

    def fewer(self, bins: int = BINS) -> Outcomes:
        """Merged or split at losses that are denser where they are small."""
        if self.p.size <= bins:
            return self
        if not ((self.p > _LEAST) & (self.q > _LEAST)).any():
            # Only a lower end loses what is told of such rare outcomes.
            shown = np.array([float(self.p.sum()), 0.0]), np.array([0.0, float(self.q.sum())])
            return Outcomes(*shown, True) if self.above else nothing(False)
        return _split_to(self, bins) if self.above else _merged(self, bins)

    def renyi(self, order: float) -> float:
        """The divergence of an order above 1: a lower end where the pair is dominated."""
        both = (self.p > 0.0) & (self.q > 0.0)
        logs = order * np.log(self.p[both]) + (1.0 - order) * np.log(self.q[both])
        most = float(logs.max())
        total = most + math.log(float(np.exp(logs - most).sum()))
        return total / (order - 1.0) - 1e-9 * (1.0 + abs(total) / (order - 1.0))


def nothing(above: bool) -> Outcomes:
    return Outcomes(np.ones(1), np.ones(1), above)


def union(parts: list[tuple[float, Outcomes]]) -> Outcomes:
    p = np.concatenate([weight * one.p for weight, one in parts])
    q = np.concatenate([weight * one.q for weight, one in parts])
    return Outcomes(p, q, parts[0][1].above)


def split(p: Array, q: Array, low: Array, high: Array) -> Outcomes:
    """Each outcome as two of the losses low and high, between which its own lies.

    ``p = e^low a + e^high b`` and ``q = a + b``; low may be -inf and high inf.
    """
    bottom, top = np.exp(np.maximum(low, -_FARTHEST)), np.exp(np.minimum(high, _FARTHEST))
    bottom = np.where(np.isneginf(low), 0.0, bottom)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        b = np.where(np.isposinf(high), 0.0, np.clip((p - bottom * q) / (top - bottom), 0.0, q))
    b = np.where(top == bottom, 0.0, b)
    a = q - b
    # Of an unbounded loss all of q is at the low end, and the rest of p without any q.
    upper_p = np.where(np.isposinf(high), np.maximum(p - bottom * q, 0.0), top * b)
    lower_p = np.where(top == bottom, p, bottom * a)
    return Outcomes(np.concatenate([lower_p, upper_p]), np.concatenate([a, b]), True)


def _edges(one: Outcomes, bins: int) -> Array:
    """Losses at which outcomes are gathered: even in asinh, as far as there is mass."""
    finite = (one.p > 0.0) & (one.q > 0.0)
    losses = one.losses[finite]
    weight = one.p[finite] + one.q[finite]
    kept = np.abs(losses[weight > 1e-60]) if (weight > 1e-60).any() else np.abs(losses)
    most = min(max(float(kept.max()), 1e-12), _FARTHEST)
    typical = math.sqrt(float((weight * np.minimum(losses**2, most**2)).sum() / weight.sum()))
    unit = max(typical, 1e-4 * most, 1e-14)
    end = math.asinh(most / unit)
    return np.asarray(unit * np.sinh(np.linspace(-end, end, bins)), dtype=np.float64)


def _merged(one: Outcomes, bins: int) -> Outcomes:
    """What is left of which outcome came when only a range of its loss is told."""
    keep = (one.p > _LEAST) & (one.q > _LEAST)
    # Where q is 0 because it underflows, p is tiny too.
    shown = (one.q == 0.0) & (one.p > 1e-20)
    p, q = one.p[keep], one.q[keep]
    edges = _edges(one, bins)
    place = np.searchsorted(edges, one.losses[keep])
    size = edges.size + 1
    merged_p = np.bincount(place, p, size)
    merged_q = np.bincount(place, q, size)
    used = merged_q > 0.0
    extra = np.array([one.p[shown].sum(), 0.0]), np.array([0.0, one.q[one.p == 0.0].sum()])
    return Outcomes(np.append(merged_p[used], extra[0]), np.append(merged_q[used], extra[1]), False)


def _split_to(one: Outcomes, bins: int) -> Outcomes:
    """Outcomes of the losses of the edges alone, and of infinite ones."""
    finite = (one.p > _LEAST) & (one.q > _LEAST)
    edges = _edges(one, bins)
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    p, q = one.p[finite], one.q[finite]
    place = np.searchsorted(edges, one.losses[finite], side="right")
    low, high = bounds[place], bounds[place + 1]
    parts = split(p, q, low, high)
    # Slots: 0 is without p, the last one without q, the edges between.
    slots = np.concatenate([place, place + 1])
    size = edges.size + 2
    sums_q: Array = np.bincount(slots, parts.q, size).astype(np.float64)
    sums_p: Array = np.bincount(slots, parts.p, size).astype(np.float64)
    rest_p, rest_q = float(one.p[~finite].sum()), float(one.q[~finite].sum())
    sums_p[-1] += rest_p
    sums_q[0] += rest_q
    sums_q[-1] = 0.0
    sums_p[0] = 0.0
    used = (sums_p > 0.0) | (sums_q > 0.0)
    return Outcomes(sums_p[used], sums_q[used], True)


def concave_hull(pairs: list[Outcomes]) -> Outcomes:
    """The pair whose tests are as powerful as the best of all of these, and of their mixtures."""
    points = np.concatenate([_corners(one) for one in pairs])
    order = np.lexsort((-points[:, 1], points[:, 0]))
    hull: list[tuple[float, float]] = []
    for x, y in points[order].tolist():
        while len(hull) > 1 and _bends_up(hull[-2], hull[-1], (x, y)):
            hull.pop()
        if not hull or x > hull[-1][0] or y > hull[-1][1]:
            hull.append((x, y))
    corners = np.array([(0.0, 0.0), *hull, (1.0, 1.0)])
    steps = np.maximum(np.diff(corners, axis=0), 0.0)
    used = steps.max(axis=1) > 0.0
    return Outcomes(steps[used, 1], steps[used, 0], pairs[0].above)


def _corners(one: Outcomes) -> Array:
    """False and true positive rates of the tests by the loss."""
    order = np.argsort(-one.losses)
    x, y = np.cumsum(one.q[order]), np.cumsum(one.p[order])
    return np.stack([np.minimum(x, 1.0), np.minimum(y, 1.0)], axis=1)


def _bends_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether the middle point lies on or below the line of the others."""
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])
