"""The best single order of a curve of Renyi divergences, found in floats and proven by mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from hockeystick.numerics.roots import increasing_root, minimum
from hockeystick.numerics.working_precision import working_digits
from hockeystick.tradeoffs.profiles.renyi_curve import (
    RenyiCurve,
    RenyiPoints,
    dual_log_delta,
    log_kink,
    response_moment,
)
from hockeystick.tradeoffs.rounding import DIGITS, least_epsilon, up

if TYPE_CHECKING:
    from mpmath import mpf

_ROUGH: Final = 1e-2
_FINER: Final = 1e-5
_FINE: Final = 1e-7
# Rounds, and after how many a root is sought instead.
_ROUNDS: Final = 10
_SLOW: Final = 5
_NEWTON: Final = 8
# Below this moment randomized response is known by the start of its series, to half the digits.
_SMALL: Final = 1e-12
_CLOSE: Final = 1e-13


@final
@dataclass(frozen=True, slots=True)
class Witness:
    """What proves a delta: an order ``1 + c`` and a gap, or the order's randomized response.

    By an order and a gap, delta is at most that of ``dual_log_delta``. The response is the least
    epsilon' whose randomized response has a K as large as the curve's at c, in both directions. The
    errors (alpha, beta) that the order allows, in both directions, are a convex set that meets the
    diagonal at the errors of this response; up to ``epsilon = log_kink`` a line of slope
    ``-e^epsilon`` touches the set there, so that no delta is larger than that of the response.
    """

    c: float
    gap: float
    response: float | None = None

    def log_delta(self, curve: RenyiCurve, epsilon: float) -> float:
        """Return an unproven ln delta in floats; inf where the witness does not reach."""
        if self.response is not None:
            return _log_response_delta(epsilon, self.response)
        return _dual_anywhere(self.c, curve.moment_at(self.c), epsilon, self.gap)

    def delta(self, curve: RenyiCurve, epsilon: mpf) -> mpf:
        """Return delta, proven for this epsilon, to mpmath's precision; 1 where it proves less."""
        from mpmath import mp

        c = mp.mpf(self.c)
        moment = curve.moment_at(c)
        if self.response is None:
            return min(mp.exp(dual_log_delta(c, moment, epsilon, mp.mpf(self.gap), mp)[0]), mp.one)
        response = _polished(c, moment, mp.mpf(self.response))
        if response_moment(c, response, mp) < moment or epsilon > log_kink(c, response, mp):
            return mp.one
        return max(-mp.expm1(epsilon - response) / (1 + mp.exp(-response)), mp.zero)


def delta_by_orders(curve: RenyiCurve, epsilon: float) -> float:
    """Return the least delta that a single order of the curve proves, rounded up."""
    from mpmath import mp

    if epsilon == math.inf:
        return 0.0
    with working_digits(_digits(curve)):
        found = best(curve, epsilon)
        value = found.delta(curve, mp.mpf(epsilon))
        # What overflows proves nothing.
        return min(up(value) or math.ulp(0.0), 1.0) if value <= 1 else 1.0


def epsilon_by_orders(curve: RenyiCurve, delta: float) -> float:
    """Return the least epsilon that a single order of the curve proves, rounded up.

    Each round takes the best order at the last epsilon, and then the least epsilon that it proves.
    """
    log_delta = math.log(delta)
    first = _first_order(curve, log_delta)
    epsilon = max(_first_epsilon(curve, first, log_delta), 0.0)
    found = best(curve, epsilon)
    for k in range(_ROUNDS):
        if k == _SLOW:
            epsilon = _root(curve, log_delta, epsilon)
            found = best(curve, epsilon)
        last = epsilon
        found, epsilon = _moved(curve, found, log_delta, last)
        if abs(epsilon - last) <= _CLOSE * epsilon or epsilon == 0.0 == last:
            break
        found = best(curve, epsilon)
    else:
        found, epsilon = _moved(curve, found, log_delta, epsilon)
    rival = _moved(curve, _least(curve, first, epsilon, _FINE)[1], log_delta, epsilon)
    with working_digits(_digits(curve)):
        return min(_shown(curve, *one, delta) for one in ((found, epsilon), rival))


def _shown(curve: RenyiCurve, witness: Witness, epsilon: float, delta: float) -> float:
    """Return an epsilon that a witness is proven to have, or its order without a gap."""
    from mpmath import mp

    if witness.delta(curve, mp.mpf(epsilon)) > delta * (1.0 + 1e-9):
        witness = Witness(witness.c, math.inf)
    return least_epsilon(lambda e: witness.delta(curve, e), delta, epsilon)


def _root(curve: RenyiCurve, log_delta: float, epsilon: float) -> float:
    """Return about the least epsilon, where the rounds come nearer but slowly."""

    def above(e: float) -> float:
        return log_delta - best(curve, max(e, 0.0)).log_delta(curve, max(e, 0.0))

    stride = 0.25 * epsilon + 1e-9
    return max(increasing_root(above, epsilon, stride=stride, tolerance=1e-6 * epsilon), 0.0)


def best(curve: RenyiCurve, epsilon: float) -> Witness:
    """Return about the best witness at an epsilon."""
    orders = curve.orders
    costs = [_least(curve, c, epsilon, _ROUGH)[0] for c in orders]
    index = min(range(len(orders)), key=costs.__getitem__)
    c = orders[index]
    low, high = orders[max(index - 1, 0)], orders[min(index + 1, len(orders) - 1)]
    sides = [(low, c), (c, high)] if len(orders) < 3 or _cornered(curve) else [(low, high)]
    tried = [_least(curve, c, epsilon, _FINE)]
    for left, right in sides:
        if left < right:
            between = _between(lambda t: _least(curve, t, epsilon, _FINER)[0], left, right)
            tried.append(_least(curve, between, epsilon, _FINE))
    return min(tried, key=lambda one: one[0])[1]


