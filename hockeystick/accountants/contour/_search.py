"""Finding the line for a question: where epsilon or delta lies is known only once it is answered."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from hockeystick._solve import increasing_root
from hockeystick.accountants._orders import (
    log_kappa,
    optimal_order,
    optimal_order_at,
    saddle,
    saddle_log_delta,
    total,
)
from hockeystick.accountants.contour._integral import Integral, integrate, rules_for
from hockeystick.accountants.contour._line import LineTerms, Target, draw, draw_cheaper

# Natural logarithm of the accuracy asked of each error, relative to delta.
FINE: Final = 32.0
COARSE: Final = 6.0
_MOST_NODES: Final = 40_000
_MOST_WORK: Final = 30_000_000
_LONG: Final = 150
_ROUNDS: Final = 6


class Located(NamedTuple):
    """An integral, and the epsilon that it was looked for at."""

    integral: Integral
    epsilon: float


def integral_for_delta(terms: LineTerms, log_delta: float) -> Located | None:
    """Return an integral near the epsilon of a delta; None where no line is affordable."""
    c, epsilon = _first_guess(terms, log_delta)
    accuracy = FINE
    for _ in range(_ROUNDS):
        found = _integral(terms, c, Target(epsilon, log_delta, accuracy))
        if found is None:
            return None
        here = max(found.epsilon_at(log_delta, epsilon), 0.0)
        moved = abs(here - epsilon) * c
        if accuracy == FINE and moved < 1.0:
            return Located(found, here)
        # Far off: settle where epsilon is by cheap lines before the last, fine one.
        accuracy = FINE if moved < 0.5 else COARSE
        epsilon, c = here, saddle(terms, here)
    return Located(found, here) if accuracy == FINE else None


def integral_for_epsilon(terms: LineTerms, epsilon: float) -> Located | None:
    """Return an integral good at an epsilon; None where no line is affordable."""
    c = saddle(terms, epsilon)
    order = optimal_order_at(terms, epsilon)
    highest = total(terms, order).value - order * epsilon + log_kappa(order)
    log_delta = min(saddle_log_delta(terms, c)[1], highest)
    for _ in range(_ROUNDS):
        found = _integral(terms, c, Target(epsilon, log_delta, FINE))
        if found is None:
            return None
        here = found.delta(epsilon).log("estimate")
        if here > log_delta - 1.0:
            break
        log_delta = max(here, log_delta - 40.0)
    return Located(found, epsilon)


def _first_guess(terms: LineTerms, log_delta: float) -> tuple[float, float]:
    """Return c and epsilon by the saddle-point formula, or Chernoff's where that is smaller."""
    order = optimal_order(terms, log_delta)
    highest = (total(terms, order).value - log_delta + log_kappa(order)) / order

    def above(log_c: float) -> float:
        return log_delta - saddle_log_delta(terms, math.exp(log_c))[1]

    c = math.exp(increasing_root(above, math.log(order), stride=0.05, tolerance=1e-3, farthest=60.0))
    epsilon = saddle_log_delta(terms, c)[0]
    if not epsilon < highest:
        c, epsilon = order, highest
    if epsilon <= 0.0:
        return saddle(terms, 0.0), 0.0
    return c, epsilon


def _integral(terms: LineTerms, c: float, target: Target) -> Integral | None:
    """Return the integral along the cheapest line near c, or None where it is out of budget."""
    line = draw(terms, c, target, _MOST_NODES)
    if line is None or line.last > _LONG:
        line = draw_cheaper(terms, line, c, target, _MOST_NODES)
    if line is None:
        return None
    rules = rules_for(terms, line, target)
    if line.last * sum(rule.nodes for rule in rules) > _MOST_WORK:
        return None
    return integrate(terms, line, rules)
