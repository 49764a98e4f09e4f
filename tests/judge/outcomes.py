"""Pairs as lists of outcomes in floats, and how they are made fewer on the safe side.

To merge outcomes is to forget which of them came: what is left is dominated by what was, in both
orders of the pair. Masses are sums of products of positive numbers, so that they are precise
relative to themselves.
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
# Masses below this are dropped.
_LEAST = 1e-280
_FARTHEST = 600.0


@dataclass(frozen=True, eq=False)
class Outcomes:
    p: Array
    q: Array

    @cached_property
    def losses(self) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(self.p) - np.log(self.q), dtype=np.float64)

    def swapped(self) -> Outcomes:
        return Outcomes(self.q, self.p)

    def delta(self, epsilon: float) -> float:
        if epsilon > _FARTHEST:
            return 0.0
        gains = self.p - math.exp(epsilon) * self.q
        taken = gains > 0.0
        slack = ROUND_OFF * float(self.p[taken].sum())
        return max(float(gains[taken].sum()) - slack, 0.0)

    def times(self, other: Outcomes) -> Outcomes:
        p = np.outer(self.p, other.p).ravel()
        q = np.outer(self.q, other.q).ravel()
        return Outcomes(p, q).fewer()

    def power(self, count: int) -> Outcomes:
        result, base = NOTHING, self
        while count:
            if count & 1:
                result = result.times(base)
            count >>= 1
            base = base.times(base) if count else base
        return result

    def mixed(self, rate: float) -> Outcomes:
        return Outcomes((1.0 - rate) * self.q + rate * self.p, self.q)

    def revealed(self, rate: float) -> Outcomes:
        """Run with the probability rate, and all see whether."""
        rest = np.array([1.0 - rate])
        return Outcomes(np.append(rate * self.p, rest), np.append(rate * self.q, rest))

    def fewer(self, bins: int = BINS) -> Outcomes:
        """Merged at losses that are denser where they are small."""
        if self.p.size <= bins:
            return self
        if not ((self.p > _LEAST) & (self.q > _LEAST)).any():
            return NOTHING
        return _merged(self, bins)

    def renyi(self, order: float) -> float:
        """The divergence of an order above 1, rounded down."""
        both = (self.p > 0.0) & (self.q > 0.0)
        logs = order * np.log(self.p[both]) + (1.0 - order) * np.log(self.q[both])
        most = float(logs.max())
        total = most + math.log(float(np.exp(logs - most).sum()))
        return total / (order - 1.0) - 1e-9 * (1.0 + abs(total) / (order - 1.0))


NOTHING = Outcomes(np.ones(1), np.ones(1))


def union(parts: list[tuple[float, Outcomes]]) -> Outcomes:
    p = np.concatenate([weight * one.p for weight, one in parts])
    q = np.concatenate([weight * one.q for weight, one in parts])
    return Outcomes(p, q)


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
    return Outcomes(np.append(merged_p[used], extra[0]), np.append(merged_q[used], extra[1]))
