"""The line for an epsilon or a delta: a good one depends on the answer, so it takes rounds.

An integral goes along the whole line, without the far outputs, or over the tails alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from heapq import nlargest
from typing import Final, NamedTuple

import numpy as np

from hockeystick.accountants.contour._far_outputs import (
    LEAST_LOG_WEIGHT,
    SLACK,
    STRONG,
    AnalyticTerms,
    ContourTarget,
    FarMode,
    FarOutputs,
    far_mode,
    near_at,
    near_terms,
    truncation,
)
from hockeystick.accountants.contour._integral import (
    MOST_RELATIVE_ERROR,
    Integral,
    TailAndBulk,
    VerticalContour,
    cheapest_contour,
    choose_contour,
    integrate,
    log_chernoff,
    rules_for,
    tail_and_bulk,
    tail_rules_for,
)
from hockeystick.accountants.rdp import (
    rough_optimal_order,
    rough_optimal_order_at,
    saddle,
    saddle_log_delta,
    saddle_terms,
)
from hockeystick.numerics.roots import increasing_root_by_newton
from hockeystick.numerics.rounding import OUTWARD_8
from hockeystick.privacy_loss import (
    AnalyticLoss,
    ContourRule,
    FixedSizeGaussianLoss,
    GaussianSequenceLoss,
    SampledGaussianLoss,
    TailRule,
)
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.atomic import equivalent_terms
from hockeystick.privacy_loss.core.composition import sum_of_bounds, total

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
    runs, sides = [], set()
    for loss, count in terms:
        if not isinstance(loss, SampledGaussianLoss):
            return None
        runs.append((loss.p, loss.mu, float(count)))
        sides.add(loss.removing)
    if len(sides) > 1:
        return None
    from hockeystick.kernels import contour_sums, sampled_gaussian_contour

    p, mu, counts = np.array(list(zip(*runs, strict=True)))
    line, real, imag, error = sampled_gaussian_contour.contour(
        p,
        mu,
        counts,
        sides.pop(),
        goal,
        at_epsilon,
        first_order(terms, goal, at_epsilon=at_epsilon),
        accuracy,
        _MOST_WORK * len(runs),
        (STRONG, LEAST_LOG_WEIGHT, SLACK),
    )
    if not line.size:
        return None
    c, epsilon, log_delta, above, below, upper_above, upper_below, step, truncation = line.tolist()
    contour = VerticalContour(c, above, below, step, real.size - 1, truncation)
    weight, nothing = contour_sums.weights(c, step, real.size), np.zeros(real.size)
    aliases = np.array([(above, upper_above), (below, upper_below)])
    return Integral(contour, weight, nothing, real, imag, error, aliases, None), epsilon, log_delta


def first_order(terms: AnalyticTerms, goal: float, *, at_epsilon: bool = False) -> float:
    """Return about the best order for an epsilon or for ln delta, to begin a search with.

    It is the saddle of a Gaussian of the same chi-square divergence, or the order beyond which hits
    decide a sampled Gaussian's K, where ``p exp(c mu^2 / 2)`` is 1, if that is less.
    """
    square, most = 0.0, _LARGEST_ORDER
    for loss, count in terms:
        square += loss.clt_mu_squared * count
        if isinstance(loss, SampledGaussianLoss) and loss.removing:
            most = min(most, -2.0 * math.log(loss.p) / (loss.mu * loss.mu))
    if not 0.0 < square < math.inf:
        return 1.0
    root = math.sqrt(square)
    order = goal / square - 0.5 if at_epsilon else math.sqrt(2.0 * max(-goal, 1.0)) / root
    return min(max(order, min(1.0, 1.0 / root), _LEAST_ORDER), most)


# What an integral may take in any case.
_AFFORDABLE: Final = 5_000_000
_MOST_NODES: Final = 100_000
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
    """ln delta at an epsilon, c of a line that is good there, and which recipe led to it.

    Without a c every line is looked at. Rough says that six digits are enough.
    """

    log_delta: float
    c: float | None = None
    recipe: str = ""
    rough: bool = False


class LocatedIntegral(NamedTuple):
    """An integral, the epsilon that its line was chosen for, and the losses along the line."""

    integral: Integral
    epsilon: float
    terms: AnalyticTerms
    recipe: str = ""

    def guess(self, log_delta: float) -> LineGuess:
        """Return its line as the guess for a composition that is nearly the same."""
        return LineGuess(log_delta, self.integral.line.c if self.recipe else None, self.recipe)


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

    ``_AFFORDABLE`` work is always allowed, also where ``most_work`` is 0. A weak far mode counts
    as a strong one where a plain line has turned out to be imprecise.
    """
    target = ContourTarget(epsilon, log_delta, effort.accuracy)
    mode = far_mode(terms, c)
    recipes = _RECIPES[FarMode.STRONG if weak_counts and mode else mode]
    best: Quadratures | None = None
    best_recipe = ""
    for recipe, enough in recipes if effort.most_work > 0 else recipes[:-1]:
        one = _QUADRATURES[recipe](terms, c, target, None)
        if one is not None and (best is None or one.work < best.work):
            best, best_recipe = one, recipe
        if best is not None and best.work <= enough:
            break
    if best is None or best.work > max(effort.most_work, _AFFORDABLE):
        return None
    return best.locate(epsilon, best_recipe)


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

    def locate(self, epsilon: float, recipe: str) -> LocatedIntegral:
        """Return the integral for an epsilon, with the way that led to its line."""
        return LocatedIntegral(self.integrate(), epsilon, self.terms, recipe)


