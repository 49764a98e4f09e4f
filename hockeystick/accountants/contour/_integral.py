"""The contour integral along one line, with every error bounded, and the choice of the line.

With ``K(z) = sum n_i ln E[exp(z L_i)]`` and any ``c > 0``,

    delta(epsilon) = (1/pi) Int_0^inf Re[exp(K(z) - epsilon z) / (z (1 + z))] dy,  z = c + i y

(Alghamdi et al. 2023, theorem 3.1). The trapezoid rule of step h on the line sums
``delta(epsilon + m W) exp(m W c)`` over all integers m, with the window ``W = 2 pi / h``. Every
term is at least 0; Chernoff's bound at a point above c covers m > 0, at a point below c (or at 0)
m < 0. The line ends where the proven decay of ``|M|`` bounds the rest of the integral by the
accuracy asked for; ``kernels.contour_sums`` counts the round-off of the sum.

Tail and bulk: rare large losses, integrated separately where others hardly let ``|M|`` fall.

With ``M = A + J`` for each run, the bulk A of small losses and the tail J of large ones, the
outcomes whose runs are all in the bulk have the transform ``prod A^n``. Chernoff's bound, at an
order of their own, bounds their whole contribution to delta; where that is negligible, the
integrand ``prod M^n - prod A^n`` is left, which decays as fast as J does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.base import Interval
from hockeystick.accountants.contour._far_outputs import AnalyticTerms, ContourTarget, FarOutputs
from hockeystick.accountants.rdp import cgf_estimates
from hockeystick.numerics import ULP, down, log_readings, up
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import OUTWARD_8
from hockeystick.privacy_loss import ContourRule, ContourValues, Decay, TailRule, TailSplit
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.atomic import complex_log1p
from hockeystick.privacy_loss.core.composition import total

Floats: TypeAlias = NDArray[np.float64]
Complexes: TypeAlias = NDArray[np.complex128]

_Number = TypeVar("_Number", float, Floats)
_Rule = TypeVar("_Rule")

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
class _AllDecay:
    """The decay of a composition: the sum of its losses'."""

    parts: list[tuple[Decay, int]]

    def exponent(self, y: float) -> float:
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


def choose_contour(
    terms: AnalyticTerms,
    c: float,
    target: ContourTarget,
    most_nodes: int,
    tails: TailAndBulk | None = None,
) -> VerticalContour | None:
    """Return a contour through c that is fine and long enough; None if it has too many nodes."""
    cgf = total(terms, c)
    deviation = math.sqrt(cgf.second_derivative + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c)))
    window, above, below = _window(terms, c, deviation, target)
    if not all(loss.quadrature_available(above) for loss, _ in terms):
        return None
    decay = tails.decay(c) if tails else _AllDecay([(loss.decay(c), n) for loss, n in terms])
    longest = most_nodes * 2.0 * math.pi / window
    log_scale = cgf.value - target.epsilon * c - target.log_delta
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
    tails: TailAndBulk | None = None,
) -> VerticalContour | None:
    """Return the contour through c, or one a little to its left that is far shorter and as good."""
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
    """Bound ``ln((1/pi) Int_y^inf exp(-b(v)) / v^2 dv)``, octave by octave; b increases."""
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
    """Return the bound ``K(c) - c epsilon + ln C(c)`` of ln delta; 0 at c = 0."""
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
    """Return the least window by Chernoff's bound at one of several orders, and that order."""
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
        """Return a bound of ln of the contribution of the bulk's outcomes to delta."""
        return self.log_bulk - self.order * epsilon + log_cks_factor(self.order)

    def decay(self, c: float) -> ComposedTailDecay:
        """Return the decay of the outcomes with a run in the tail along the line through c."""
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
    splits = []
    for loss, count in terms:
        split = loss.tail_split(threshold)
        if split is None:
            return None
        splits.append((split, count))
    return tuple(splits)


