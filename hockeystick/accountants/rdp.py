"""Accountants by Renyi divergences: the best order, and the moments accountant of Abadi et al."""

from __future__ import annotations

import math
from typing import ClassVar, Final, final

from hockeystick import _validate
from hockeystick.accountants.base import DirectedAccountant, Interval, Kind, composition_of
from hockeystick.accountants.closed_form import least_delta, least_epsilon
from hockeystick.accountants.orders import candidate_orders, optimal_order, optimal_order_at
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.numerics import ULP, log_readings
from hockeystick.privacy_loss import Terms, largest_loss
from hockeystick.privacy_loss.bounds.moments import log_cks_factor
from hockeystick.privacy_loss.core.terms import breakpoints, largest_order, sum_of_bounds, total
from hockeystick.privacy_loss.guarantees import ConcentratedLoss, RenyiCurveLoss
from hockeystick.tradeoffs.profiles.one_order import delta_by_orders, epsilon_and_c
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiPoints

_OUTWARD = 2.0**-46
# The largest c epsilon at which the round-off of an exponent keeps a bound of delta useful.
_LARGEST_EXPONENT = 2.0**38
# c epsilon at which exp(K(c) - c epsilon) underflows where K(c) is at most half of it.
_VANISHING_EXPONENT = 2000.0


@final
class RDP(DirectedAccountant):
    """Renyi differential privacy of every order, converted at the best one.

    With ``tau`` the Renyi divergence of order ``alpha``, ``delta = e^((alpha-1)(tau-eps))
    (alpha-1)^(alpha-1) / alpha^alpha`` (Canonne, Kamath and Steinke 2020, proposition 12): an upper
    bound. Of guarantees that state divergences at some orders, all that the best of these proves
    (Asoodeh et al. 2021, theorem 3). The lower end is the closed form of that part of the plan that
    costs most.

    References:
        Mironov, "Renyi Differential Privacy", CSF 2017, proposition 1 (divergences add up);
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020,
        proposition 12 (the conversion); Asoodeh, Liao, Calmon, Kosut and Sankar, "Three Variants of
        Differential Privacy", 2021, theorem 3 (that of stated divergences).
    """

    name: ClassVar[str] = "rdp"
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "upper bound by Renyi divergences, best real order"

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        """Return epsilon of one direction, the upper end from the best order."""
        if not terms:
            return Interval.point(0.0)
        lower = least_epsilon(terms, delta)
        upper = max(epsilon_and_order(terms, delta)[0], lower)
        return Interval(lower, upper, upper)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        """Return delta of one direction, the upper end from the best order."""
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        lower, stated = least_delta(terms, epsilon), _stated(terms)
        by_points = delta_by_orders(stated, epsilon) if stated else 1.0
        upper = max(min(delta_upper(terms, epsilon), by_points), lower)
        return Interval(lower, upper, upper)


def _stated(terms: Terms) -> RenyiPoints | None:
    """Return the divergences of guarantees that state them at some orders; None of other losses.

    They bound both orders of a pair, of which the best conversion of one order makes use.
    """
    if not all(isinstance(loss, RenyiCurveLoss | ConcentratedLoss) for loss, _ in terms):
        return None
    last = largest_order(terms)
    # A divergence increases with its order, which is rounded down.
    orders = {c: (1.0 + c) * (1.0 - 2.0 * ULP) for c in breakpoints(terms) if c <= last}
    points = [
        (order, sum_of_bounds(terms, c) / c * (1.0 + 4.0 * ULP))
        for c, order in orders.items()
        if order > 1.0
    ]
    known = [(order, size) for order, size in points if size < math.inf]
    return RenyiPoints(known) if known else None


def epsilon_and_order(terms: Terms, delta: float) -> tuple[float, float]:
    """Return a proven upper bound of epsilon, and the order alpha that it is from."""
    stated = _stated(terms)
    by_points = epsilon_and_c(stated, delta) if stated else (math.inf, math.inf)
    epsilon, c = min(_epsilon_and_c(terms, delta), by_points)
    return epsilon, 1.0 + c


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
    return min(max(math.exp(min(log_delta, 0.0)) * (1.0 + _OUTWARD), 5e-324), 1.0)


