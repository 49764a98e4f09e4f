"""The line for an epsilon or a delta: a good one depends on the answer, so it takes rounds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, NamedTuple

from hockeystick.accountants.contour._far_outputs import FarMode, FarOutputs, far_mode, near_terms
from hockeystick.accountants.contour._guess import (
    epsilon_without_far_mode,
    first_guess,
    log_delta_without_far_mode,
    single_run_epsilon,
    single_run_log_delta,
)
from hockeystick.accountants.contour._integral import (
    Integral,
    integrate,
    rules_for,
    tail_rules_for,
)
from hockeystick.accountants.contour._line import (
    AnalyticTerms,
    ContourTarget,
    VerticalContour,
    cheapest_contour,
    choose_contour,
    log_chernoff,
)
from hockeystick.accountants.contour._sampled_gaussians import first_order, integral_at_once
from hockeystick.accountants.contour._tail_and_bulk import TailAndBulk, tail_and_bulk
from hockeystick.accountants.orders import (
    rough_optimal_order,
    rough_optimal_order_at,
    saddle,
    saddle_log_delta,
)
from hockeystick.privacy_loss import (
    ContourRule,
    FixedSizeGaussianLoss,
    GaussianSequenceLoss,
    TailRule,
)
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor
from hockeystick.privacy_loss.core.analytic_cgf import equivalent_terms
from hockeystick.privacy_loss.core.terms import sum_of_bounds, total


class Effort(NamedTuple):
    """How accurate an integral is to be, and how many terms it may take.

    The accuracy is the natural logarithm of what is asked of each error, relative to delta; the
    terms are nodes on the line times nodes of the losses.
    """

    accuracy: float
    most_work: int


_FINE: Final = Effort(32.0, 5_000_000)
_FAIR: Final = Effort(14.0, 5_000_000)
_COARSE: Final = Effort(6.0, 20_000_000)
_MODEST: Final = Effort(21.0, 100_000_000)
# What an integral may take in any case.
_AFFORDABLE: Final = 5_000_000
_MOST_NODES: Final = 100_000
# Losses whose lines are always summed term by term.
_TERM_BY_TERM: Final = (FixedSizeGaussianLoss, GaussianSequenceLoss)
# What is asked at most of an integral without far outputs: its round-off is seldom below.
_NEAR_ACCURACY: Final = 29.0
_ROUNDS: Final = 6
_FINE_ROUNDS: Final = 3
# A relative error of delta that ends the search.
_SUFFICIENT_ERROR: Final = 1e-9
_SUFFICIENT_FAR_ERROR: Final = 1e-8
_ROUGH_ERROR: Final = 1e-5
# One at which no coarser search does better.
_FAIR_ERROR: Final = 1e-6
# An integral is trusted no further below the epsilon that its line was chosen for, over that.
_FARTHEST_BELOW: Final = 0.1
# The same where epsilon is known to this share of 1/c, so that another line gains nothing.
_MOST_CLOSE_ERROR: Final = 1e-7
_CLOSE: Final = 0.3
# The largest relative error of an upper bound by one short line.
_MOST_RELATIVE_ERROR: Final = 0.5
# ln of a gap that the error of an estimated K does not close.
_SURELY: Final = 1e-3
# A single run's epsilon is looked for at least up to this.
_LEAST_RANGE: Final = 1.0
_OUTWARD: Final = 2.0**-50


class LineGuess(NamedTuple):
    """ln delta at an epsilon, c of a line that is good there, and which way of ``_WAYS`` led to it.

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


def guess_for_epsilon(terms: AnalyticTerms, epsilon: float) -> float:
    """Return about ln delta at an epsilon where few hits decide, unproven, without an integral."""
    return log_delta_without_far_mode(terms, epsilon, 0.0)


def single_run_guess(terms: AnalyticTerms, epsilon: float) -> float:
    """Return about ln delta of one loss alone, over its runs, at an epsilon; -inf for none."""
    return single_run_log_delta(terms, epsilon)


def is_formula_poor(terms: AnalyticTerms, epsilon: float) -> bool:
    """Return whether a far mode spoils the saddle-point formula at an epsilon."""
    return bool(terms) and far_mode(terms, saddle(terms, epsilon)) is FarMode.STRONG


