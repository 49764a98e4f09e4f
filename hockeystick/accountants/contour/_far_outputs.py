"""Few hits: what the outcomes with a far output contribute to delta, all but in closed form.

Mark each output u of each run as far with a probability ``W(u)``, the same under P and Q, which
changes no divergence; F says that some output is marked. With the total loss S and ``(x)_+ =
x + (-x)_+`` on F,

    delta(eps) = delta_A(eps) + P(F) - e^eps Q(F) + R(eps),   0 <= R = E_P[(e^(eps - S) - 1)_+; F],

where ``delta_A`` is that of what is not marked, a law of total mass below 1 with the transform
``prod A^n``, which the contour integral takes as it takes any other. With the masses
``J_P = E_P[W]`` and ``J_Q = E_Q[W]`` of each run,

    P(F) = 1 - prod (1 - J_P)^n,    Q(F) = 1 - prod (1 - J_Q)^n.

As ``e^x - 1 <= C(l) e^((1+l) x)`` for any ``l > 0`` (Canonne, Kamath and Steinke's factor), and
a union bound over the run that is marked,

    R <= C(l) e^((1+l) eps) sum_i n_i E_Q[W e^(-l L_i)] prod_j E_Q[e^(-l L_j)]^n_j,

as ``dQ = e^-S dP`` where no output is possible under Q alone; the last mean is the transform of the
opposite direction (Q, P) at l, at least 1. The bound is negligible where a far output's loss
exceeds epsilon by a gap that the other runs' losses hardly ever make up for. Also, the outcomes in
F contribute at most P(F), which is all that counts where F is that rare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics import ULP
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import OUTWARD_32
from hockeystick.privacy_loss import AnalyticLoss, NearLoss
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.base import NO_INFINITY_MASS
from hockeystick.privacy_loss.core.composition import sum_of_bounds, total

Floats: TypeAlias = NDArray[np.float64]
AnalyticTerms: TypeAlias = Sequence[tuple[AnalyticLoss, int]]

# ln of the order l that is tried first, over 1/gap.
_RISE: Final = 3.0
# Bisections of the gap's logarithm, the least gap over epsilon, and ln of the largest loss and,
# negated, of the least.
_HALVINGS: Final = 8
_LEAST_GAP: Final = 0.02
_LARGEST_LOG_LOSS: Final = 6.2
_LEAST_LOG_LOSS: Final = 30.0
# Where rare losses end within this many times epsilon, cutting them is enough.
_WORTHWHILE: Final = 2.0
# ln of the odds of a hit at a far mode, and of its weight, from which on it counts.
_WEAK: Final = 1.0
_FEWEST_RUNS: Final = 10
STRONG: Final = 4.7
LEAST_LOG_WEIGHT: Final = -20.0
# The weight is as steep as c: relative to that, it is told to this only.
SLACK: Final = 0.005
# The orders in use, over 1/epsilon, are at most about -ln delta and this much.
_MARGIN: Final = 30.0
_LEAST_LOG_MASS: Final = -600.0
# ln of the largest mass of far outputs: with more, 1 - J loses digits.
_MOST_LOG_MARKED: Final = -0.7
# What is larger counts as infinite.
_OVERFLOW: Final = 1e300


@dataclass(frozen=True, slots=True)
class ContourTarget:
    """The epsilon and delta that the contour is chosen for, to exp(-accuracy) of delta."""

    epsilon: float
    log_delta: float
    accuracy: float


class FarMode(IntEnum):
    """How much rare outputs count under a tilt: they then set where the line is, and its length."""

    NONE = 0
    WEAK = 1
    STRONG = 2


class NearTerms(NamedTuple):
    """The losses without their far outputs, and what these contribute."""

    terms: AnalyticTerms
    far: FarOutputs


@dataclass(frozen=True, slots=True)
class FarOutputs:
    """``P(F)``, ``Q(F)`` and ``P(F) - Q(F)``, as logarithms with a relative error, and R's bound.

    ``log_shortfall`` is that of R at epsilon 0; R grows as ``exp((1 + order) epsilon)``. Without an
    order only P(F) is known: what F contributes is between 0 and that.
    """

    log_p: float
    error: float
    log_q: float = -math.inf
    log_excess: float = -math.inf
    order: float = math.inf
    log_shortfall: float = math.inf

    @property
    def upper(self) -> float:
        """An upper bound of what F contributes at any epsilon: P(F)."""
        return math.exp(self.log_p) * (1.0 + self.error) + 5e-324

    def deltas(self, epsilons: Floats, log_scale: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return lower end, estimate, upper end and derivative, all over ``exp(log_scale)``.

        Below an epsilon of 0, which no answer has, the upper end is P(F) alone.
        """
        error = self.error + 4.0 * ULP * (np.abs(log_scale) - self.log_p + 16.0)
        whole = _exp(self.log_p - log_scale) * (1.0 + error)
        whole = np.where(whole < _OVERFLOW, whole, math.inf)
        if self.order == math.inf:
            nothing = np.zeros_like(whole)
            return nothing, nothing, whole, nothing
        raised = np.maximum(epsilons, 0.0)
        excess = _exp(self.log_excess - log_scale)
        with np.errstate(divide="ignore"):
            log_gain = self.log_q + np.log(-np.expm1(-raised)) + raised
        gain = _exp(log_gain - log_scale)
        shortfall = _exp(self.log_shortfall + (1.0 + self.order) * raised - log_scale)
        sizes = (2.0 + self.order) * raised + abs(self.log_shortfall)
        error = error + 4.0 * ULP * (sizes - self.log_q - self.log_excess)
        slack = error * (excess + gain)
        estimate = np.maximum(excess - gain, 0.0)
        upper = np.minimum(whole, (estimate + shortfall) * (1.0 + error) + slack)
        upper = np.where((epsilons < 0.0) | (whole == math.inf), whole, upper)
        derivative = np.where(estimate > 0.0, -_exp(self.log_q + epsilons - log_scale), 0.0)
        return np.maximum(estimate - slack, 0.0), np.minimum(estimate, upper), upper, derivative


