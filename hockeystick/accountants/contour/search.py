"""The line for an epsilon or a delta: a good one depends on the answer, so it takes rounds."""

from __future__ import annotations

import math
from heapq import nlargest
from typing import Final, NamedTuple

from hockeystick.accountants.closed_forms.closed_form import least_epsilon
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
)
from hockeystick.accountants.contour._tail_and_bulk import TailAndBulk, tail_and_bulk
from hockeystick.accountants.limits.gdp import GaussianLimit
from hockeystick.accountants.orders import optimal_order, optimal_order_at, saddle, saddle_log_delta
from hockeystick.numerics.roots import increasing_root
from hockeystick.privacy_loss import Composition, ContourRule, TailRule
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor
from hockeystick.privacy_loss.core.terms import total


class Effort(NamedTuple):
    """How accurate an integral is to be, and how many terms it may take.

    The accuracy is the natural logarithm of what is asked of each error, relative to delta; the
    terms are nodes on the line times nodes of the losses.
    """

    accuracy: float
    most_work: int


_FINE: Final = Effort(32.0, 1_000_000)
_COARSE: Final = Effort(6.0, 20_000_000)
_MODEST: Final = Effort(21.0, 100_000_000)
# What an integral may take in any case.
_AFFORDABLE: Final = _FINE.most_work
_MOST_NODES: Final = 40_000
# The number of losses, those that vary most, of which each gives a guess.
_LARGEST_LOSSES: Final = 4
_ROUNDS: Final = 6
# A relative error of delta that ends the search.
_SUFFICIENT_ERROR: Final = 1e-9
# The largest relative error of an upper bound by one short line.
_MOST_RELATIVE_ERROR: Final = 0.5
_OUTWARD: Final = 2.0**-50


class LocatedIntegral(NamedTuple):
    """An integral, and the epsilon that its line was chosen for."""

    integral: Integral
    epsilon: float


def integral_for_delta(terms: AnalyticTerms, log_delta: float) -> LocatedIntegral | None:
    """Return an integral near the epsilon of a delta; None where no line is affordable or needed.

    No line is needed where a Renyi bound alone proves that epsilon is 0.
    """
    order = optimal_order(terms, log_delta)
    highest = (total(terms, order).value - log_delta + log_cks_factor(order)) / order
    if highest <= 0.0:
        return None
    c, epsilon = _first_guess(terms, log_delta, order, highest)
    found = _integral(terms, c, epsilon, log_delta, _FINE)
    if found is not None:
        here = max(found.epsilon_at(log_delta, epsilon), 0.0)
        if found.delta(here).relative_error < _SUFFICIENT_ERROR:
            return LocatedIntegral(found, here)
    # The guess was far off, or the line too long: coarse integrals first find epsilon roughly.
    nearer = _coarse_epsilon(terms, log_delta, highest)
    if nearer is None:
        return None
    for effort in (_FINE, _MODEST):
        found = _integral(terms, saddle(terms, nearer), nearer, log_delta, effort)
        if found is not None:
            return LocatedIntegral(found, max(found.epsilon_at(log_delta, nearer), 0.0))
    return None


def integral_for_epsilon(
    terms: AnalyticTerms, epsilon: float, *, quick: bool = False, least: float = -math.inf
) -> LocatedIntegral | None:
    """Return an integral good at an epsilon; None where no line is affordable or needed.

    No line is needed where a Renyi bound alone proves ln delta to be below ``least``. A quick
    search takes short lines only and does not split off large losses.
    """
    c = saddle(terms, epsilon)
    order = optimal_order_at(terms, epsilon)
    highest = total(terms, order).value - order * epsilon + log_cks_factor(order)
    if highest < least:
        return None
    log_delta = min(saddle_log_delta(terms, c)[1], highest)
    found = None
    for effort in (_FINE, _COARSE, _MODEST):
        if effort is _MODEST and found is None:
            return None
        allowed = effort._replace(most_work=0) if quick else effort
        trial = _integral(terms, c, epsilon, log_delta, allowed)
        if trial is not None:
            found = trial
            log_delta = min(max(found.delta(epsilon).log("estimate"), log_delta - 60.0), highest)
            if found.delta(epsilon).relative_error < _SUFFICIENT_ERROR:
                break
    return LocatedIntegral(found, epsilon) if found is not None else None