def _cornered(curve: RenyiCurve) -> bool:
    """Return whether K has corners at the orders of the curve."""
    first, last = curve.orders[0], curve.orders[-1]
    return isinstance(curve, RenyiPoints) and first < last


def _between(
    cost: Callable[[float], float], left: float, right: float, *, tolerance: float = 1e-5
) -> float:
    """Return where a cost is least, by golden sections of the logarithm."""
    found = minimum(
        lambda t: cost(math.exp(t)), math.log(left), math.log(right), tolerance=tolerance
    )
    return min(max(math.exp(found), left), right)


def _least(curve: RenyiCurve, c: float, epsilon: float, tolerance: float) -> tuple[float, Witness]:
    """Return the least ln delta of one order, and its witness."""
    moment = curve.moment_at(c)
    if response_moment(c, epsilon, math) < moment:
        response = _response(c, moment)
        if epsilon <= log_kink(c, response, math) * (1.0 - 1e-12):
            return _log_response_delta(epsilon, response), Witness(c, math.inf, response)
    least = min(1e-9, 1e-3 * _small_response(c, moment))
    low, high = math.log(max(epsilon, least)), math.log(epsilon + 4.0 + 60.0 / c)
    found = minimum(
        lambda t: _dual(c, moment, epsilon, math.exp(t)), low, high, tolerance=tolerance
    )
    gap = math.exp(found)
    value, plain = _dual(c, moment, epsilon, gap), _dual(c, moment, epsilon, math.inf)
    return (value, Witness(c, gap)) if value < plain else (plain, Witness(c, math.inf))


def _dual(c: float, moment: float, epsilon: float, gap: float) -> float:
    """Return ln delta by one order and gap; falling to the left of what makes sense."""
    log_s = epsilon + math.log1p(1.0 / c) - gap
    log_s += math.log(math.expm1(-c * gap) / math.expm1(-(1.0 + c) * gap))
    if log_s >= 0.0:
        return 1e6 + log_s
    return _dual_anywhere(c, moment, epsilon, gap)


def _dual_anywhere(c: float, moment: float, epsilon: float, gap: float) -> float:
    """Return ln delta by one order and gap, large where a float cannot hold it."""
    try:
        return float(dual_log_delta(c, moment, epsilon, gap, math)[0])
    except (ValueError, OverflowError):
        return 1e6


def _response(c: float, moment: float) -> float:
    """Return an epsilon at which randomized response has a moment of at least the given one."""
    if moment < _SMALL:
        return _small_response(c, moment)
    return increasing_root(
        lambda e: response_moment(c, e, math) - moment, moment / c, tolerance=1e-14
    )


def _small_response(c: float, moment: float) -> float:
    """Return where randomized response has a small moment: ``c (1 + c) eps^2 / 2`` is its start."""
    return math.sqrt(2.0 * moment / c / (1.0 + c)) or 1e-300


def _polished(c: mpf, moment: mpf, response: mpf) -> mpf:
    """Return the root by Newton's method, and a trifle more, to mpmath's precision."""
    from mpmath import mp

    for _ in range(_NEWTON):
        own, far = mp.exp(-response), mp.exp(-(2 * c + 1) * response)
        slope = c + own / (1 + own) - (2 * c + 1) * far / (1 + far)
        response -= (response_moment(c, response, mp) - moment) / slope
    return response * (1 + mp.mpf(2) ** -90)


def _log_response_delta(epsilon: float, response: float) -> float:
    """Return the logarithm of randomized response's delta."""
    if epsilon >= response:
        return -math.inf
    return math.log(-math.expm1(epsilon - response)) - math.log1p(math.exp(-response))


def _moved(
    curve: RenyiCurve, witness: Witness, log_delta: float, start: float
) -> tuple[Witness, float]:
    """Return about the least epsilon that a witness proves, and the witness there.

    The gap moves along with epsilon: then s, where the bound touches 0, stays about where it is.
    """

    def at(epsilon: float) -> Witness:
        return replace(witness, gap=max(witness.gap + (epsilon - start), 1e-300))

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
    """Return epsilon by one order and proposition 12 of Canonne, Kamath and Steinke."""
    moment = float(curve.moment_at(c))
    return (moment - log_delta - c * math.log1p(1.0 / c) - math.log1p(c)) / c


def _first_order(curve: RenyiCurve, log_delta: float) -> float:
    """Return the order that is best by that proposition: next to the best where delta is small."""
    orders = curve.orders

    def cost(c: float) -> float:
        return _first_epsilon(curve, c, log_delta)

    index = min(range(len(orders)), key=lambda k: cost(orders[k]))
    low, high = orders[max(index - 1, 0)], orders[min(index + 1, len(orders) - 1)]
    if _cornered(curve) or low == high:
        return orders[index]
    return _between(cost, low, high, tolerance=1e-9)


def _digits(curve: RenyiCurve) -> int:
    """Return how many digits survive the cancellation where divergences are tiny."""
    least = min(curve.moment_at(c) for c in curve.orders)
    if not least < 1.0:
        return DIGITS
    return DIGITS + 2 * math.ceil(-math.log10(max(least, 1e-300)))