def integral_for_delta(terms: AnalyticTerms, log_delta: float) -> LocatedIntegral | None:
    """Return an integral near the epsilon of a delta; None where no line is affordable or needed.

    No line is needed where a Renyi bound alone proves that epsilon is 0.
    """
    found = _short(terms, log_delta)
    if found is not None:
        return found
    order = rough_optimal_order(terms, log_delta, first_order(terms, log_delta))
    highest = (total(terms, order).value - log_delta + log_cks_factor(order)) / order
    if highest <= 0.0:
        return None
    if far_mode(terms, order) is FarMode.STRONG:
        epsilon = epsilon_without_far_mode(terms, log_delta, highest)
        found = _settled(terms, saddle(terms, epsilon, order), epsilon, log_delta)
        if found is not None:
            return found
    return _settled(terms, *first_guess(terms, log_delta, order, highest), log_delta)


def _short(terms: AnalyticTerms, log_delta: float) -> LocatedIntegral | None:
    """Return an integral along a short line that one search finds, where it is precise enough."""
    known = integral_at_once(terms, log_delta, _FINE.accuracy)
    if known is None:
        return None
    integral, epsilon, _ = known
    here = max(integral.epsilon_at(log_delta, epsilon), 0.0)
    error = integral.delta(here).relative_error
    close = abs(here - epsilon) * integral.line.c < _CLOSE
    if error < _SUFFICIENT_ERROR or (close and error < _MOST_CLOSE_ERROR):
        return LocatedIntegral(integral, here, terms)
    return None


def _settled(
    terms: AnalyticTerms, c: float, epsilon: float, log_delta: float
) -> LocatedIntegral | None:
    """Return an integral near the epsilon of a delta, from a guess of it and of its saddle."""
    start, least = epsilon, math.inf
    best: LocatedIntegral | None = None
    for again in range(_FINE_ROUNDS):
        found = _integral(terms, c, epsilon, log_delta, _FINE, weak_counts=again > 0)
        if found is None:
            break
        settled = _read(found, epsilon, log_delta)
        here, error = settled.epsilon, settled.integral.delta(settled.epsilon).relative_error
        if error < least:
            least, best = error, settled
        close = abs(here - epsilon) * found.integral.line.c < _CLOSE
        close |= here == 0.0 and found.integral.delta(0.0).log("upper") < log_delta
        if error < (_SUFFICIENT_FAR_ERROR if found.integral.far else _SUFFICIENT_ERROR) or (
            close and error < _MOST_CLOSE_ERROR
        ):
            return settled
        epsilon = max(here, _FARTHEST_BELOW * epsilon)
        c = saddle(terms, epsilon, c)
    if least < _FAIR_ERROR:
        return best
    # The guess was far off, or the line too long: coarse integrals first find epsilon roughly.
    nearer = _coarse_epsilon(terms, start, log_delta)
    if nearer is None:
        return None
    for effort in (_FINE, _MODEST) if found else (_MODEST,):
        c = saddle(terms, nearer)
        found = _integral(terms, c, nearer, log_delta, effort, weak_counts=True)
        if found is not None:
            return _read(found, nearer, log_delta)
    return None


def _read(found: LocatedIntegral, guess: float, log_delta: float) -> LocatedIntegral:
    """Return an integral with the epsilon at which it has the delta."""
    return found._replace(epsilon=max(found.integral.epsilon_at(log_delta, guess), 0.0))


