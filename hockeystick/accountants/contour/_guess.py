"""Where a search begins: guesses of epsilon and of delta, which prove nothing."""

from __future__ import annotations

import math
from heapq import nlargest
from typing import Final

from hockeystick.accountants.contour._far_outputs import near_at, truncation
from hockeystick.accountants.contour._line import AnalyticTerms
from hockeystick.accountants.contour._sampled_gaussians import first_order
from hockeystick.accountants.orders import (
    rough_optimal_order,
    saddle,
    saddle_log_delta,
    saddle_terms,
)
from hockeystick.numerics.roots import increasing_root_by_newton
from hockeystick.privacy_loss import AnalyticLoss
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor
from hockeystick.privacy_loss.core.terms import total

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
