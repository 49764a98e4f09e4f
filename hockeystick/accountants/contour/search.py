"""The line for an epsilon or a delta: a good one depends on the answer, so it takes rounds."""

from __future__ import annotations

import math
from heapq import nlargest
from typing import Final

from hockeystick.accountants.contour._far_outputs import FarMode, far_mode, near_at, truncation
from hockeystick.accountants.contour._line import (
    AnalyticTerms,
    ContourTarget,
    choose_contour,
    log_chernoff,
)
from hockeystick.accountants.contour.ways import (
    AFFORDABLE,
    MOST_NODES,
    QUADRATURES,
    Effort,
    LineGuess,
    LocatedIntegral,
    cheapest_integral,
    first_order,
    integral_at_once,
    near,
    plain,
    quadratures_along,
)
from hockeystick.accountants.orders import (
    rough_optimal_order,
    rough_optimal_order_at,
    saddle,
    saddle_log_delta,
    saddle_terms,
)
from hockeystick.numerics.roots import increasing_root_by_newton
from hockeystick.privacy_loss import AnalyticLoss
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.terms import sum_of_bounds, total

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
    """Return the losses without the outputs that delta hardly sees."""
    steepness = _STEEPNESS - log_delta
    edge = truncation(terms, log_delta - margin, steepness)
    return terms if edge is None else near_at(terms, edge, steepness)


def single_run_epsilon(terms: AnalyticTerms, log_delta: float, highest: float) -> float:
    """Return the largest epsilon at which one loss alone, over its runs, has the delta; or 0."""
    return max(
        _crossing(loss, math.exp(log_delta) / count, highest) for loss, count in _largest(terms)
    )


def _largest(terms: AnalyticTerms) -> list[tuple[AnalyticLoss, int]]:
    """Return the losses that vary most, and their counts."""
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
# The largest relative error of an upper bound by one short line.
_MOST_RELATIVE_ERROR: Final = 0.5
# ln of a gap that the error of an estimated K does not close.
_SURELY: Final = 1e-3
# A single run's epsilon is looked for at least up to this.
_LEAST_RANGE: Final = 1.0
_OUTWARD: Final = 2.0**-50


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
    close = abs(here - epsilon) * integral.line.c < _SEARCH_CLOSE
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
        trial = cheapest_integral(terms, c, epsilon, log_delta, allowed, weak_counts=again > 0)
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
    one = QUADRATURES[guess.way](terms, guess.c, target, guess.c)
    if one is None or one.work > _FINE.most_work:
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
        quadratures = quadratures_along(terms, choose_contour(terms, c, target, MOST_NODES), target)
    elif log_chernoff(total(terms, c).value, c, epsilon) < least - _SURELY:
        bound = sum_of_bounds(terms, c)
        return log_chernoff(bound, c, epsilon) + _OUTWARD * (abs(bound) + c * epsilon + 4.0)
    else:
        quadratures = near(terms, c, target) or plain(terms, c, target)
    if quadratures is None or quadratures.work > AFFORDABLE:
        return 0.0
    value = quadratures.integrate().delta(epsilon)
    if not value.relative_error < _MOST_RELATIVE_ERROR:
        return 0.0
    log_delta = value.log("upper")
    return log_delta + _OUTWARD * (abs(value.log_scale) + 4.0)


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