def upper_log_delta(terms: AnalyticTerms, epsilon: float) -> float:
    """Return a proven upper bound of ln delta at an epsilon by one short line; 0 for none."""
    c = saddle(terms, epsilon)
    target = ContourTarget(epsilon, saddle_log_delta(terms, c)[1], _COARSE.accuracy)
    quadratures = _quadratures(terms, choose_contour(terms, c, target, _MOST_NODES), target)
    if quadratures is None or quadratures.work > _AFFORDABLE:
        return 0.0
    value = quadratures.integrate(terms).delta(epsilon)
    if not value.relative_error < _MOST_RELATIVE_ERROR:
        return 0.0
    log_delta = value.log("upper")
    return log_delta + _OUTWARD * (abs(value.log_scale) + 4.0)


def _coarse_epsilon(terms: AnalyticTerms, log_delta: float, highest: float) -> float | None:
    """Return epsilon to a fraction of 1/c, by coarse integrals; None where none is affordable."""
    epsilon = _rare_guess(terms, log_delta, highest)
    for _ in range(_ROUNDS):
        c = saddle(terms, epsilon)
        found = _integral(terms, c, epsilon, log_delta, _COARSE)
        if found is None:
            return None
        # An integral whose line was chosen for one epsilon is wide far below it.
        here = max(found.epsilon_at(log_delta, epsilon), 0.6 * epsilon)
        change = abs(here - epsilon) * c
        epsilon = here
        if change < 0.3:
            break
    return epsilon


def _rare_guess(terms: AnalyticTerms, log_delta: float, highest: float) -> float:
    """Return the larger epsilon of one run alone and of the Gaussian limit of all runs."""
    delta = math.exp(log_delta)
    largest = nlargest(_LARGEST_LOSSES, terms, key=lambda term: term[0].clt_mu_squared)
    single = max(least_epsilon(((loss, 1),), delta / count) for loss, count in largest)
    limit = GaussianLimit().epsilon(Composition(tuple(terms), ()), delta).estimate
    return max(single, min(limit, highest))


def _first_guess(
    terms: AnalyticTerms, log_delta: float, order: float, highest: float
) -> tuple[float, float]:
    """Return c and epsilon by the saddle-point formula, or Chernoff's where that is smaller."""

    def above(log_c: float) -> float:
        return log_delta - saddle_log_delta(terms, math.exp(log_c))[1]

    c = math.exp(
        increasing_root(above, math.log(order), stride=0.05, tolerance=1e-3, farthest=60.0)
    )
    epsilon = saddle_log_delta(terms, c)[0]
    if not epsilon < highest:
        c, epsilon = order, highest
    if epsilon <= 0.0:
        return saddle(terms, 0.0), 0.0
    return c, epsilon


def _integral(
    terms: AnalyticTerms, c: float, epsilon: float, log_delta: float, effort: Effort
) -> Integral | None:
    """Return the integral along the cheapest line near c, or None if it takes too much work.

    ``_AFFORDABLE`` work is always allowed, also where ``most_work`` is 0.
    """
    target = ContourTarget(epsilon, log_delta, effort.accuracy)
    plain = _quadratures(terms, cheapest_contour(terms, c, target, _MOST_NODES), target)
    if plain is not None and plain.work <= _AFFORDABLE:
        return plain.integrate(terms)
    if effort.most_work == 0:
        return None
    tails = tail_and_bulk(terms, target)
    line = tails and cheapest_contour(terms, c, target, _MOST_NODES, tails)
    split = _quadratures(terms, line, target, tails) if line else None
    best = min((one for one in (plain, split) if one), key=lambda one: one.work, default=None)
    return best.integrate(terms) if best is not None and best.work <= effort.most_work else None


class _Quadratures(NamedTuple):
    """A contour with the quadratures of its losses."""

    line: VerticalContour
    rules: list[ContourRule]
    tails: TailAndBulk | None
    tail_rules: list[TailRule]

    @property
    def work(self) -> int:
        """The number of terms of the integral's sum."""
        nodes = sum(one.nodes for one in self.rules) + sum(one.nodes for one in self.tail_rules)
        return self.line.last * nodes

    def integrate(self, terms: AnalyticTerms) -> Integral:
        """Return the integral."""
        return integrate(terms, self.line, self.rules, self.tails, self.tail_rules)


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
    return _Quadratures(line, rules, tails, tail_rules)