def _exp(x: Floats) -> Floats:
    return np.minimum(np.exp(np.minimum(x, 700.0)), _OVERFLOW)


def near_terms(terms: AnalyticTerms, target: ContourTarget) -> NearTerms | None:
    """Return the losses with as few near outputs as make R, or F, negligible; None if none are."""
    goal = target.log_delta - target.accuracy - 1.0
    steepness = _MARGIN - target.log_delta
    longest = truncation(terms, goal, steepness)
    if longest is None:
        return None
    near, order = near_at(terms, longest, steepness), math.inf
    opposite = _opposite(terms) if all(near.far.log_q > -math.inf for near, _ in _cut(near)) else ()
    if opposite and longest > _WORTHWHILE * target.epsilon > 0.0:
        near, order = _least_gap(terms, opposite, target, longest) or (near, order)
    if _log_marked(near) > _MOST_LOG_MARKED:
        return None
    return NearTerms(near, _far_outputs(near, order, opposite))


def far_mode(terms: AnalyticTerms, c: float) -> FarMode:
    """Return how much a mode of rare outputs, of their own, counts under a tilt by c.

    The transform of fewer runs than ``_FEWEST_RUNS`` does not decay enough without far outputs.
    """
    found = FarMode.NONE
    if sum(count for _, count in terms) < _FEWEST_RUNS:
        return found
    for loss, count in terms:
        log_odds, log_weight = loss.far_mode(c)
        least = LEAST_LOG_WEIGHT * (1.0 + SLACK * c) - math.log(count)
        if log_weight > least and log_odds > _WEAK:
            found = FarMode.STRONG if log_odds > STRONG else max(found, FarMode.WEAK)
        if found is FarMode.STRONG:
            break
    return found


def truncation(terms: AnalyticTerms, goal: float, steepness: float) -> float | None:
    """Return the loss beyond which outputs have P-mass of ``exp(goal)`` in all runs, or None."""
    if not _cut(near_at(terms, 1.0, steepness)):
        return None

    def excess(log_loss: float) -> float:
        within = math.exp(min(log_loss, _LARGEST_LOG_LOSS))
        return goal - _log_marked(near_at(terms, within, steepness))

    found = increasing_root(excess, -3.0, stride=2.0, tolerance=0.03, farthest=_LEAST_LOG_LOSS)
    return math.exp(found + 0.03) if found < _LARGEST_LOG_LOSS else None