def integral_for_epsilon(
    terms: AnalyticTerms,
    epsilon: float,
    *,
    quick: bool = False,
    least: float = -math.inf,
    guess: LineGuess | None = None,
) -> LocatedIntegral | None:
    """Return an integral good at an epsilon; None where no line is affordable or needed.

    No line is needed where a Renyi bound alone proves ln delta to be below ``least``. A quick
    search takes short lines only and does not split off large losses.
    """
    found = guess and _guessed(terms, epsilon, guess)
    if found:
        return found
    known = integral_at_once(terms, epsilon, _FINE.accuracy, at_epsilon=True)
    if known is not None and known[0].delta(epsilon).relative_error < _SUFFICIENT_ERROR:
        return LocatedIntegral(known[0], epsilon, terms)
    c = saddle(terms, epsilon, first_order(terms, epsilon, at_epsilon=True))
    order = rough_optimal_order_at(terms, epsilon, c)
    highest = total(terms, order).value - order * epsilon + log_cks_factor(order)
    if highest < least:
        return None
    if guess is not None:
        log_delta = min(guess.log_delta, highest)
    elif far_mode(terms, c) is FarMode.STRONG:
        log_delta = log_delta_without_far_mode(terms, epsilon, highest)
    else:
        log_delta = min(saddle_log_delta(terms, c)[1], highest)
    found, (first, sufficient) = None, _wanted(guess)
    for again, effort in enumerate((first, _COARSE, _MODEST)):
        if effort is _MODEST and found is None:
            return None
        allowed = effort._replace(most_work=0) if quick else effort
        trial = _integral(terms, c, epsilon, log_delta, allowed, weak_counts=again > 0)
        if trial is not None:
            found = trial
            here = found.integral.delta(epsilon)
            log_delta = min(max(here.log("estimate"), log_delta - 60.0), highest)
            if here.relative_error < sufficient:
                break
    return found


def _wanted(guess: LineGuess | None) -> tuple[Effort, float]:
    """Return what the first integral may take, and the relative error at which it is the last."""
    if guess is None:
        return _FINE, _SUFFICIENT_ERROR
    return (_FAIR, _ROUGH_ERROR) if guess.rough else (_FINE, _SUFFICIENT_FAR_ERROR)


def _guessed(terms: AnalyticTerms, epsilon: float, guess: LineGuess) -> LocatedIntegral | None:
    """Return the integral along a line that is guessed, where that is precise enough."""
    if guess.c is None:
        return None
    target = ContourTarget(epsilon, guess.log_delta, _FINE.accuracy)
    one = _QUADRATURES[guess.way](terms, guess.c, target, guess.c)
    if one is None or one.work > max(_FINE.most_work, _AFFORDABLE):
        return None
    found = one.locate(epsilon, guess.way)
    return found if found.integral.delta(epsilon).relative_error < _SUFFICIENT_FAR_ERROR else None


def upper_log_delta(terms: AnalyticTerms, epsilon: float, least: float = -math.inf) -> float:
    """Return a proven upper bound of ln delta at an epsilon by one short line; 0 for none.

    By Chernoff's bound alone where that is below ``least``.
    """
    known = integral_at_once(terms, epsilon, _COARSE.accuracy, at_epsilon=True)
    if known is not None:
        value = known[0].delta(epsilon)
        if value.relative_error < _MOST_RELATIVE_ERROR:
            return value.log("upper") + _OUTWARD * (abs(value.log_scale) + 4.0)
    c = saddle(terms, epsilon, first_order(terms, epsilon, at_epsilon=True))
    target = ContourTarget(epsilon, saddle_log_delta(terms, c)[1], _COARSE.accuracy)
    if far_mode(terms, c) is not FarMode.STRONG:
        quadratures = _quadratures(terms, choose_contour(terms, c, target, _MOST_NODES), target)
    elif log_chernoff(total(terms, c).value, c, epsilon) < least - _SURELY:
        bound = sum_of_bounds(terms, c)
        return log_chernoff(bound, c, epsilon) + _OUTWARD * (abs(bound) + c * epsilon + 4.0)
    else:
        quadratures = _near(terms, c, target) or _plain(terms, c, target)
    if quadratures is None or quadratures.work > _AFFORDABLE:
        return 0.0
    value = quadratures.integrate().delta(epsilon)
    if not value.relative_error < _MOST_RELATIVE_ERROR:
        return 0.0
    log_delta = value.log("upper")
    return log_delta + _OUTWARD * (abs(value.log_scale) + 4.0)


