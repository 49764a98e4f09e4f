"""Rare large losses, integrated separately where small losses hardly let ``|M|`` fall.

With ``M = A + J`` for each loss (small and large losses), the outcomes without any large loss have
the transform ``prod A^n``. If even they rarely add up to epsilon, their whole contribution to delta
is below ``hidden``, by Chernoff's bound at a point of their own, and the integrand that is left,
``prod M^n - prod A^n``, falls as fast as J does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.contour._line import AnalyticTerms, ContourTarget
from hockeystick.numerics.roots import minimum
from hockeystick.privacy_loss import TailSplit
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor

_Number = TypeVar("_Number", float, NDArray[np.float64])

_HALVINGS: Final = 14
_LOWEST: Final = 1e-4
# With more different losses than this the search takes longer than a lattice does.
_MOST_KINDS: Final = 24
# Heights at which the decay is worked out: so many per octave, up to 2^(_HIGHEST / _PER_OCTAVE).
_PER_OCTAVE: Final = 4
_HIGHEST: Final = 14 * _PER_OCTAVE


@dataclass(frozen=True, slots=True)
class LargeLosses:
    """The large losses of each term, and the proven bound on all outcomes without one."""

    parts: tuple[tuple[TailSplit, int], ...]
    order: float
    log_bulk: float

    def log_hidden(self, epsilon: _Number) -> _Number:
        """Return a bound of ln of what outcomes without a large loss contribute to delta."""
        return self.log_bulk - self.order * epsilon + log_cks_factor(self.order)

    def decay(self, c: float) -> LargeDecay:
        """Return how the part with a large loss in it falls along the line through c."""
        return LargeDecay(self, c)


class LargeDecay:
    """``|prod M^n - prod A^n| <= prod M(c)^n sum n |J| / M(c)``, on a geometric grid of heights."""

    def __init__(self, of: LargeLosses, c: float) -> None:
        self._parts = [(split.decay(c), math.log(n)) for split, n in of.parts]
        self._known: dict[int, float] = {}

    def exponent(self, y: float) -> float:
        """Return minus the logarithm of the sum, at the grid's height below y."""
        index = min(math.floor(_PER_OCTAVE * math.log2(y)), _HIGHEST)
        if index not in self._known:
            self._known[index] = self._exponent(2.0 ** (index / _PER_OCTAVE))
        return self._known[index]

    def _exponent(self, y: float) -> float:
        """Return minus the logarithm of the sum at one height."""
        logs = [log_n - decay.exponent(y) for decay, log_n in self._parts]
        top = max(logs)
        return -top - math.log(math.fsum(math.exp(log - top) for log in logs))


def large_losses(terms: AnalyticTerms, target: ContourTarget) -> LargeLosses | None:
    """Return the large losses above the highest threshold that hides enough, or None."""
    if target.epsilon <= 0.0 or len(terms) > _MOST_KINDS:
        return None
    low, high = _LOWEST * target.epsilon, 0.5 * target.epsilon
    goal = target.log_delta - target.accuracy - 1.0
    best: tuple[tuple[tuple[TailSplit, int], ...], float] | None = None
    for _ in range(_HALVINGS):
        threshold = math.sqrt(low * high)
        parts = _parts(terms, threshold)
        if parts is None:
            return None
        order, value = _best_order(parts, target.epsilon)
        if value <= goal:
            best, low = (parts, order), threshold
        else:
            high = threshold
        if high < 1.1 * low:
            break
    if best is None:
        return None
    parts, order = best
    runs = sum(count for _, count in parts)
    bulk = math.fsum(n * split.bulk_upper(order, -24.0 - math.log(runs)) for split, n in parts)
    found = LargeLosses(parts, order, bulk + 1e-12 * abs(bulk))
    return found if found.log_hidden(target.epsilon) <= goal + 1.0 else None


def _parts(terms: AnalyticTerms, threshold: float) -> tuple[tuple[TailSplit, int], ...] | None:
    """Return each loss's large part above a threshold, or None if one has none."""
    parts = []
    for loss, count in terms:
        split = loss.tail_split(threshold)
        if split is None:
            return None
        parts.append((split, count))
    return tuple(parts)


def _best_order(parts: tuple[tuple[TailSplit, int], ...], epsilon: float) -> tuple[float, float]:
    """Return the order at which Chernoff hides the outcomes without a large loss best."""

    def bound(log_order: float) -> float:
        order = math.exp(log_order)
        value = math.fsum(n * split.bulk(order) for split, n in parts)
        return value - order * epsilon + log_cks_factor(order)

    base = -math.log(epsilon)
    best = minimum(bound, base, base + 9.0, tolerance=0.02)
    return math.exp(best), bound(best)