def _least_gap(
    terms: AnalyticTerms, opposite: AnalyticTerms, target: ContourTarget, longest: float
) -> tuple[AnalyticTerms, float] | None:
    """Return the losses cut at the least gap above epsilon at which R is negligible, and l."""
    epsilon, goal = target.epsilon, target.log_delta - target.accuracy - 1.0

    @cache
    def log_mgf(index: int) -> float:
        order = 2.0**index / epsilon
        return total(opposite, order).value + log_cks_factor(order)

    low, high = math.log(_LEAST_GAP * epsilon), math.log(longest - epsilon)
    best: tuple[AnalyticTerms, float] | None = None
    for _ in range(_HALVINGS):
        log_gap = 0.5 * (low + high)
        trial = near_at(terms, epsilon + math.exp(log_gap), _MARGIN - target.log_delta)

        def shortfall(index: int, near: AnalyticTerms = trial) -> float:
            order = 2.0**index / epsilon
            return log_mgf(index) + (1.0 + order) * epsilon + _log_power(near, order)

        index = _least(shortfall, round((_RISE - log_gap + math.log(epsilon)) / math.log(2.0)))
        if shortfall(index) <= goal:
            best, high = (trial, 2.0**index / epsilon), log_gap
        else:
            low = log_gap
    return best


def _least(function: Callable[[int], float], start: int) -> int:
    """Return where a function of integers with a single minimum has it."""
    here = function(start)
    for direction in (1, -1):
        after = function(start + direction)
        while after < here:
            start, here = start + direction, after
            after = function(start + direction)
    return start


def _opposite(terms: AnalyticTerms) -> AnalyticTerms:
    """Return the losses of the other direction, none of them infinite; none where one is not known.

    An output that is possible under Q alone would make P(F) - e^eps Q(F) too small a part of delta.
    """
    found = [(loss.opposite, count) for loss, count in terms]
    known = [
        (loss, count)
        for loss, count in found
        if isinstance(loss, AnalyticLoss) and loss.infinity_mass == NO_INFINITY_MASS
    ]
    return tuple(known) if len(known) == len(found) else ()


def near_at(terms: AnalyticTerms, threshold: float, steepness: float) -> AnalyticTerms:
    """Return the losses without the outputs beyond a threshold, where they can be cut."""
    return tuple((loss.near_outputs(threshold, steepness) or loss, n) for loss, n in terms)


def _cut(near: AnalyticTerms) -> list[tuple[NearLoss, float]]:
    return [(loss, float(count)) for loss, count in near if isinstance(loss, NearLoss)]


def _log_marked(near: AnalyticTerms) -> float:
    """Return ln of the union bound of P(F)."""
    return _log_sum([math.log(count) + loss.far.log_p for loss, count in _cut(near)])


def _log_power(near: AnalyticTerms, order: float) -> float:
    """Return the upper bound of ``ln sum n E_Q[W exp(-order L)]``."""
    return _log_sum([math.log(count) + loss.log_far_power(order) for loss, count in _cut(near)])


def _far_outputs(near: AnalyticTerms, order: float, opposite: AnalyticTerms) -> FarOutputs:
    """Return what the far outputs contribute, by proven bounds; by P(F) alone for no order."""
    cut = _cut(near)
    error = 4.0 * max(loss.far.error for loss, _ in cut) + 64.0 * ULP
    unmarked = math.fsum(n * math.log1p(-math.exp(loss.far.log_p)) for loss, n in cut)
    log_p = _log_union([math.log(n) + loss.far.log_p for loss, n in cut], unmarked)
    if order == math.inf:
        return FarOutputs(log_p, error)
    unmarked = shared = 0.0
    for loss, n in cut:
        j_q = math.exp(loss.far.log_q)
        unmarked += n * math.log1p(-j_q)
        shared += n * math.log1p(-math.exp(loss.far.log_excess) / (1.0 - j_q))
    log_q = _log_union([math.log(n) + loss.far.log_q for loss, n in cut], unmarked)
    log_excess = _log_union([math.log(n) + loss.far.log_excess for loss, n in cut], shared)
    mgf, power = sum_of_bounds(opposite, order), _log_power(near, order)
    bound = mgf + power + log_cks_factor(order) + OUTWARD_32 * (abs(mgf) + abs(power) + 4.0)
    error *= 1.0 - unmarked
    return FarOutputs(log_p, error, log_q, log_excess + unmarked, order, bound)


def _log_union(logs: list[float], unmarked: float) -> float:
    """Return ``ln(1 - exp(unmarked))``, far below all floats ln of the sum of the masses."""
    union = _log_sum(logs)
    return union if union < _LEAST_LOG_MASS else math.log(-math.expm1(unmarked))


def _log_sum(logs: list[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(log - top) for log in logs))
