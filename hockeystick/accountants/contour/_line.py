"""The choice of the vertical line: its real part, its step and its height.

The trapezoid rule of step h on the line ``Re z = c`` sums ``delta(epsilon + m W) exp(m W c)`` over
all integers m, with the window ``W = 2 pi / h``. Every term is at least 0; Chernoff's bound at a
point above c covers m > 0, at a point below c (or at 0) m < 0. The line ends where the proven decay
of ``|M|`` bounds the rest of the integral by the accuracy asked for.

Rare large losses, integrated separately where small losses hardly let ``|M|`` fall.

With ``M = A + J`` for each loss (bulk and tail: small and large losses), the outcomes without any
large loss have the transform ``prod A^n``. Chernoff's bound, at an order of their own, bounds their
whole contribution to delta; where that is negligible, the integrand ``prod M^n - prod A^n`` is
left, which decays as fast as J does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.orders import cgf_estimates
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss import AnalyticLoss, Decay, TailSplit
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.terms import total

_Number = TypeVar("_Number", float, NDArray[np.float64])
AnalyticTerms: TypeAlias = Sequence[tuple[AnalyticLoss, int]]

# Chernoff's orders on either side of c, by standard deviations from it and by multiples of it, and
# the multiples of c at which lines further left are tried.
_DEVIATIONS_ABOVE: Final = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
_FACTORS_ABOVE: Final = (1.1, 1.3, 1.7, 2.5)
_DEVIATIONS_BELOW: Final = (1.0, 2.0, 4.0, 8.0, math.inf)
_FACTORS_LEFT: Final = (0.94, 0.86, 0.77, 0.68, 0.58, 0.48)
_DOUBLINGS: Final = 64
# The least window, over 1/c.
_LEAST_WINDOW: Final = 0.5
# No line is higher: the octaves beyond are still within the range of floats.
_HIGHEST: Final = 1e200
# The number of orders that are evaluated together.
_BATCH: Final = 5
# A line of more nodes is compared with others; ln of the precision that another one may cost.
_LONG_LINE: Final = 150
_MOST_PENALTY: Final = 10.0
# The number of worse lines in a row that ends the comparison.
_TOO_MANY_WORSE: Final = 2


@dataclass(frozen=True, slots=True)
class ContourTarget:
    """The epsilon and delta that the contour is chosen for, to exp(-accuracy) of delta."""

    epsilon: float
    log_delta: float
    accuracy: float


class HasDecay(Protocol):
    """A transform with a proven decay: that of the outcomes with a large loss."""

    def decay(self, c: float) -> Decay:
        """Return the decay, along the line through c, of the transform of a large loss."""
        ...


@dataclass(frozen=True, slots=True)
class _AllDecay:
    """The decay of a composition: the sum of its losses'."""

    parts: list[tuple[Decay, int]]

    def exponent(self, y: float) -> float:
        """Return the sum of the exponents."""
        return math.fsum(count * decay.exponent(y) for decay, count in self.parts)


@dataclass(frozen=True, slots=True)
class VerticalContour:
    """A vertical contour: nodes ``c + i k step``, k = 0..last, and Chernoff's orders.

    What is beyond its end is at most ``truncation``, relative to ``|M(c)| exp(-c epsilon)``.
    """

    c: float
    order_above: float
    order_below: float
    step: float
    last: int
    truncation: float

    @property
    def height(self) -> float:
        """The imaginary part at which the line ends."""
        return self.step * self.last

    @property
    def window(self) -> float:
        """The distance in epsilon at which the trapezoid rule repeats itself."""
        return 2.0 * math.pi / self.step


def choose_contour(
    terms: AnalyticTerms,
    c: float,
    target: ContourTarget,
    most_nodes: int,
    tails: HasDecay | None = None,
) -> VerticalContour | None:
    """Return a contour through c that is fine and long enough; None if it has too many nodes."""
    k = total(terms, c)
    deviation = math.sqrt(k.second_derivative + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c)))
    window, above, below = _window(terms, c, deviation, target)
    if not all(loss.quadrature_available(above) for loss, _ in terms):
        return None
    decay = tails.decay(c) if tails else _AllDecay([(loss.decay(c), n) for loss, n in terms])
    longest = most_nodes * 2.0 * math.pi / window
    log_scale = k.value - target.epsilon * c - target.log_delta
    height = _sufficient_height(decay, 2.0 / deviation, longest, log_scale, target.accuracy)
    if height is None:
        return None
    step = 2.0 * math.pi / window
    last = math.ceil(height / step)
    truncation = math.exp(min(log_truncation(decay, step * last), 700.0))
    return VerticalContour(c, above, below, step, last, truncation)


