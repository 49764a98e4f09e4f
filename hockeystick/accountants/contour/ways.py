"""The ways to an integral: along a plain line, without the far outputs, of the tails alone.

Losses known between two pairs, an attained and a dominating one, both with an analytic cgf.

Under replace-one adjacency, say, each of many runs has the larger loss of both directions, which
no data set attains in all of them. The composition of dominating pairs dominates that of the plan,
which dominates that of attained pairs (Zhu, Dong and Wang 2022, theorem 10): epsilon and delta are
at most those of the former and at least those of the latter.

Gaussian-smoothed bounds, for plans whose transform does not decay along a line.

Let ``delta_w`` belong to the plan and one release more, of a Gaussian of ``mu = w``. Releasing more
never costs less, so that ``delta <= delta_w``. And with R the likelihood ratio under Q and
``x = e^eps``, ``delta_w`` is the mean over R of the Black-Scholes price of a call of strike x and
volatility w, whose second derivative in w is at least ``-(w/4) sqrt(R x / 2 pi) exp(-m^2/2w^2)``,
``m = ln(R/x)``; integrated twice,

    delta >= 2 delta_w - delta_2w - w^3/10 E_P[exp(-m/2 - m^2/8w^2)],

and the last mean is at most ``exp(K(c) - c eps + 2 w^2 (c + 1/2)^2)``. Both are off by about
``w^2 c (c+1)``, relative to delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from hockeystick.accountants.base import Interval, SettledInterval
from hockeystick.accountants.contour._far_outputs import (
    LEAST_LOG_WEIGHT,
    SLACK,
    STRONG,
    FarMode,
    FarOutputs,
    far_mode,
    near_terms,
)
from hockeystick.accountants.contour._integral import Integral, integrate, rules_for, tail_rules_for
from hockeystick.accountants.contour._line import (
    AnalyticTerms,
    ContourTarget,
    TailAndBulk,
    VerticalContour,
    cheapest_contour,
    choose_contour,
    tail_and_bulk,
)
from hockeystick.accountants.orders import optimal_order, optimal_order_at, saddle
from hockeystick.numerics import Ball, down, log_readings, up
from hockeystick.numerics.roots import falling_crossing
from hockeystick.privacy_loss import (
    AnalyticLoss,
    ContourRule,
    FixedSizeGaussianLoss,
    GaussianLoss,
    GaussianSequenceLoss,
    SampledGaussianLoss,
    TailRule,
    Terms,
)
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.atomic import equivalent_terms
from hockeystick.privacy_loss.core.terms import total

# Ends of this relative width are as sharp as those of a fine lattice.
_SHARP: Final = 1e-6
# A transform that falls by less than exp of this, far out, has no end that is sharp: the unproven
# estimate by which no line is sought in vain.
_LEAST_DECAY: Final = 20.0
_FAR_OUT: Final = 1e6


class AnalyticPairs(NamedTuple):
    """The attained and the dominating losses of one direction, with their counts."""

    attained: Terms
    dominating: Terms

    @classmethod
    def of(cls, terms: Terms) -> AnalyticPairs | None:
        """Return the pairs; None where they are the same, or one has no analytic cgf.

        A loss that has one of its own is exact.
        """
        found: list[Terms] = []
        if all(isinstance(loss, AnalyticLoss) for loss, _ in terms):
            return None
        known = [loss if isinstance(loss, AnalyticLoss) else loss.attained for loss, _ in terms]
        for pairs in ([(loss, n) for loss, (_, n) in zip(known, terms, strict=True)], terms):
            analytic = [(loss.analytic if loss else None, n) for loss, n in pairs]
            found.append(tuple((loss, n) for loss, n in analytic if loss is not None))
            if len(found[-1]) < len(terms):
                return None
        return cls(*found)

    def between(self, order: float, read: Callable[[Terms], Interval]) -> Interval | None:
        """Return the interval between the two pairs; None where an end is not sharp.

        ``order`` is about the one that is best for the dominating losses.
        """
        if self._decay(order) < _LEAST_DECAY:
            return None
        upper = read(self.dominating)
        if not _is_sharp(upper):
            return None
        lower = read(self.attained)
        return SettledInterval(lower.lower, upper.upper, upper.upper) if _is_sharp(lower) else None

    def _decay(self, order: float) -> float:
        """Return about how far ``ln|M|`` of the dominating losses falls along a vertical line."""
        losses = [(one, n) for loss, n in self.dominating if (one := loss.analytic)]
        if not all(one.quadrature_available(order) for one, _ in losses):
            return 0.0
        return math.fsum(n * one.decay(order).exponent(_FAR_OUT) for one, n in losses)


def _is_sharp(interval: Interval) -> bool:
    """Return whether no effort would change an end by much."""
    return interval.upper < math.inf and interval.is_narrow(_SHARP)


# Nodes of the line times nodes of a loss: with more, a better line is worth a search.
_MOST_WORK: Final = 150_000.0
# The least and the largest c that a search begins with.
_LEAST_ORDER: Final = 1e-3
_LARGEST_ORDER: Final = 1e6


def integral_at_once(
    terms: AnalyticTerms, goal: float, accuracy: float, *, at_epsilon: bool = False
) -> tuple[Integral, float, float] | None:
    """Return an integral for an epsilon or for ln delta, with the two; None where none is short.

    Its errors aim for ``exp(-accuracy)`` of delta. None is made of other losses than
    Poisson-subsampled Gaussians.
    """
    losses = [loss for loss, _ in terms if isinstance(loss, SampledGaussianLoss)]
    if len(losses) < len(terms) or len({loss.removing for loss in losses}) > 1:
        return None
    from hockeystick.kernels import contour_sums, sampled_gaussian_contour

    counts = np.array([float(count) for _, count in terms])
    line, real, imag, error = sampled_gaussian_contour.contour(
        np.array([loss.p for loss in losses]),
        np.array([loss.mu for loss in losses]),
        counts,
        losses[0].removing,
        goal,
        at_epsilon,
        first_order(terms, goal, at_epsilon=at_epsilon),
        accuracy,
        _MOST_WORK * len(losses),
        (STRONG, LEAST_LOG_WEIGHT, SLACK),
    )
    if not line.size:
        return None
    c, epsilon, log_delta, above, below, upper_above, upper_below, step, truncation = line.tolist()
    contour = VerticalContour(c, above, below, step, real.size - 1, truncation)
    weight = contour_sums.weights(c, step, real.size)
    ends = Ball(upper_above, 0.0), Ball(upper_below, 0.0)
    nothing = np.zeros(real.size)
    return Integral(contour, weight, nothing, real, imag, error, *ends, None), epsilon, log_delta


def first_order(terms: AnalyticTerms, goal: float, *, at_epsilon: bool = False) -> float:
    """Return about the best order for an epsilon or for ln delta, to begin a search with.

    It is the saddle of a Gaussian of the same chi-square divergence, or the order beyond which hits
    decide a sampled Gaussian's K, where ``p exp(c mu^2 / 2)`` is 1, if that is less.
    """
    square = sum(loss.clt_mu_squared * count for loss, count in terms)
    if not 0.0 < square < math.inf:
        return 1.0
    root = math.sqrt(square)
    order = goal / square - 0.5 if at_epsilon else math.sqrt(2.0 * max(-goal, 1.0)) / root
    order = min(max(order, min(1.0, 1.0 / root), _LEAST_ORDER), _LARGEST_ORDER)
    hits = [
        -2.0 * math.log(loss.p) / (loss.mu * loss.mu)
        for loss, _ in terms
        if isinstance(loss, SampledGaussianLoss) and loss.removing
    ]
    return min([order, *hits])


_OUTWARD: Final = 2.0**-48
# The largest width of the smoothing in units of 1/c, the most nodes, and the most terms summed.
_LARGEST_WIDTH: Final = 0.1
_MOST_NODES: Final = 1_500_000
_SMOOTHED_MOST_WORK: Final = 300_000_000
# The largest order that a line is chosen at.
_SMOOTHED_LARGEST_ORDER: Final = 1e8
# Each error of an integral, relative to that of the smoothing.
_QUADRATURE_SHARE: Final = 0.01
_FIRST_ERROR: Final = 1e-2
_LAST_ERRORS: Final = (1.0, 0.1, 0.01)


@dataclass(frozen=True)
class Smoothed:
    """The plan with a Gaussian of ``mu = w`` more, and with one of twice as much."""

    width: float
    once: Integral
    twice: Integral

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ln delta."""
        return _log_upper(self.once, epsilon) + self._slack(epsilon)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ln delta; -inf for none."""
        one, two = self.once.delta(epsilon).log("lower"), _log_upper(self.twice, epsilon)
        if not -math.inf < one <= two < math.inf:
            return -math.inf
        value = (
            2.0
            - math.exp(min(two - one, 1.0))
            - math.exp(min(self._log_remainder(epsilon) - one, 1.0))
        )
        value -= _OUTWARD * (abs(one) + 4.0)
        return one + math.log(value) - self._slack(epsilon) if value > 0.0 else -math.inf

    def _log_remainder(self, epsilon: float) -> float:
        """Return ln of the bound ``w^3/10 E[...]`` of the remainder."""
        c, w = self.once.line.c, self.width
        k = float(self.once.real[0] + self.once.error[0])
        return k - c * epsilon + math.log(0.1 * w**3) + 2.0 * (w * (c + 0.5)) ** 2

    def _slack(self, epsilon: float) -> float:
        """Return a bound of the round-off of the logarithms."""
        scale = abs(float(self.once.real[0])) + self.once.line.c * epsilon
        return _OUTWARD * (scale + 4.0)


def smoothed_delta(terms: AnalyticTerms, epsilon: float, tolerance: float) -> Interval | None:
    """Return delta to about a relative width, None where that takes too long a line."""
    order = optimal_order_at(terms, epsilon)
    log_delta = total(terms, order).value - order * epsilon + log_cks_factor(order)
    found: Interval | None = None
    for delta_error in _delta_errors(tolerance):
        pair = _smoothed(terms, epsilon, log_delta, delta_error)
        if pair is None:
            return found
        lower, upper = pair.lower(epsilon), pair.upper(epsilon)
        if not upper < math.inf:
            return found
        ends = down(math.exp(min(lower, 0.0))), min(up(math.exp(min(upper, 0.0))), 1.0)
        new = Interval(ends[0], 0.5 * (ends[0] + ends[1]), ends[1])
        found = new if found is None else new.within(found)
        if found.relative_width <= tolerance:
            return found
        log_delta = upper
    return found


def smoothed_epsilon(terms: AnalyticTerms, delta: float, tolerance: float) -> Interval | None:
    """Return epsilon to about a relative width, None where that takes too long a line."""
    log_delta = math.log(delta)
    order = optimal_order(terms, log_delta)
    epsilon = (total(terms, order).value - log_delta + log_cks_factor(order)) / order
    if epsilon <= 0.0:
        return None
    found: Interval | None = None
    for delta_error in _delta_errors(tolerance):
        gain = max(order * epsilon, 1.0)
        pair = _smoothed(terms, epsilon, log_delta, min(delta_error * gain, _FIRST_ERROR))
        new = pair and _epsilons(pair, epsilon, delta)
        if not new:
            return found
        found = new if found is None else new.within(found)
        if found.relative_width <= tolerance:
            return found
        epsilon = found.upper
    return found


def _delta_errors(tolerance: float) -> tuple[float, ...]:
    """Return the relative errors of delta to aim for in turn, up to the tolerance and below."""
    between = math.sqrt(_FIRST_ERROR * tolerance)
    return (_FIRST_ERROR, between, *(share * tolerance for share in _LAST_ERRORS))


def _smoothed(
    terms: AnalyticTerms, epsilon: float, log_delta: float, delta_error: float
) -> Smoothed | None:
    """Return both integrals, for about a relative error of delta; None if they take too long."""
    c = saddle(terms, epsilon)
    if c > _SMOOTHED_LARGEST_ORDER:
        return None
    # A width that is a short fraction makes the added noise an exact number.
    width = min(math.sqrt(delta_error / (3.0 * c * (c + 1.0))), _LARGEST_WIDTH / c)
    accuracy = -math.log(_QUADRATURE_SHARE * delta_error)
    integrals = []
    for factor in (1, 2):
        added = GaussianLoss(1 / (factor * Fraction(width)))
        both = (*terms, (added, 1))
        target = ContourTarget(epsilon, log_delta, accuracy)
        line = choose_contour(both, saddle(both, epsilon), target, _MOST_NODES)
        rules = line and rules_for(both, line, target)
        if (
            not line
            or not rules
            or line.last * sum(one.nodes for one in rules) > _SMOOTHED_MOST_WORK
        ):
            return None
        integrals.append(integrate(both, line, rules))
    return Smoothed(width, *integrals)


def _log_upper(integral: Integral, epsilon: float) -> float:
    """Return ln of the upper end; inf where round-off or overflow leaves none."""
    found = integral.delta(epsilon)
    return found.log("upper") if 0.0 < found.upper < math.inf else math.inf


def _epsilons(pair: Smoothed, guess: float, delta: float) -> Interval | None:
    """Return the proven ends of epsilon, None where the upper one is not found."""
    least, most = log_readings(delta)
    slack = _OUTWARD * (abs(least) + 4.0)
    if pair.upper(0.0) <= least - slack:
        return Interval.point(0.0)
    near = {"stride": 0.1 / pair.once.line.c, "tolerance": 1e-15 * guess}
    upper = falling_crossing(lambda eps: pair.upper(eps) - least + slack, guess, 1.0, **near)
    lower = falling_crossing(lambda eps: pair.lower(eps) - most - slack, guess, -1.0, **near)
    return Interval(lower, upper, upper) if upper < math.inf else None


# What an integral may take in any case.
AFFORDABLE: Final = 5_000_000
MOST_NODES: Final = 100_000
# Losses whose lines are always summed term by term.
_TERM_BY_TERM: Final = (FixedSizeGaussianLoss, GaussianSequenceLoss)
# What is asked at most of an integral without far outputs: its round-off is seldom below.
_NEAR_ACCURACY: Final = 29.0


class Effort(NamedTuple):
    """How accurate an integral is to be, and how many terms it may take.

    The accuracy is the natural logarithm of what is asked of each error, relative to delta; the
    terms are nodes on the line times nodes of the losses.
    """

    accuracy: float
    most_work: int


class LineGuess(NamedTuple):
    """ln delta at an epsilon, c of a line that is good there, and which way led to it.

    Without a c every line is looked at. Rough says that six digits are enough.
    """

    log_delta: float
    c: float | None = None
    way: str = ""
    rough: bool = False


class LocatedIntegral(NamedTuple):
    """An integral, the epsilon that its line was chosen for, and the losses along the line."""

    integral: Integral
    epsilon: float
    terms: AnalyticTerms
    way: str = ""

    def guess(self, log_delta: float) -> LineGuess:
        """Return its line as the guess for a composition that is nearly the same."""
        return LineGuess(log_delta, self.integral.line.c if self.way else None, self.way)


def cheapest_integral(
    terms: AnalyticTerms,
    c: float,
    epsilon: float,
    log_delta: float,
    effort: Effort,
    *,
    weak_counts: bool = False,
) -> LocatedIntegral | None:
    """Return the integral along the cheapest line near the saddle, or None for too much work.

    ``AFFORDABLE`` work is always allowed, also where ``most_work`` is 0. A weak far mode counts
    as a strong one where a plain line has turned out to be imprecise.
    """
    target = ContourTarget(epsilon, log_delta, effort.accuracy)
    mode = far_mode(terms, c)
    ways = _WAYS[FarMode.STRONG if weak_counts and mode else mode]
    best: Quadratures | None = None
    best_way = ""
    for way, enough in ways if effort.most_work > 0 else ways[:-1]:
        one = QUADRATURES[way](terms, c, target, None)
        if one is not None and (best is None or one.work < best.work):
            best, best_way = one, way
        if best is not None and best.work <= enough:
            break
    if best is None or best.work > max(effort.most_work, AFFORDABLE):
        return None
    return best.locate(epsilon, best_way)


class Quadratures(NamedTuple):
    """A contour with the losses that it is for, their quadratures, and what is apart."""

    terms: AnalyticTerms
    line: VerticalContour
    rules: list[ContourRule]
    tails: TailAndBulk | None
    tail_rules: list[TailRule]
    far: FarOutputs | None = None

    @property
    def work(self) -> int:
        """The number of terms of the integral's sum."""
        last = self.line.last
        work = sum(equivalent_terms(one.nodes, last) for one in self.tail_rules)
        for (loss, _), rule in zip(self.terms, self.rules, strict=True):
            slow = isinstance(loss, _TERM_BY_TERM)
            work += rule.nodes * last if slow else equivalent_terms(rule.nodes, last)
        return work

    def integrate(self) -> Integral:
        """Return the integral."""
        found = integrate(self.terms, self.line, self.rules, self.tails, self.tail_rules)
        return replace(found, far=self.far)

    def locate(self, epsilon: float, way: str) -> LocatedIntegral:
        """Return the integral for an epsilon, with the way that led to its line."""
        return LocatedIntegral(self.integrate(), epsilon, self.terms, way)