def _best_order(splits: tuple[tuple[TailSplit, int], ...], epsilon: float) -> tuple[float, float]:
    """Return the order l of the bulk's least Chernoff bound, with its ln.

    The derivative in l vanishes where ``K'(l) = epsilon + ln(1 + 1/l)``.
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


# Newton's steps before the root is bracketed, and the relative length of the last one.
_NEWTON_STEPS: Final = 8
_LAST_STEP: Final = 1e-12
# The largest relative error of delta with which an integral is used instead of Renyi bounds.
MOST_RELATIVE_ERROR: Final = 0.5
_TRIES: Final = 12
# Overflow ends as an infinite error or nan, and both count as nothing proven.
_OVERFLOW_IGNORED: Final = partial(np.errstate, all="ignore")


class LogDelta(NamedTuple):
    """delta as ``exp(log_scale)`` times a proven interval with an estimate; its derivative."""

    log_scale: float
    lower: float
    estimate: float
    upper: float
    derivative: float

    @property
    def relative_error(self) -> float:
        """The larger distance of an end from the estimate, over the estimate; inf for no number."""
        if not (self.estimate > 0.0 and math.isfinite(self.lower) and math.isfinite(self.upper)):
            return math.inf
        return max(self.upper / self.estimate - 1.0, 1.0 - self.lower / self.estimate)

    def log(self, end: str) -> float:
        """Return ln of one end; -inf where it is not positive."""
        value = float(getattr(self, end))
        return self.log_scale + math.log(value) if value > 0.0 else -math.inf

    @property
    def log_upper(self) -> float:
        """An upper bound of ln delta."""
        return self.log("upper") + OUTWARD_8 * (abs(self.log_scale) + 4.0)

    @property
    def interval(self) -> Interval:
        """Proven ends of delta."""
        lower = self.log("lower") - OUTWARD_8 * (abs(self.log_scale) + 4.0)
        middle = min(math.exp(self.log("estimate")), 1.0)
        upper = min(up(math.exp(self.log_upper)), 1.0)
        return Interval(down(math.exp(lower)), middle, upper).ordered()


@dataclass(frozen=True)
class Integral:
    """delta at any epsilon, by the sum along a line.

    At the nodes z, ``real + i imag`` is K, right to ``error``, and ``weight`` the factor of the
    exponential, right to ``weight_error``. ``aliases`` are the two orders of Chernoff's bound, each
    with an upper bound of K. K is computed once; any epsilon near the one that the line was chosen
    for is then a short sum. The bounds hold for every epsilon; they are narrow near it.
    """

    line: VerticalContour
    weight: Complexes
    weight_error: Floats
    real: Floats
    imag: Floats
    error: Floats
    aliases: Floats
    tails: TailAndBulk | None
    far: FarOutputs | None = None

    def delta(self, epsilon: float) -> LogDelta:
        """Return delta at an epsilon."""
        return LogDelta(*self.deltas(np.array([epsilon]))[:, 0].tolist())

    def deltas(self, epsilons: Floats) -> Floats:
        """Return the fields of ``LogDelta`` at any number of epsilons, a row each."""
        from hockeystick.kernels import contour_sums

        line = (self.line.c, self.line.step, self.line.truncation)
        values = self.weight, self.weight_error, self.real, self.imag, self.error
        found, growth = contour_sums.deltas(line, self.aliases, *values, epsilons)
        if self.tails is None and self.far is None:
            return found
        scale, lower, estimate, upper, derivative = found
        with _OVERFLOW_IGNORED():
            # Bounds relative to the true |M(c)| become relative to the computed one.
            if self.tails is not None:
                bulk_delta = self.tails.log_bulk_delta(epsilons) - scale
                upper = upper + growth * np.exp(np.minimum(bulk_delta, 700.0))
            if self.far is not None:
                least, middle, most, change = self.far.deltas(epsilons, scale)
                rounding = 4.0 * ULP * (np.abs(estimate) + middle)
                lower = np.maximum(lower, 0.0) + least - rounding
                estimate = estimate + middle
                upper = upper + most + rounding
                derivative = derivative + change
        return np.array([scale, lower, estimate, upper, derivative])

    def estimates(self, epsilons: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the scale, the estimate and the derivative alone, in a third of the time."""
        from hockeystick.kernels import contour_sums

        line = self.line.c, self.line.step
        values = self.weight, self.real, self.imag
        scale, estimate, derivative = contour_sums.estimates(line, *values, epsilons)
        if self.far is not None:
            with _OVERFLOW_IGNORED():
                _, middle, _, change = self.far.deltas(epsilons, scale)
                estimate, derivative = estimate + middle, derivative + change
        return scale, estimate, derivative

    def epsilon_interval(self, estimate: float, delta: float) -> Interval | None:
        """Return the proven interval around an epsilon, or None where nothing is proven."""
        least, most = log_readings(delta)
        slack = OUTWARD_8 * (abs(least) + 4.0)
        here = self.delta(estimate)
        if here.relative_error > MOST_RELATIVE_ERROR or here.derivative >= 0.0:
            return None
        margin = (here.relative_error + slack + (most - least)) * here.estimate / -here.derivative
        margin += 4.0 * OUTWARD_8 * estimate
        for _ in range(_TRIES):
            upper, lower = estimate + margin, max(estimate - margin, 0.0)
            if estimate == 0.0 and here.log("upper") <= least - slack:
                upper = 0.0
            high, low = map(LogDelta._make, self.deltas(np.array([upper, lower])).T.tolist())
            if high.log("upper") <= least - slack and (
                lower == 0.0 or low.log("lower") >= most + slack
            ):
                return Interval(lower, estimate, upper)
            margin *= 1.5
        return None

    def epsilon_at(self, log_delta: float, guess: float) -> float:
        """Return the epsilon whose estimated delta is the given one, to the last digits."""
        epsilon = guess
        for _ in range(_NEWTON_STEPS):
            here = self.delta(epsilon)
            if not (here.estimate > 0.0 and here.derivative < 0.0):
                break
            step = (here.log("estimate") - log_delta) * here.estimate / -here.derivative
            epsilon += step
            if abs(step) <= _LAST_STEP * (abs(epsilon) + 1.0 / self.line.c):
                return epsilon
        return self._epsilon_between(log_delta, guess)

    def _epsilon_between(self, log_delta: float, guess: float) -> float:
        """Return the same by bracketing, from wherever the guess may be."""

        def log_excess(epsilon: float) -> float:
            value = self.delta(epsilon).log("estimate")
            return log_delta - value if value > -math.inf else 700.0

        c = self.line.c
        return increasing_root(
            log_excess, guess, stride=0.1 / c, tolerance=1e-16 * (guess + 1.0 / c)
        )


