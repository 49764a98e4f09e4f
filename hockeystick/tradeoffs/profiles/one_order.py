"""(epsilon, delta) from the best single Renyi order, searched in floats and proven by mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, final

from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.roots import increasing_root, minimum
from hockeystick.tradeoffs.attack_words import DIGITS, least_epsilon, up
from hockeystick.tradeoffs.profiles.renyi_curve import (
    RenyiCurve,
    RenyiPoints,
    dual_log_delta,
    log_diagonal_slope,
    response_moment,
)

_COARSE_TOLERANCE: Final = 1e-2
_SEARCH_TOLERANCE: Final = 1e-5
_FINAL_TOLERANCE: Final = 1e-7
# The largest number of alternating rounds, and the number after which a root is sought instead.
_ROUNDS: Final = 10
_ROUNDS_BEFORE_ROOT: Final = 5
_NEWTON_STEPS: Final = 8
# Below this moment the first term of the series of randomized response is used (half the digits).
_SMALL_MOMENT: Final = 1e-12
_EPSILON_TOLERANCE: Final = 1e-13


@final
@dataclass(frozen=True, slots=True)
class SingleOrderBound:
    """An upper bound of delta by one order ``1 + c``, in one of two ways.

    Without a ``response_epsilon`` it is that of ``dual_log_delta`` with this ``contact_gap``.

    Else that is the least epsilon' whose randomized response has K at least as large as the curve's
    at c. The error rates (alpha, beta) that the order allows, in both directions, are a convex set
    that meets the diagonal at those of this randomized response. For ``epsilon <=
    log_diagonal_slope`` the line of slope ``-e^epsilon`` through that point supports the set, so
    that delta is at most that of the randomized response.
    """

    c: float
    contact_gap: float
    response_epsilon: float | None = None

    def log_delta(self, curve: RenyiCurve, epsilon: float) -> float:
        """Return ln delta in floats, unproven."""
        if self.response_epsilon is not None:
            return _log_response_delta(epsilon, self.response_epsilon)
        return _dual(self.c, curve.moment_at(self.c), epsilon, self.contact_gap)

    def delta(self, curve: RenyiCurve, epsilon: mpf) -> mpf:
        """Return the proven bound of delta at this epsilon, to mpmath's precision; at most 1."""
        c = mp.mpf(self.c)
        moment = curve.moment_at(c)
        if self.response_epsilon is None:
            return min(
                mp.exp(dual_log_delta(c, moment, epsilon, mp.mpf(self.contact_gap), mp)[0]), mp.one
            )
        response_epsilon = _refined_response(c, moment, mp.mpf(self.response_epsilon))
        if response_moment(c, response_epsilon, mp) < moment or epsilon > log_diagonal_slope(
            c, response_epsilon, mp
        ):
            return mp.one
        return max(-mp.expm1(epsilon - response_epsilon) / (1 + mp.exp(-response_epsilon)), mp.zero)


def delta_by_orders(curve: RenyiCurve, epsilon: float) -> float:
    """Return the least upper bound of delta by a single order of the curve, rounded up."""
    if epsilon == math.inf:
        return 0.0
    with working_digits(_digits(curve)):
        found = best_bound(curve, epsilon)
        value = found.delta(curve, mp.mpf(epsilon))
        # An overflow gives the trivial bound.
        return min(up(value) or math.ulp(0.0), 1.0) if value <= 1 else 1.0


def epsilon_by_orders(curve: RenyiCurve, delta: float) -> float:
    """Return the least upper bound of epsilon by a single order of the curve, rounded up."""
    return epsilon_and_c(curve, delta)[0]