def _coarse_epsilon(terms: AnalyticTerms, guess: float, log_delta: float) -> float | None:
    """Return epsilon to a fraction of 1/c, by coarse integrals; None where none is affordable."""
    epsilon = max(guess, single_run_epsilon(terms, log_delta, max(guess, _LEAST_RANGE)))
    for _ in range(_ROUNDS):
        found = _integral(terms, saddle(terms, epsilon), epsilon, log_delta, _COARSE)
        if found is None:
            return None
        # An integral whose line was chosen for one epsilon is wide far below it.
        here = max(found.integral.epsilon_at(log_delta, epsilon), 0.6 * epsilon)
        change = abs(here - epsilon) * found.integral.line.c
        epsilon = here
        if change < _CLOSE:
            break
    return epsilon


def _integral(
    terms: AnalyticTerms,
    c: float,
    epsilon: float,
    log_delta: float,
    effort: Effort,
    *,
    weak_counts: bool = False,
) -> LocatedIntegral | None:
    """Return the integral along the cheapest line near the saddle, or None for too much work.

    ``_AFFORDABLE`` work is always allowed, also where ``most_work`` is 0. A weak far mode counts
    as a strong one where a plain line has turned out to be imprecise.
    """
    target = ContourTarget(epsilon, log_delta, effort.accuracy)
    mode = far_mode(terms, c)
    ways = _WAYS[FarMode.STRONG if weak_counts and mode else mode]
    best: _Quadratures | None = None
    best_way = ""
    for way, enough in ways if effort.most_work > 0 else ways[:-1]:
        one = _QUADRATURES[way](terms, c, target, None)
        if one is not None and (best is None or one.work < best.work):
            best, best_way = one, way
        if best is not None and best.work <= enough:
            break
    if best is None or best.work > max(effort.most_work, _AFFORDABLE):
        return None
    return best.locate(epsilon, best_way)


class _Quadratures(NamedTuple):
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
def _plain(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> _Quadratures | None:
    """Return the quadratures along the cheapest line near c."""
    choose = cheapest_contour if known is None else choose_contour
    return _quadratures(terms, choose(terms, known or c, target, _MOST_NODES), target)


def _near(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> _Quadratures | None:
    """Return those without the far outputs, along the cheapest line near their own saddle."""
    modest = replace(target, accuracy=min(target.accuracy, _NEAR_ACCURACY))
    split = near_terms(terms, modest)
    if split is None:
        return None
    start = first_order(split.terms, target.log_delta)
    c = known or saddle(split.terms, target.epsilon, start)
    found = _plain(split.terms, c, modest, known)
    return found and found._replace(far=split.far)


def _rare(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> _Quadratures | None:
    """Return those with the tails alone, without the far outputs where these can be taken out."""
    modest = replace(target, accuracy=min(target.accuracy, _NEAR_ACCURACY))
    split = near_terms(terms, modest)
    near = known or (saddle(split.terms, target.epsilon, c) if split else c)
    found = split and _tail(split.terms, near, modest)
    return found._replace(far=split.far) if split and found else _tail(terms, known or c, target)


def _tail(terms: AnalyticTerms, c: float, target: ContourTarget) -> _Quadratures | None:
    """Return those with the tails of rare large losses alone, along the cheapest line near c."""
    tails = tail_and_bulk(terms, target)
    line = tails and choose_contour(terms, c, target, _MOST_NODES, tails)
    return _quadratures(terms, line, target, tails) if line else None


def _quadratures(
    terms: AnalyticTerms,
    line: VerticalContour | None,
    target: ContourTarget,
    tails: TailAndBulk | None = None,
) -> _Quadratures | None:
    """Return a contour with its quadratures, or None where there is no contour."""
    if line is None:
        return None
    rules = rules_for(terms, line, target)
    tail_rules = tail_rules_for(terms, line, target, tails) if tails else []
    if rules is None or tail_rules is None:
        return None
    return _Quadratures(terms, line, rules, tails, tail_rules)


_QUADRATURES: Final = {"plain": _plain, "near": _near, "rare": _rare}
# What is tried in turn, and the work at which the search for a shorter sum ends.
_WAYS: Final = {
    FarMode.NONE: (("plain", _AFFORDABLE), ("rare", 0)),
    FarMode.WEAK: (("plain", _AFFORDABLE), ("near", _AFFORDABLE), ("rare", 0)),
    FarMode.STRONG: (("near", _AFFORDABLE), ("plain", _AFFORDABLE), ("rare", 0)),
}
