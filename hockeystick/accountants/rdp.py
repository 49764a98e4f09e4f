"""Accountants by Renyi divergences: the best order, and the moments accountant of Abadi et al."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, final

from hockeystick import _validate
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.closed_form import BoundAccountant
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.numerics import ULP, log_readings
from hockeystick.numerics.roots import Point, increasing_root, increasing_root_by_newton
from hockeystick.numerics.rounding import OUTWARD_128
from hockeystick.privacy_loss import AnalyticLoss, Terms, largest_loss
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.composition import (
    LARGEST_LOG_ORDER,
    TermSequence,
    breakpoints,
    candidate_orders,
    largest_order,
    sum_of_bounds,
    total,
)
from hockeystick.privacy_loss.guarantees import ConcentratedLoss, RenyiCurveLoss
from hockeystick.tradeoffs.profiles.one_order import delta_by_orders, epsilon_and_c
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiPoints

# Where a search for an order begins, and the last of Newton's steps for ln c.
_FIRST_ORDER: Final = 4.5
_LAST_STEP: Final = 1e-3


def cgf_estimates(
    terms: Sequence[tuple[AnalyticLoss, int]], orders: Sequence[float]
) -> list[float]:
    """Return K of the composition at several orders; it proves nothing."""
    values = [(count, loss.cgf_estimates(orders)) for loss, count in terms]
    return [math.fsum(count * one[k] for count, one in values) for k in range(len(orders))]


def optimal_order(terms: TermSequence, log_delta: float) -> float:
    """Return the ``c = alpha - 1`` that gives the least epsilon by ``renyi_epsilon``.

    The derivative in c vanishes where ``c K' - K + ln(1+c) + ln delta = 0``, which increases.
    """
    last = largest_order(terms)

    def condition(log_c: float) -> float:
        c = math.exp(log_c)
        if c > last:
            return math.inf
        cgf = total(terms, c)
        return c * cgf.first_derivative - cgf.value + math.log1p(c) + log_delta

    return math.exp(increasing_root(condition, 1.5, tolerance=1e-5, farthest=LARGEST_LOG_ORDER))


def optimal_order_at(terms: TermSequence, epsilon: float) -> float:
    """Return the ``c = alpha - 1`` that gives the least delta at an epsilon."""

    def condition(log_c: float) -> float:
        c = math.exp(log_c)
        return total(terms, c).first_derivative - epsilon - math.log1p(1.0 / c)

    return math.exp(increasing_root(condition, 1.5, tolerance=1e-5, farthest=LARGEST_LOG_ORDER))


def rough_optimal_order(
    terms: TermSequence, log_delta: float, start: float = _FIRST_ORDER
) -> float:
    """Return about ``optimal_order``, in fewer evaluations the nearer the start is."""
    last = largest_order(terms)

    def sides(c: float) -> tuple[Point, Point]:
        if c > last:
            return (math.inf, 0.0), (1.0, 0.0)
        cgf = total(terms, c)
        value = c * cgf.first_derivative - cgf.value + math.log1p(c)
        return (value, c * (c * cgf.second_derivative + 1.0 / (1.0 + c))), (-log_delta, 0.0)

    return _order(sides, start)


def rough_optimal_order_at(
    terms: TermSequence, epsilon: float, start: float = _FIRST_ORDER
) -> float:
    """Return about ``optimal_order_at``, in fewer evaluations the nearer the start is."""

    def sides(c: float) -> tuple[Point, Point]:
        return _slope(terms, c), (epsilon + math.log1p(1.0 / c), -1.0 / (1.0 + c))

    return _order(sides, start)


def saddle(terms: TermSequence, epsilon: float, start: float = _FIRST_ORDER) -> float:
    """Return about the c > 0 that minimises ``K(c) - epsilon c - ln c - ln(1 + c)``."""

    def sides(c: float) -> tuple[Point, Point]:
        goal = epsilon + 1.0 / c + 1.0 / (1.0 + c)
        return _slope(terms, c), (goal, -1.0 / c - c / ((1.0 + c) * (1.0 + c)))

    return _order(sides, start)


def _slope(terms: TermSequence, c: float) -> Point:
    cgf = total(terms, c)
    return cgf.first_derivative, c * cgf.second_derivative


def _order(sides: Callable[[float], tuple[Point, Point]], start: float) -> float:
    """Return the c > 0 at which a rising side is equal to another, each with its d/d ln c.

    Both are about powers or exponentials of c: ln of their ratio is nearly linear in ln c.
    """

    def condition(log_c: float) -> Point:
        (value, rise), (goal, goal_rise) = sides(math.exp(log_c))
        if not (0.0 < value < math.inf and goal > 0.0):
            return math.copysign(math.inf, value - goal), 0.0
        return math.log(value / goal), rise / value - goal_rise / goal

    begin, farthest = math.log(start), LARGEST_LOG_ORDER
    root = increasing_root_by_newton(condition, begin, last_step=_LAST_STEP, farthest=farthest)
    return math.exp(root)


def saddle_log_delta(terms: TermSequence, c: float) -> tuple[float, float]:
    """Return the epsilon whose saddle is c, and the saddle-point estimate of ln delta there."""
    return saddle_terms(terms, c)[:2]


def saddle_terms(terms: TermSequence, c: float) -> tuple[float, float, float]:
    """Return the same two, and the second derivative of what the saddle minimises."""
    cgf = total(terms, c)
    if cgf.value == math.inf:
        return math.inf, -math.inf, 0.0
    epsilon = cgf.first_derivative - 1.0 / c - 1.0 / (1.0 + c)
    second = cgf.second_derivative + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c))
    log_integrand = cgf.value - epsilon * c - math.log(c) - math.log1p(c)
    return epsilon, log_integrand - 0.5 * math.log(2.0 * math.pi * second), second


# The largest c epsilon at which the round-off of an exponent keeps a bound of delta useful.
_LARGEST_EXPONENT = 2.0**38
# c epsilon at which exp(K(c) - c epsilon) underflows where K(c) is at most half of it.
_VANISHING_EXPONENT = 2000.0


@final
@dataclass(frozen=True)
class RDP(BoundAccountant):
    """Renyi differential privacy of every order, converted at the best one.

    With ``tau`` the Renyi divergence of order ``alpha``, ``delta = e^((alpha-1)(tau-eps))
    (alpha-1)^(alpha-1) / alpha^alpha`` (Canonne, Kamath and Steinke 2020, proposition 12): an upper
    bound. Of guarantees that state divergences at some orders, all that the best of these proves
    (Asoodeh et al. 2021, theorem 3). The lower end is the closed form of that part of the plan that
    costs most. Each epsilon and its order are added to ``found``, where there is one.

    References:
        Mironov, "Renyi Differential Privacy", CSF 2017, proposition 1 (divergences add up);
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020,
        proposition 12 (the conversion); Asoodeh, Liao, Calmon, Kosut and Sankar, "Three Variants of
        Differential Privacy", 2021, theorem 3 (that of stated divergences).
    """

    found: list[tuple[float, float]] | None = field(default=None, compare=False)
    name: ClassVar[str] = "rdp"
    summary: ClassVar[str] = "upper bound by Renyi divergences, best real order"

    def epsilon_upper(self, terms: Terms, delta: float) -> float:
        stated = _stated(terms)
        by_points = epsilon_and_c(stated, delta) if stated else (math.inf, math.inf)
        epsilon, c = min(_epsilon_and_c(terms, delta), by_points)
        if self.found is not None:
            self.found.append((epsilon, 1.0 + c))
        return epsilon

    def delta_upper(self, terms: Terms, epsilon: float) -> float:
        stated = _stated(terms)
        by_points = delta_by_orders(stated, epsilon) if stated else 1.0
        return min(delta_upper(terms, epsilon), by_points)


def _stated(terms: Terms) -> RenyiPoints | None:
    """Return the divergences of guarantees that state them at some orders; None of other losses."""
    if not all(isinstance(loss, RenyiCurveLoss | ConcentratedLoss) for loss, _ in terms):
        return None
    last = largest_order(terms)
    # A divergence increases with its order, which is rounded down.
    orders = {c: (1.0 + c) * (1.0 - 2.0 * ULP) for c in breakpoints(terms) if c <= last}
    points = [
        (order, size)
        for c, order in orders.items()
        if order > 1.0 and (size := sum_of_bounds(terms, c) / c * (1.0 + 4.0 * ULP)) < math.inf
    ]
    return RenyiPoints(points) if points else None


def epsilon_upper(terms: Terms, delta: float) -> float:
    """Return a proven upper bound of epsilon, from the best order."""
    return _epsilon_and_c(terms, delta)[0]


def _epsilon_and_c(terms: Terms, delta: float) -> tuple[float, float]:
    """Return a proven upper bound of epsilon, and the c of its order; inf of the largest losses."""
    log_delta, _ = log_readings(delta)
    orders = candidate_orders(terms, optimal_order(terms, log_delta))
    best, c = min((_epsilon_upper(terms, log_delta, c), c) for c in orders)
    # Epsilon is at most the sum of the largest losses.
    most = largest_loss(terms)
    return max(min(best, most), 0.0), c if best < most else math.inf


def delta_upper(terms: Terms, epsilon: float) -> float:
    """Return a proven upper bound of delta at an epsilon up to the largest loss."""
    # Next to the largest loss the best order is so large that only round-off would be left.
    best = min(
        optimal_order_at(terms, epsilon),
        _LARGEST_EXPONENT / max(epsilon, _LARGEST_EXPONENT * 1e-30),
    )
    orders = candidate_orders(terms, best)
    if best * epsilon > _VANISHING_EXPONENT:
        # A quadrature may not reach the best order; at this one delta vanishes as well.
        orders = (*orders, _VANISHING_EXPONENT / epsilon)
    log_delta = min(_log_delta_upper(terms, epsilon, c) for c in orders)
    return min(max(math.exp(min(log_delta, 0.0)) * (1.0 + OUTWARD_128), 5e-324), 1.0)


def _epsilon_upper(terms: Terms, log_delta: float, c: float) -> float:
    """Return a proven upper bound of epsilon from the divergence of order 1 + c."""
    if c <= 0.0:
        return math.inf
    value = (sum_of_bounds(terms, c) - log_delta + log_cks_factor(c)) / c
    return value + OUTWARD_128 * (abs(value) + (abs(log_delta) + abs(log_cks_factor(c))) / c)


def _log_delta_upper(terms: Terms, epsilon: float, c: float) -> float:
    """Return a proven upper bound of ln delta from the divergence of order 1 + c."""
    if c <= 0.0:
        return 0.0
    cgf = sum_of_bounds(terms, c)
    log_delta = cgf - c * epsilon + log_cks_factor(c)
    return log_delta + OUTWARD_128 * (abs(cgf) + c * epsilon + abs(log_cks_factor(c)))


def best_order(plan: Mechanism, delta: float) -> float:
    """Return the order whose Renyi divergence gives ``hs.epsilon(plan, delta, accountant="rdp")``.

    The alpha > 1 at which the epsilon that a divergence of this order proves is least, of all real
    orders and in the direction that costs most.

    Guarantees:
        About the best one; the epsilon is proven by exactly this order.

    Edge cases:
        inf where the largest loss, the divergence of order infinity, is what counts: for plans that
        release nothing, at delta 0 and 1, and where epsilon is infinite.

    Args:
        plan: A mechanism or plan.
        delta: In [0, 1].

    Raises:
        UnsupportedError: If divergences of a part of the plan are not known.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 1000
        >>> round(hs.accountants.best_order(plan, delta=1e-6), 2)
        9.79
    """
    at = _validate.real("delta", delta)
    directions = composition_of(checked("plan", plan), RDP.name).directions
    if not 0.0 < at < 1.0:
        return math.inf
    return max((_of_direction(terms, at) for terms in directions), key=lambda one: one[0])[1]


def _of_direction(terms: Terms, delta: float) -> tuple[float, float]:
    watched = RDP([])
    epsilon = watched._epsilon(terms, delta).upper
    _, order = max(watched.found or [], default=(0.0, math.inf))
    return epsilon, order if epsilon < math.inf else math.inf


# The orders of the moments in the authors' code.
MOMENTS: Final = range(1, 33)


@final
class Moments(BoundAccountant):
    """The moments accountant of Abadi et al. 2016, to reproduce what papers report.

    The log moments ``alpha(k) = ln E[exp(k L)]``, ``k = 1, ..., 32``, add up over the runs, and

        epsilon = min over k of (alpha(k) + ln(1/delta)) / k,
        delta   = min over k of exp(alpha(k) - k epsilon).

    Guarantees:
        An upper bound, never below that of "rdp", whose orders are real and whose conversion is
        sharper. The moments are proven, rounding included, where the authors' code integrates
        numerically. The lower end is the closed form of that part of the plan that costs most.

        The paper takes the larger of the two directions for each moment before they are added up
        and read; here each direction is read on its own and the larger answer taken, which is
        never more, and the same where one direction is the worse throughout, as removing is for
        the sampled Gaussian.

        Papers that took another grid of orders are reproduced by ``hockeystick.convert`` to
        ``RenyiDP`` at these orders, and ``hockeystick.conversions.theorems.mironov`` at the best.

    Edge cases:
        Where not even the first moment is known to be finite, epsilon is the largest loss.

    References:
        Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang, "Deep Learning with
        Differential Privacy", CCS 2016, theorem 2 and section 3.2; their code keeps 32 moments.
    """

    name: ClassVar[str] = "moments"
    summary: ClassVar[str] = "upper bound by 32 integer moments, as published by Abadi et al. 2016"

    def epsilon_upper(self, terms: Terms, delta: float) -> float:
        log_inverse = -log_readings(delta)[0]
        best = min(MOMENTS, key=lambda k: (total(terms, float(k)).value + log_inverse) / k)
        return (log_moment_upper(terms, best) + log_inverse) / best * (1.0 + OUTWARD_128)

    def delta_upper(self, terms: Terms, epsilon: float) -> float:
        best = min(MOMENTS, key=lambda k: total(terms, float(k)).value - k * epsilon)
        moment = log_moment_upper(terms, best)
        log_delta = moment - best * epsilon + OUTWARD_128 * (moment + best * epsilon)
        return math.exp(min(log_delta, 0.0)) * (1.0 + OUTWARD_128)


def log_moment_upper(terms: Terms, order: int) -> float:
    """Return ``alpha(k)``, the composition's log moment, rounded up; inf where it is not known."""
    return sum_of_bounds(terms, float(order)) * (1.0 + OUTWARD_128)