def epsilon_and_c(curve: RenyiCurve, delta: float) -> tuple[float, float]:
    """Return the same bound, and the ``c = alpha - 1`` of its order.

    Each round takes the best order at the last epsilon, and then the epsilon of that order's bound.
    """
    log_delta = math.log(delta)
    first = _first_order(curve, log_delta)
    epsilon = max(_first_epsilon(curve, first, log_delta), 0.0)
    found = best_bound(curve, epsilon)
    for k in range(_ROUNDS):
        if k == _ROUNDS_BEFORE_ROOT:
            epsilon = _estimated_epsilon_by_root(curve, log_delta, epsilon)
            found = best_bound(curve, epsilon)
        last = epsilon
        found, epsilon = _estimated_epsilon(curve, found, log_delta, last)
        if abs(epsilon - last) <= _EPSILON_TOLERANCE * epsilon or epsilon == 0.0 == last:
            break
        found = best_bound(curve, epsilon)
    else:
        found, epsilon = _estimated_epsilon(curve, found, log_delta, epsilon)
    _, by_first = _best_at_order(curve, first, epsilon, _FINAL_TOLERANCE)
    rival = _estimated_epsilon(curve, by_first, log_delta, epsilon)
    with working_digits(_digits(curve)):
        return min(
            (_certified_epsilon(curve, bound, start, delta), bound.c)
            for bound, start in ((found, epsilon), rival)
        )


def _certified_epsilon(
    curve: RenyiCurve, bound: SingleOrderBound, epsilon: float, delta: float
) -> float:
    """Return a proven epsilon of a bound, or of its order's Canonne-Kamath-Steinke bound."""
    if bound.delta(curve, mp.mpf(epsilon)) > delta * (1.0 + 1e-9):
        bound = SingleOrderBound(bound.c, math.inf)
    return least_epsilon(lambda e: bound.delta(curve, e), delta, epsilon)


def _estimated_epsilon_by_root(curve: RenyiCurve, log_delta: float, epsilon: float) -> float:
    """Return an estimate of the least epsilon, for where the rounds converge slowly."""

    def above(e: float) -> float:
        return log_delta - best_bound(curve, max(e, 0.0)).log_delta(curve, max(e, 0.0))

    stride = 0.25 * epsilon + 1e-9
    return max(increasing_root(above, epsilon, stride=stride, tolerance=1e-6 * epsilon), 0.0)


def best_bound(curve: RenyiCurve, epsilon: float) -> SingleOrderBound:
    """Return the approximately best bound of delta at an epsilon."""
    orders = curve.orders
    costs = [_best_at_order(curve, c, epsilon, _COARSE_TOLERANCE)[0] for c in orders]
    index = min(range(len(orders)), key=costs.__getitem__)
    c = orders[index]
    low, high = orders[max(index - 1, 0)], orders[min(index + 1, len(orders) - 1)]
    sides = (
        [(low, c), (c, high)] if len(orders) < 3 or _is_piecewise_linear(curve) else [(low, high)]
    )
    tried = [_best_at_order(curve, c, epsilon, _FINAL_TOLERANCE)]
    for left, right in sides:
        if left < right:
            between = _minimiser(
                lambda t: _best_at_order(curve, t, epsilon, _SEARCH_TOLERANCE)[0], left, right
            )
            tried.append(_best_at_order(curve, between, epsilon, _FINAL_TOLERANCE))
    return min(tried, key=lambda one: one[0])[1]


def _is_piecewise_linear(curve: RenyiCurve) -> bool:
    first, last = curve.orders[0], curve.orders[-1]
    return isinstance(curve, RenyiPoints) and first < last


def _minimiser(
    cost: Callable[[float], float], left: float, right: float, *, tolerance: float = 1e-5
) -> float:
    """Return the minimiser of a cost, by golden sections of the logarithm."""
    found = minimum(
        lambda t: cost(math.exp(t)), math.log(left), math.log(right), tolerance=tolerance
    )
    return min(max(math.exp(found), left), right)


def _best_at_order(
    curve: RenyiCurve, c: float, epsilon: float, tolerance: float
) -> tuple[float, SingleOrderBound]:
    """Return the least ln delta of one order, and its witness."""
    moment = curve.moment_at(c)
    if response_moment(c, epsilon, math) < moment:
        response_epsilon = _response(c, moment)
        if epsilon <= log_diagonal_slope(c, response_epsilon, math) * (1.0 - 1e-12):
            return _log_response_delta(epsilon, response_epsilon), SingleOrderBound(
                c, math.inf, response_epsilon
            )
    least = min(1e-9, 1e-3 * _small_response(c, moment))
    low, high = math.log(max(epsilon, least)), math.log(epsilon + 4.0 + 60.0 / c)
    found = minimum(
        lambda t: _dual(c, moment, epsilon, math.exp(t)), low, high, tolerance=tolerance
    )
    gaps = math.inf, math.exp(found)
    tried = [(_dual(c, moment, epsilon, gap), SingleOrderBound(c, gap)) for gap in gaps]
    return min(tried, key=lambda one: one[0])