def _epsilon_upper(terms: Terms, log_delta: float, c: float) -> float:
    """Return a proven upper bound of epsilon from the divergence of order 1 + c."""
    if c <= 0.0:
        return math.inf
    value = (sum_of_bounds(terms, c) - log_delta + log_cks_factor(c)) / c
    return value + _OUTWARD * (abs(value) + (abs(log_delta) + abs(log_cks_factor(c))) / c)


def _log_delta_upper(terms: Terms, epsilon: float, c: float) -> float:
    """Return a proven upper bound of ln delta from the divergence of order 1 + c."""
    if c <= 0.0:
        return 0.0
    cgf = sum_of_bounds(terms, c)
    log_delta = cgf - c * epsilon + log_cks_factor(c)
    return log_delta + _OUTWARD * (abs(cgf) + c * epsilon + abs(log_cks_factor(c)))


@final
class _Watched(DirectedAccountant):
    """Accountant "rdp", which keeps each epsilon that it reads, with its order."""

    name: ClassVar[str] = RDP.name
    kind: ClassVar[Kind] = RDP.kind
    summary: ClassVar[str] = RDP.summary

    def __init__(self) -> None:
        self.read: list[tuple[float, float]] = []

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        """Return epsilon of one direction, the order of its upper end kept."""
        if terms:
            self.read.append(epsilon_and_order(terms, delta))
        return RDP().epsilon_of(terms, delta)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        return RDP().delta_of(terms, epsilon)


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
    branches = composition_of(checked("plan", plan), RDP.name).branches
    directions = [terms for one in branches for terms in (one.removing, one.adding)]
    if not 0.0 < at < 1.0:
        return math.inf
    return max((_of_direction(terms, at) for terms in directions), key=lambda one: one[0])[1]


def _of_direction(terms: Terms, delta: float) -> tuple[float, float]:
    """Return epsilon of one direction, and the order that it is from."""
    watched = _Watched()
    epsilon = watched._epsilon(terms, delta).upper
    _, order = max(watched.read, default=(0.0, math.inf))
    return epsilon, order if epsilon < math.inf else math.inf


# The orders of the moments in the authors' code.
MOMENTS: Final = range(1, 33)
_MOMENTS_OUTWARD: Final = 2.0**-46


@final
class Moments(DirectedAccountant):
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
    kind: ClassVar[Kind] = "bound"
    summary: ClassVar[str] = "upper bound by 32 integer moments, as published by Abadi et al. 2016"

    def epsilon_of(self, terms: Terms, delta: float) -> Interval:
        if not terms:
            return Interval.point(0.0)
        lower = least_epsilon(terms, delta)
        log_inverse = -log_readings(delta)[0]
        best = min(MOMENTS, key=lambda k: (total(terms, float(k)).value + log_inverse) / k)
        value = (log_moment_upper(terms, best) + log_inverse) / best
        upper = max(min(value * (1.0 + _MOMENTS_OUTWARD), largest_loss(terms)), lower)
        return Interval(lower, upper, upper)

    def delta_of(self, terms: Terms, epsilon: float) -> Interval:
        if epsilon >= largest_loss(terms):
            return Interval.point(0.0)
        lower = least_delta(terms, epsilon)
        best = min(MOMENTS, key=lambda k: total(terms, float(k)).value - k * epsilon)
        moment = log_moment_upper(terms, best)
        log_delta = moment - best * epsilon + _MOMENTS_OUTWARD * (moment + best * epsilon)
        upper = min(
            max(math.exp(min(log_delta, 0.0)) * (1.0 + _MOMENTS_OUTWARD), lower, 5e-324), 1.0
        )
        return Interval(lower, upper, upper)


def log_moment_upper(terms: Terms, order: int) -> float:
    """Return a proven upper bound of ``alpha(k)``, the composition's log moment.

    Args:
        terms: Losses and how often each of them runs.
        order: k, the order of the moment, at least 1.

    Returns:
        The bound, rounded up; inf where the moment is not known to be finite.

    Example:
        >>> from hockeystick.privacy_loss import GaussianLoss
        >>> round(log_moment_upper(((GaussianLoss(4.0), 100),), 2), 9)
        18.75
    """
    bounds = [(loss.cgf_bounds(float(order)), count) for loss, count in terms]
    return math.fsum(count * (k.midpoint + k.radius) for k, count in bounds) * (
        1.0 + _MOMENTS_OUTWARD
    )