# In each of these, ``known`` is the c of a line if it is known to be good, and c is the saddle.
def whole_line(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> Quadratures | None:
    """Return the quadratures along the cheapest line near c."""
    choose = cheapest_contour if known is None else choose_contour
    return quadratures_along(terms, choose(terms, known or c, target, _MOST_NODES), target)


def without_far_outputs(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> Quadratures | None:
    """Return those without the far outputs, along the cheapest line near their own saddle."""
    modest = replace(target, accuracy=min(target.accuracy, _NEAR_ACCURACY))
    split = near_terms(terms, modest)
    if split is None:
        return None
    start = first_order(split.terms, target.log_delta)
    c = known or saddle(split.terms, target.epsilon, start)
    found = whole_line(split.terms, c, modest, known)
    return found and found._replace(far=split.far)


def tails_only(
    terms: AnalyticTerms, c: float, target: ContourTarget, known: float | None = None
) -> Quadratures | None:
    """Return those with the tails alone, without the far outputs where these can be taken out."""
    modest = replace(target, accuracy=min(target.accuracy, _NEAR_ACCURACY))
    split = near_terms(terms, modest)
    near = known or (saddle(split.terms, target.epsilon, c) if split else c)
    found = split and _tail(split.terms, near, modest)
    return found._replace(far=split.far) if split and found else _tail(terms, known or c, target)


def _tail(terms: AnalyticTerms, c: float, target: ContourTarget) -> Quadratures | None:
    tails = tail_and_bulk(terms, target)
    line = tails and choose_contour(terms, c, target, _MOST_NODES, tails)
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


_QUADRATURES: Final = {"whole": whole_line, "near": without_far_outputs, "tails": tails_only}
# What is tried in turn, and the work at which the search for a shorter sum ends.
_RECIPES: Final = {
    FarMode.NONE: (("whole", _AFFORDABLE), ("tails", 0)),
    FarMode.WEAK: (("whole", _AFFORDABLE), ("near", _AFFORDABLE), ("tails", 0)),
    FarMode.STRONG: (("near", _AFFORDABLE), ("whole", _AFFORDABLE), ("tails", 0)),
}


# The number of losses, those that vary most, of which each gives a guess.
_LARGEST_LOSSES: Final = 4
# The least epsilon of a single run, over the largest, and ln of its accuracy.
_LEAST: Final = 1e-9
_CLOSE: Final = 1e-3
# ln of the share of delta that the outputs beyond a guess's edge may have: of epsilon, of delta.
_MARGIN: Final = 2.0
_DELTA_MARGIN: Final = 4.0
# The orders that count, over 1/epsilon, are at most about -ln delta and this much.
_STEEPNESS: Final = 30.0
# Where a single run has this share of the epsilon of all runs, it is the better guess.
_ALONE: Final = 0.45
_ROUNDS: Final = 4


def first_guess(
    terms: AnalyticTerms, log_delta: float, order: float, highest: float
) -> tuple[float, float]:
    """Return c and epsilon by the saddle-point formula, or Chernoff's where that is smaller."""

    def above(log_c: float) -> tuple[float, float]:
        c = math.exp(log_c)
        _, found, curvature = saddle_terms(terms, c)
        return log_delta - found, c * c * curvature

    c = math.exp(increasing_root_by_newton(above, math.log(order), last_step=_CLOSE, farthest=60.0))
    epsilon = saddle_log_delta(terms, c)[0]
    if not epsilon < highest:
        c, epsilon = order, highest
    if epsilon <= 0.0:
        return saddle(terms, 0.0), 0.0
    return c, epsilon


def epsilon_without_far_mode(terms: AnalyticTerms, log_delta: float, highest: float) -> float:
    """Return epsilon by the saddle-point formula of the losses short of what delta hardly sees.

    Where a single run has nearly as much, the bulk of the losses counts little, and the formula is
    poor.
    """
    near = _truncated(terms, log_delta, _MARGIN)
    order = rough_optimal_order(near, log_delta, first_order(near, log_delta))
    top = (total(near, order).value - log_delta + log_cks_factor(order)) / order
    found = first_guess(near, log_delta, order, max(min(top, highest), 0.0))[1]
    single = single_run_epsilon(terms, log_delta, highest)
    return single if single > _ALONE * found else found


def log_delta_without_far_mode(terms: AnalyticTerms, epsilon: float, highest: float) -> float:
    """Return ln delta by the same formula, or of a single run alone where that has more."""
    log_delta = highest
    for _ in range(_ROUNDS):
        near = _truncated(terms, log_delta, _DELTA_MARGIN)
        found = saddle_log_delta(near, saddle(near, epsilon))[1]
        if not found < log_delta - 1.0:
            break
        log_delta = found
    return min(max(log_delta, single_run_log_delta(terms, epsilon)), highest)


def single_run_log_delta(terms: AnalyticTerms, epsilon: float) -> float:
    """Return ln delta of one loss alone, over its runs; -inf where none is known."""
    singles = [loss.delta_estimate(epsilon) * count for loss, count in _largest(terms)]
    single = max(singles, default=0.0)
    return math.log(single) if single > 0.0 else -math.inf


def _truncated(terms: AnalyticTerms, log_delta: float, margin: float) -> AnalyticTerms:
    steepness = _STEEPNESS - log_delta
    edge = truncation(terms, log_delta - margin, steepness)
    return terms if edge is None else near_at(terms, edge, steepness)


def single_run_epsilon(terms: AnalyticTerms, log_delta: float, highest: float) -> float:
    """Return the largest epsilon at which one loss alone, over its runs, has the delta; or 0."""
    return max(
        _crossing(loss, math.exp(log_delta) / count, highest) for loss, count in _largest(terms)
    )


def _largest(terms: AnalyticTerms) -> list[tuple[AnalyticLoss, int]]:
    return nlargest(_LARGEST_LOSSES, terms, key=lambda term: term[0].clt_mu_squared)


def _crossing(loss: AnalyticLoss, delta: float, highest: float) -> float:
    """Return the epsilon of one run, to about a thousandth, in a range below the highest."""
    low, high = math.log(_LEAST * highest), math.log(highest)
    if loss.delta_estimate(math.exp(low)) <= delta:
        return 0.0
    while high - low > _CLOSE:
        middle = 0.5 * (low + high)
        if loss.delta_estimate(math.exp(middle)) > delta:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


_FINE: Final = Effort(32.0, 5_000_000)
_FAIR: Final = Effort(14.0, 5_000_000)
_COARSE: Final = Effort(6.0, 20_000_000)
_MODEST: Final = Effort(21.0, 100_000_000)
_SEARCH_ROUNDS: Final = 6
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
_SEARCH_CLOSE: Final = 0.3
# ln of a gap that the error of an estimated K does not close.
_SURELY: Final = 1e-3
# A single run's epsilon is looked for at least up to this.
_LEAST_RANGE: Final = 1.0


def is_formula_poor(terms: AnalyticTerms, epsilon: float) -> bool:
    """Return whether a far mode spoils the saddle-point formula at an epsilon."""
    return bool(terms) and far_mode(terms, saddle(terms, epsilon)) is FarMode.STRONG


def integral_for_delta(terms: AnalyticTerms, log_delta: float) -> LocatedIntegral | None:
    """Return an integral near the epsilon of a delta; None where no line is affordable or needed.

    No line is needed where a Renyi bound alone proves that epsilon is 0.
    """
    found = _by_compiled_search(terms, log_delta)
    if found is not None:
        return found
    order = rough_optimal_order(terms, log_delta, first_order(terms, log_delta))
    highest = (total(terms, order).value - log_delta + log_cks_factor(order)) / order
    if highest <= 0.0:
        return None
    if far_mode(terms, order) is FarMode.STRONG:
        epsilon = epsilon_without_far_mode(terms, log_delta, highest)
        found = _refined(terms, saddle(terms, epsilon, order), epsilon, log_delta)
        if found is not None:
            return found
    return _refined(terms, *first_guess(terms, log_delta, order, highest), log_delta)


def _by_compiled_search(terms: AnalyticTerms, log_delta: float) -> LocatedIntegral | None:
    """Return an integral along a short line that one search finds, where it is precise enough."""
    known = integral_at_once(terms, log_delta, _FINE.accuracy)
    if known is None:
        return None
    integral, epsilon, _ = known
    here = max(integral.epsilon_at(log_delta, epsilon), 0.0)
    error = integral.delta(here).relative_error
    close = abs(here - epsilon) * integral.line.c < _SEARCH_CLOSE
    if error < _SUFFICIENT_ERROR or (close and error < _MOST_CLOSE_ERROR):
        return LocatedIntegral(integral, here, terms)
    return None


def _refined(
    terms: AnalyticTerms, c: float, epsilon: float, log_delta: float
) -> LocatedIntegral | None:
    """Return an integral near the epsilon of a delta, from a guess of it and of its saddle."""
    start, least = epsilon, math.inf
    best: LocatedIntegral | None = None
    for again in range(_FINE_ROUNDS):
        found = cheapest_integral(terms, c, epsilon, log_delta, _FINE, weak_counts=again > 0)
        if found is None:
            break
        settled = _read(found, epsilon, log_delta)
        here, error = settled.epsilon, settled.integral.delta(settled.epsilon).relative_error
        if error < least:
            least, best = error, settled
        close = abs(here - epsilon) * found.integral.line.c < _SEARCH_CLOSE
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
        found = cheapest_integral(terms, c, nearer, log_delta, effort, weak_counts=True)
        if found is not None:
            return _read(found, nearer, log_delta)
    return None


def _read(found: LocatedIntegral, guess: float, log_delta: float) -> LocatedIntegral:
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
    search takes short lines only and does not split off tails.
    """
    found = guess and _along_known_line(terms, epsilon, guess)
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
    found, (first, sufficient) = None, _effort_for(guess)
    for again, effort in enumerate((first, _COARSE, _MODEST)):
        if effort is _MODEST and found is None:
            return None
        allowed = effort._replace(most_work=0) if quick else effort
        trial = cheapest_integral(terms, c, epsilon, log_delta, allowed, weak_counts=again > 0)
        if trial is not None:
            found = trial
            here = found.integral.delta(epsilon)
            log_delta = min(max(here.log("estimate"), log_delta - 60.0), highest)
            if here.relative_error < sufficient:
                break
    return found


def _effort_for(guess: LineGuess | None) -> tuple[Effort, float]:
    """Return what the first integral may take, and the relative error at which it is the last."""
    if guess is None:
        return _FINE, _SUFFICIENT_ERROR
    return (_FAIR, _ROUGH_ERROR) if guess.rough else (_FINE, _SUFFICIENT_FAR_ERROR)


def _along_known_line(
    terms: AnalyticTerms, epsilon: float, guess: LineGuess
) -> LocatedIntegral | None:
    """Return the integral along a line that is guessed, where that is precise enough."""
    if guess.c is None:
        return None
    target = ContourTarget(epsilon, guess.log_delta, _FINE.accuracy)
    one = _QUADRATURES[guess.recipe](terms, guess.c, target, guess.c)
    if one is None or one.work > _FINE.most_work:
        return None
    found = one.locate(epsilon, guess.recipe)
    return found if found.integral.delta(epsilon).relative_error < _SUFFICIENT_FAR_ERROR else None


def upper_log_delta(terms: AnalyticTerms, epsilon: float, least: float = -math.inf) -> float:
    """Return a proven upper bound of ln delta at an epsilon by one short line; 0 for none.

    By Chernoff's bound alone where that is below ``least``.
    """
    known = integral_at_once(terms, epsilon, _COARSE.accuracy, at_epsilon=True)
    if known is not None:
        value = known[0].delta(epsilon)
        if value.relative_error < MOST_RELATIVE_ERROR:
            return value.log_upper
    c = saddle(terms, epsilon, first_order(terms, epsilon, at_epsilon=True))
    target = ContourTarget(epsilon, saddle_log_delta(terms, c)[1], _COARSE.accuracy)
    if far_mode(terms, c) is not FarMode.STRONG:
        quadratures = quadratures_along(
            terms, choose_contour(terms, c, target, _MOST_NODES), target
        )
    elif log_chernoff(total(terms, c).value, c, epsilon) < least - _SURELY:
        bound = sum_of_bounds(terms, c)
        return log_chernoff(bound, c, epsilon) + OUTWARD_8 * (abs(bound) + c * epsilon + 4.0)
    else:
        quadratures = without_far_outputs(terms, c, target) or whole_line(terms, c, target)
    if quadratures is None or quadratures.work > _AFFORDABLE:
        return 0.0
    value = quadratures.integrate().delta(epsilon)
    return value.log_upper if value.relative_error < MOST_RELATIVE_ERROR else 0.0


def _coarse_epsilon(terms: AnalyticTerms, guess: float, log_delta: float) -> float | None:
    """Return epsilon to a fraction of 1/c, by coarse integrals; None where none is affordable."""
    epsilon = max(guess, single_run_epsilon(terms, log_delta, max(guess, _LEAST_RANGE)))
    for _ in range(_SEARCH_ROUNDS):
        found = cheapest_integral(terms, saddle(terms, epsilon), epsilon, log_delta, _COARSE)
        if found is None:
            return None
        # An integral whose line was chosen for one epsilon is wide far below it.
        here = max(found.integral.epsilon_at(log_delta, epsilon), 0.6 * epsilon)
        change = abs(here - epsilon) * found.integral.line.c
        epsilon = here
        if change < _SEARCH_CLOSE:
            break
    return epsilon