def _dual(c: float, moment: float, epsilon: float, contact_gap: float) -> float:
    """Return ln delta by one order and gap; a large number where it overflows, or ``s >= 1``.

    The latter falls towards where s is less.
    """
    try:
        log_s = epsilon + math.log1p(1.0 / c) - contact_gap
        log_s += math.log(math.expm1(-c * contact_gap) / math.expm1(-(1.0 + c) * contact_gap))
        if log_s >= 0.0:
            return 1e6 + log_s
        return float(dual_log_delta(c, moment, epsilon, contact_gap, math)[0])
    except (ValueError, ArithmeticError):
        return 1e6


def _response(c: float, moment: float) -> float:
    """Return an epsilon at which randomized response has a moment of at least the given one."""
    if moment < _SMALL_MOMENT:
        return _small_response(c, moment)
    return increasing_root(
        lambda e: response_moment(c, e, math) - moment, moment / c, tolerance=1e-14
    )


def _small_response(c: float, moment: float) -> float:
    """Return eps from ``moment = c (1 + c) eps^2 / 2``, the first term of the series in eps."""
    return math.sqrt(2.0 * moment / c / (1.0 + c)) or 1e-300


def _refined_response(c: mpf, moment: mpf, response_epsilon: mpf) -> mpf:
    """Return the root by Newton's method, rounded up, to mpmath's precision."""
    for _ in range(_NEWTON_STEPS):
        own, far = mp.exp(-response_epsilon), mp.exp(-(2 * c + 1) * response_epsilon)
        slope = c + own / (1 + own) - (2 * c + 1) * far / (1 + far)
        response_epsilon -= (response_moment(c, response_epsilon, mp) - moment) / slope
    return response_epsilon * (1 + mp.mpf(2) ** -90)


def _log_response_delta(epsilon: float, response_epsilon: float) -> float:
    if epsilon >= response_epsilon:
        return -math.inf
    return math.log(-math.expm1(epsilon - response_epsilon)) - math.log1p(
        math.exp(-response_epsilon)
    )


def _estimated_epsilon(
    curve: RenyiCurve, bound: SingleOrderBound, log_delta: float, start: float
) -> tuple[SingleOrderBound, float]:
    """Return about the least epsilon that a witness proves, and the witness there.

    The gap increases with epsilon, so that the contact point s stays about the same.
    """

    def at(epsilon: float) -> SingleOrderBound:
        return replace(bound, contact_gap=max(bound.contact_gap + (epsilon - start), 1e-300))

    if at(0.0).log_delta(curve, 0.0) <= log_delta:
        return at(0.0), 0.0
    epsilon = increasing_root(
        lambda e: log_delta - at(max(e, 0.0)).log_delta(curve, max(e, 0.0)),
        start,
        stride=1e-8 * (start + 1e-6),
        tolerance=1e-15 * start,
    )
    return at(max(epsilon, 0.0)), max(epsilon, 0.0)


def _first_epsilon(curve: RenyiCurve, c: float, log_delta: float) -> float:
    """Return epsilon by one order and proposition 12 of Canonne, Kamath and Steinke (2020)."""
    moment = float(curve.moment_at(c))
    return (moment - log_delta - c * math.log1p(1.0 / c) - math.log1p(c)) / c


def _first_order(curve: RenyiCurve, log_delta: float) -> float:
    """Return the best order by that proposition: close to the best one where delta is small."""
    orders = curve.orders

    def cost(c: float) -> float:
        return _first_epsilon(curve, c, log_delta)

    index = min(range(len(orders)), key=lambda k: cost(orders[k]))
    low, high = orders[max(index - 1, 0)], orders[min(index + 1, len(orders) - 1)]
    if _is_piecewise_linear(curve) or low == high:
        return orders[index]
    return _minimiser(cost, low, high, tolerance=1e-9)


def _digits(curve: RenyiCurve) -> int:
    """Return the working digits that survive the cancellation where divergences are tiny."""
    least = min(curve.moment_at(c) for c in curve.orders)
    if not least < 1.0:
        return DIGITS
    return DIGITS + 2 * math.ceil(-math.log10(max(least, 1e-300)))