# In each of these, ``known`` is the c of a line if it is known to be good, and c is the saddle.
def plain(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> Quadratures | None:
    """Return the quadratures along the cheapest line near c."""
    choose = cheapest_contour if known is None else choose_contour
    return quadratures_along(terms, choose(terms, known or c, target, MOST_NODES), target)


def near(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> Quadratures | None:
    """Return those without the far outputs, along the cheapest line near their own saddle."""
    modest = replace(target, accuracy=min(target.accuracy, _NEAR_ACCURACY))
    split = near_terms(terms, modest)
    if split is None:
        return None
    start = first_order(split.terms, target.log_delta)
    c = known or saddle(split.terms, target.epsilon, start)
    found = plain(split.terms, c, modest, known)
    return found and found._replace(far=split.far)


def _rare(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> Quadratures | None:
    """Return those with the tails alone, without the far outputs where these can be taken out."""
    modest = replace(target, accuracy=min(target.accuracy, _NEAR_ACCURACY))
    split = near_terms(terms, modest)
    near = known or (saddle(split.terms, target.epsilon, c) if split else c)
    found = split and _tail(split.terms, near, modest)
    return found._replace(far=split.far) if split and found else _tail(terms, known or c, target)


def _tail(terms: AnalyticTerms, c: float, target: ContourTarget) -> Quadratures | None:
    """Return those with the tails of rare large losses alone, along the cheapest line near c."""
    tails = tail_and_bulk(terms, target)
    line = tails and choose_contour(terms, c, target, MOST_NODES, tails)
    return quadratures_along(terms, line, target, tails) if line else None


def quadratures_along(
    terms: AnalyticTerms,
    line: VerticalContour | None,
    target: ContourTarget,
    tails: TailAndBulk | None = None,
) -> Quadratures | None:
    """Return a contour with its quadratures, or None where there is no contour."""
    if line is None:
        return None
    rules = rules_for(terms, line, target)
    tail_rules = tail_rules_for(terms, line, target, tails) if tails else []
    if rules is None or tail_rules is None:
        return None
    return Quadratures(terms, line, rules, tails, tail_rules)


QUADRATURES: Final = {"plain": plain, "near": near, "rare": _rare}
# What is tried in turn, and the work at which the search for a shorter sum ends.
_WAYS: Final = {
    FarMode.NONE: (("plain", AFFORDABLE), ("rare", 0)),
    FarMode.WEAK: (("plain", AFFORDABLE), ("near", AFFORDABLE), ("rare", 0)),
    FarMode.STRONG: (("near", AFFORDABLE), ("plain", AFFORDABLE), ("rare", 0)),
}