def integrate(
    terms: AnalyticTerms,
    line: VerticalContour,
    rules: Sequence[ContourRule],
    tails: TailAndBulk | None = None,
    tail_rules: Sequence[TailRule] = (),
) -> Integral:
    """Return the integral along a line by its losses' rules; out of range its error is infinite."""
    with _OVERFLOW_IGNORED():
        size = line.last + 1
        lines = [rule.line(line.c, line.step, size) for rule in rules]
        counts = np.array([float(count) for _, count in terms])
        real = counts @ np.array([values.real for values in lines])
        imag = counts @ np.array([values.imag for values in lines])
        error = counts @ np.array([values.error for values in lines])
        error += ULP * (len(terms) + 2.0) * (np.abs(real) + np.abs(imag))
        z = np.asarray(line.c + 1j * line.step * np.arange(size), dtype=np.complex128)
        weight: Complexes = line.step / math.pi / (z * (1.0 + z))
        weight[0] *= 0.5
        weight_error = np.zeros(size)
        if tails is not None:
            factor, factor_error = _with_tail(counts, lines, line, tail_rules)
            weight_error = np.abs(weight) * factor_error
            weight *= factor
        orders = line.order_above, line.order_below
        aliases = np.array([(order, _cgf_upper(terms, rules, order)) for order in orders])
        return Integral(line, weight, weight_error, real, imag, error, aliases, tails)


