"""Where a search begins: guesses of epsilon and of delta, which prove nothing."""

from __future__ import annotations

import math
from heapq import nlargest
from typing import Final

import numpy as np

from hockeystick.accountants.contour._far_outputs import near_at, truncation
from hockeystick.accountants.contour._line import AnalyticTerms
from hockeystick.accountants.orders import optimal_order, saddle, saddle_log_delta
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss import AnalyticLoss
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor
from hockeystick.privacy_loss.core.terms import total

# The number of losses, those that vary most, of which each gives a guess.
_LARGEST_LOSSES: Final = 4
# Epsilons at which a profile is computed together, and the least one over the largest.
_POINTS: Final = 48
_LEAST: Final = 1e-9
# ln of the share of delta that the outputs beyond a guess's edge may have.
_MARGIN: Final = 2.0
# Where a single run has this share of the epsilon of all runs, it is the better guess.
_ALONE: Final = 0.6
_ROUNDS: Final = 4


def saddle_epsilon(
    terms: AnalyticTerms, log_delta: float, order: float, highest: float
) -> float:
    """Return epsilon by the saddle-point formula, or Chernoff's where that is smaller."""

    def above(log_c: float) -> float:
        return log_delta - saddle_log_delta(terms, math.exp(log_c))[1]

    c = math.exp(
        increasing_root(above, math.log(order), stride=0.05, tolerance=1e-3, farthest=60.0)
    )
    return max(min(saddle_log_delta(terms, c)[0], highest), 0.0)


def epsilon_without_far_mode(terms: AnalyticTerms, log_delta: float, highest: float) -> float:
    """Return epsilon by the saddle-point formula of the losses short of what delta hardly sees.

    Where a single run has nearly as much, the bulk of the losses counts little, and the formula is
    poor.
    """
    edge = truncation(terms, log_delta - _MARGIN)
    near = terms if edge is None else near_at(terms, edge)
    order = optimal_order(near, log_delta)
    top = (total(near, order).value - log_delta + log_cks_factor(order)) / order
    found = saddle_epsilon(near, log_delta, order, max(min(top, highest), 0.0))
    single = single_run_epsilon(terms, log_delta, highest)
    return single if single > _ALONE * found else found


def log_delta_without_far_mode(terms: AnalyticTerms, epsilon: float, highest: float) -> float:
    """Return ln delta by the same formula, or of a single run alone where that has more."""
    log_delta = highest
    for _ in range(_ROUNDS):
        edge = truncation(terms, log_delta - _MARGIN)
        near = terms if edge is None else near_at(terms, edge)
        found = saddle_log_delta(near, saddle(near, epsilon))[1]
        if not found < log_delta - 1.0:
            break
        log_delta = found
    singles = [_profile(loss, np.array([epsilon]))[0] * count for loss, count in _largest(terms)]
    single = max(singles, default=0.0)
    return min(max(log_delta, math.log(single) if single > 0.0 else -math.inf), highest)


def single_run_epsilon(terms: AnalyticTerms, log_delta: float, highest: float) -> float:
    """Return the largest epsilon at which one loss alone, over its runs, has the delta; or 0."""
    return max(
        _crossing(loss, math.exp(log_delta) / count, highest) for loss, count in _largest(terms)
    )


def _largest(terms: AnalyticTerms) -> list[tuple[AnalyticLoss, int]]:
    """Return the losses that vary most, and their counts."""
    return nlargest(_LARGEST_LOSSES, terms, key=lambda term: term[0].clt_mu_squared)


def _crossing(loss: AnalyticLoss, delta: float, highest: float) -> float:
    """Return the epsilon of one run, to a thousandth, in a range below the highest."""
    low, high = _LEAST * highest, highest
    for _ in range(2):
        epsilons = np.geomspace(low, high, _POINTS)
        above = int((_profile(loss, epsilons) > delta).sum())
        if not 0 < above < _POINTS:
            return high if above else 0.0
        low, high = float(epsilons[above - 1]), float(epsilons[above])
    return math.sqrt(low * high)


def _profile(loss: AnalyticLoss, epsilons: np.ndarray) -> np.ndarray:
    """Return delta of one run at some epsilons; 0 where its profile is not known."""
    profile = loss.proven_profile()
    return np.zeros_like(epsilons) if profile is None else profile.at(epsilons).estimate
