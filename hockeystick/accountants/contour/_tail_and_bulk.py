"""Rare large losses, integrated separately where small losses hardly let ``|M|`` fall.

With ``M = A + J`` for each loss (bulk and tail: small and large losses), the outcomes without any
large loss have the transform ``prod A^n``. Chernoff's bound, at an order of their own, bounds their
whole contribution to delta; where that is negligible, the integrand ``prod M^n - prod A^n`` is
left, which decays as fast as J does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.contour._line import AnalyticTerms, ContourTarget
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss import TailSplit
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor

_Number = TypeVar("_Number", float, NDArray[np.float64])

_HALVINGS: Final = 14
_LEAST_THRESHOLD: Final = 1e-4
# With more different losses than this the search takes longer than a lattice.
_MOST_LOSSES: Final = 24
# The heights of the decay's grid, 2^(k / _PER_OCTAVE), and the last k.
_PER_OCTAVE: Final = 4
_LAST_INDEX: Final = 14 * _PER_OCTAVE


@dataclass(frozen=True, slots=True)
class TailAndBulk:
    """Each loss split in tail and bulk, and ``ln prod A(order)^n``, which bounds the bulk."""

    splits: tuple[tuple[TailSplit, int], ...]
    order: float
    log_bulk: float

    def log_bulk_delta(self, epsilon: _Number) -> _Number:
        """Return a bound of ln of the contribution of outcomes without a large loss to delta."""
        return self.log_bulk - self.order * epsilon + log_cks_factor(self.order)

    def decay(self, c: float) -> ComposedTailDecay:
        """Return the decay of the outcomes with a large loss along the line through c."""
        return ComposedTailDecay(self, c)


class ComposedTailDecay:
    """``|prod M^n - prod A^n| <= prod M(c)^n sum n |J| / M(c)``, on a geometric grid of heights."""

    def __init__(self, losses: TailAndBulk, c: float) -> None:
        self._splits = [(split.decay(c), math.log(n)) for split, n in losses.splits]
        self._exponents: dict[int, float] = {}

    def exponent(self, y: float) -> float:
        """Return minus the logarithm of the sum, at the grid's height below y."""
        index = min(math.floor(_PER_OCTAVE * math.log2(y)), _LAST_INDEX)
        if index not in self._exponents:
            self._exponents[index] = self._exponent(2.0 ** (index / _PER_OCTAVE))
        return self._exponents[index]

    def _exponent(self, y: float) -> float:
        """Return minus the logarithm of the sum at one height."""
        logs = [log_n - decay.exponent(y) for decay, log_n in self._splits]
        top = max(logs)
        return -top - math.log(math.fsum(math.exp(log - top) for log in logs))


def tail_and_bulk(terms: AnalyticTerms, target: ContourTarget) -> TailAndBulk | None:
    """Return the split at the highest threshold with a negligible bulk, or None."""
    if target.epsilon <= 0.0 or len(terms) > _MOST_LOSSES:
        return None
    low, high = _LEAST_THRESHOLD * target.epsilon, 0.5 * target.epsilon
    goal = target.log_delta - target.accuracy - 1.0
    best: tuple[tuple[tuple[TailSplit, int], ...], float] | None = None
    for _ in range(_HALVINGS):
        threshold = math.sqrt(low * high)
        splits = _splits(terms, threshold)
        if splits is None:
            return None
        order, value = _best_order(splits, target.epsilon)
        if value <= goal:
            best, low = (splits, order), threshold
        else:
            high = threshold
        if high < 1.1 * low:
            break
    if best is None:
        return None
    splits, order = best
    runs = sum(count for _, count in splits)
    bulk = math.fsum(n * split.bulk_upper(order, -24.0 - math.log(runs)) for split, n in splits)
    found = TailAndBulk(splits, order, bulk + 1e-12 * abs(bulk))
    return found if found.log_bulk_delta(target.epsilon) <= goal + 1.0 else None


def _splits(terms: AnalyticTerms, threshold: float) -> tuple[tuple[TailSplit, int], ...] | None:
    """Return each loss split at a threshold, or None if one cannot be."""
    splits = []
    for loss, count in terms:
        split = loss.tail_split(threshold)
        if split is None:
            return None
        splits.append((split, count))
    return tuple(splits)


def _best_order(splits: tuple[tuple[TailSplit, int], ...], epsilon: float) -> tuple[float, float]:
    """Return the order of the least Chernoff bound of the bulk, and ln of that bound.

    The derivative in the order l vanishes where ``K'(l) = epsilon + ln(1 + 1/l)``.
    """

    def condition(log_order: float) -> float:
        order = math.exp(log_order)
        mean = math.fsum(n * split.bulk(order).first_derivative for split, n in splits)
        return mean - epsilon - math.log1p(1.0 / order)

    base = -math.log(epsilon)
    best = increasing_root(condition, base + 3.0, tolerance=0.02, farthest=abs(base) + 9.0)
    order = math.exp(best)
    value = math.fsum(n * split.bulk(order).value for split, n in splits)
    return order, value - order * epsilon + log_cks_factor(order)