def cheapest_contour(
    terms: AnalyticTerms,
    c: float,
    target: ContourTarget,
    most_nodes: int,
    tails: HasDecay | None = None,
) -> VerticalContour | None:
    """Return the contour through c, or one further left that is far shorter and costs few digits.

    Where rare large losses dominate beyond some order, the saddle is next to that order, and a
    little to its left a far shorter line gives the same answer.
    """
    best = choose_contour(terms, c, target, most_nodes, tails)
    if best is not None and best.last <= _LONG_LINE:
        return best
    log_integrand = total(terms, c).value - target.epsilon * c
    least, worse = _score(best, 0.0), 0
    for factor in _FACTORS_LEFT:
        left = factor * c
        penalty = (
            total(terms, left).value
            - target.epsilon * left
            - log_integrand
            - 2.0 * math.log(factor)
        )
        if penalty > _MOST_PENALTY:
            break
        other = choose_contour(terms, left, target, most_nodes, tails)
        if _score(other, penalty) < least:
            best, least, worse = other, _score(other, penalty), 0
        elif best is not None:
            worse += 1
        if worse == _TOO_MANY_WORSE:
            break
    return best


def _score(line: VerticalContour | None, penalty: float) -> float:
    """Return the cost of a line: the logarithm of its nodes, and the penalty for lost digits."""
    return math.inf if line is None else math.log(line.last) + 0.2 * penalty


def log_truncation(decay: Decay, y: float) -> float:
    """Bound ``ln((1/pi) Int_y^inf exp(-b(v)) / v^2 dv)``, octave by octave.

    The exponent b increases, so that beyond the last octave the integral is at most that octave's.
    """
    logs: list[float] = []
    for _ in range(_DOUBLINGS):
        logs.append(-decay.exponent(y) - math.log(2.0 * math.pi * y))
        if logs[-1] < logs[0] - 4.0:
            break
        y *= 2.0
    logs[-1] += math.log(2.0)
    top = max(logs)
    return top + math.log(math.fsum(math.exp(term - top) for term in logs)) + 1e-12


def log_chernoff(value: float, c: float, epsilon: _Number) -> _Number:
    """Return the bound ``K(c) - c epsilon + ln kappa(c)`` of ln delta; 0 at c = 0."""
    return value - c * epsilon + log_cks_factor(c)


def _window(
    terms: AnalyticTerms, c: float, deviation: float, target: ContourTarget
) -> tuple[float, float, float]:
    """Return the least window whose aliases are below the accuracy, and Chernoff's orders."""
    orders_above = sorted(
        {c + factor / deviation for factor in _DEVIATIONS_ABOVE}
        | {factor * c for factor in _FACTORS_ABOVE}
    )
    orders_below = sorted(
        {max(c - factor / deviation, 0.0) for factor in _DEVIATIONS_BELOW}, reverse=True
    )
    window_up, above = _least_window(terms, c, orders_above, target)
    window_down, below = _least_window(terms, c, orders_below, target)
    # A line through c is no finer for a window below this.
    return max(window_up, window_down, _LEAST_WINDOW / c), above, below


def _least_window(
    terms: AnalyticTerms, c: float, points: list[float], target: ContourTarget
) -> tuple[float, float]:
    """Return the least window by Chernoff's bound at one of several orders, and that order.

    Orders further from c, whose K takes longer, are tried only if the last one so far is best.
    """
    best = (math.inf, points[0])
    for start in range(0, len(points), _BATCH):
        batch = points[start : start + _BATCH]
        positive = [point for point in batch if point > 0.0]
        known = dict(zip(positive, cgf_estimates(terms, positive), strict=True)) if positive else {}
        for point in batch:
            value = log_chernoff(known.get(point, 0.0), point, target.epsilon)
            excess = value - target.log_delta + target.accuracy
            if point != c:
                best = min(best, (excess / abs(point - c), point))
        if best[1] != batch[-1]:
            break
    return best


def _sufficient_height(
    decay: Decay, start: float, longest: float, log_scale: float, accuracy: float
) -> float | None:
    """Return a height at which the line may end, or None if it exceeds the longest allowed."""

    def excess(y: float) -> float:
        return log_truncation(decay, y) + log_scale + accuracy

    low = high = start
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
        if high > min(2.0 * longest, _HIGHEST):
            return None
    for _ in range(5 if high > low else 0):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return high if high <= longest else None


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