def _with_tail(
    counts: Floats,
    lines: Sequence[ContourValues],
    line: VerticalContour,
    tail_rules: Sequence[TailRule],
) -> tuple[Complexes, Floats]:
    """Return ``1 - prod (1 - J/M)^n`` along a line, and a bound on its error."""
    size = line.last + 1
    exponent = np.zeros(size, dtype=np.complex128)
    error = np.zeros(size)
    for count, values, rule in zip(counts, lines, tail_rules, strict=True):
        tail = rule.line(line.c, line.step, size)
        inverse = np.exp(np.minimum(tail.scale - values.real, 300.0) - 1j * values.imag)
        ratio = (tail.real + 1j * tail.imag) * inverse
        modulus, real, imag = complex_log1p(-ratio.real, -ratio.imag)
        exponent += count * (real + 1j * imag)
        log_error = values.error + ULP * (16.0 + 4.0 * (np.abs(values.real) + abs(tail.scale)))
        relative = np.expm1(np.minimum(log_error, 700.0))
        ratio_error = tail.error * np.abs(inverse) * (1.0 + relative) + np.abs(ratio) * relative
        error += count * (1.01 * ratio_error / modulus + 8.0 * ULP * (np.abs(real) + np.abs(imag)))
    half = np.sin(0.5 * exponent.imag)
    growth = np.exp(exponent.real)
    factor = -(
        np.expm1(exponent.real) * np.cos(exponent.imag)
        - 2.0 * half * half
        + 1j * growth * np.sin(exponent.imag)
    )
    slack = growth * np.expm1(np.minimum(error, 700.0)) + 16.0 * ULP * np.abs(factor)
    return factor, slack


def rules_for(
    terms: AnalyticTerms, line: VerticalContour, target: ContourTarget
) -> list[ContourRule] | None:
    """Return the quadrature of each loss, fine enough for its count; None if one has none."""
    margin = _log_margin(terms, line, target)
    return _all(
        loss.rule(
            line.order_above,
            line.height,
            loss.cgf_estimate(line.c).value - margin - math.log(count),
        )
        for loss, count in terms
    )


def tail_rules_for(
    terms: AnalyticTerms, line: VerticalContour, target: ContourTarget, tails: TailAndBulk
) -> list[TailRule] | None:
    """Return the quadrature of each loss's tail, fine enough for its count, or None."""
    margin = _log_margin(terms, line, target)
    return _all(
        split.rule(line.c, line.height, loss.cgf_estimate(line.c).value - margin - math.log(count))
        for (split, count), (loss, _) in zip(tails.splits, terms, strict=True)
    )


def _all(rules: Iterable[_Rule | None]) -> list[_Rule] | None:
    found = []
    for rule in rules:
        if rule is None:
            return None
        found.append(rule)
    return found


def _log_margin(terms: AnalyticTerms, line: VerticalContour, target: ContourTarget) -> float:
    """Return ln of M(c) over the error allowed in one loss's M.

    An error relative to M(c) counts relative to the integrand's size, which exceeds delta.
    """
    log_integrand = total(terms, line.c).value - target.epsilon * line.c - target.log_delta
    excess = log_integrand - math.log(line.c) - math.log1p(line.c)
    return target.accuracy + 4.0 + math.log(len(terms)) + max(excess, 0.0)


def _cgf_upper(terms: AnalyticTerms, rules: Sequence[ContourRule], c: float) -> float:
    """Return an upper bound of K at a point of the real axis; at 0 it is 0."""
    if c == 0.0:
        return 0.0
    value = error = 0.0
    for (_, count), rule in zip(terms, rules, strict=True):
        one = rule.line(c, 0.0, 1)
        value += count * float(one.real[0])
        error += count * float(one.error[0])
    return value + error
