"""The trade-off function that bounds of Renyi divergences imply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import Ends, SymmetricTradeOff
from hockeystick.tradeoffs.functions.closed_forms import GaussianTradeOff
from hockeystick.tradeoffs.profiles.profile import (
    Array,
    GaussianProfile,
    PerfectPrivacy,
    Profile,
    ProfileValues,
)
from hockeystick.tradeoffs.profiles.renyi_curve import (
    RenyiCurve,
    RenyiPoints,
    dual_log_delta,
    golden,
    log_diagonal_slope,
    response_moment,
)

# Bisection steps: down to the last bit, and for unproven estimates.
_HALVINGS: Final = 80
_HALVINGS_ESTIMATE: Final = 44
_SMALLEST: Final = 5e-324

# The logarithms of the probabilities of a binary outcome.
Logs: TypeAlias = tuple[Array, Array]


@final
@dataclass(frozen=True, slots=True)
class RenyiTradeOff(SymmetricTradeOff):
    """The trade-off function that Renyi divergences of both orders of a pair imply.

    ``f(x)`` is the largest, over the orders a, of the least y with

        x^a (1-y)^(1-a) + (1-x)^a y^(1-a) <= e^((a-1) tau),   and the same with x and y swapped.

    By data processing a test turns a pair into two outcomes, whose divergences these are; the two
    outcomes are such a pair themselves, so that no larger f is implied.

    Guarantees:
        Calling f returns a proven lower end. With finitely many orders both ends of ``bounds``
        are as near as rounding allows; for a line, ``RenyiLine``, the orders are searched: the
        lower end holds whatever is found, and the upper end is that of the Gaussian on the line.
        ``delta`` and ``epsilon`` are those of the best single order, the fixed point of f included.

    Args:
        curve: The divergences, ``RenyiPoints`` or ``RenyiLine``.

    References:
        Zhu, Dong and Wang 2022, section 5; van Erven and Harremoes 2014, theorem 9.

    Example:
        >>> from hockeystick.tradeoffs.functions.renyi import RenyiPoints, RenyiTradeOff
        >>> f = RenyiTradeOff(RenyiPoints([(2, 0.5)]))
        >>> print(f"{f(0.1):.9f}")
        0.658370295
    """

    curve: RenyiCurve

    @property
    def forward(self) -> Profile:
        return PerfectPrivacy() if self.curve.is_perfect else RenyiProfile(self.curve)

    def _type_ii(self, alpha: Array) -> Ends:
        z = self._logits(alpha)
        lower, upper = _sigmoid(-z.upper, -1), _sigmoid(-z.lower, 1)
        return Ends(np.minimum(lower, 1.0 - alpha), np.minimum(upper, 1.0 - alpha))

    def _power(self, alpha: Array) -> Ends:
        z = self._logits(alpha)
        lower, upper = _sigmoid(z.lower, -1), _sigmoid(z.upper, 1)
        return Ends(np.maximum(lower, alpha), np.maximum(upper, alpha))

    def _logits(self, alpha: Array) -> Ends:
        """Return ends of ``ln((1-f)/f)``; -inf where alpha is 0, inf where it is 1."""
        z = np.full((2, alpha.size), -np.inf)
        z[:, alpha == 1.0] = np.inf
        inside = (0.0 < alpha) & (alpha < 1.0)
        x = np.log(alpha[inside]), np.log1p(-alpha[inside])
        if self.curve.is_perfect:
            edge, sides = x[0] - x[1], np.array([[-4.0], [4.0]])
            z[:, inside] = edge + sides * ULP * (1.0 + np.abs(edge))
        elif inside.any():
            z[:, inside] = self._by_best_order(x)
        return Ends(z[0], z[1])

    def _by_best_order(self, x: Logs) -> Array:
        with np.errstate(all="ignore"):
            c = self.curve.minimising_orders(
                lambda c: self._logit_bound(x, c, 0, _HALVINGS_ESTIMATE), x[0].size
            )
            upper = self._logit_bound(x, c, 1, _HALVINGS)
            if isinstance(self.curve, RenyiPoints):
                every = [
                    self._logit_bound(x, np.full_like(c, one), -1, _HALVINGS)
                    for one in self.curve.orders
                ]
                lower = np.min(every, axis=0)
            else:
                type_ii = GaussianTradeOff(self.curve.gaussian_mu).bounds(np.exp(x[0]))[1]
                type_ii = np.minimum(type_ii, 1.0)
                lower = np.log1p(-type_ii) - np.log(type_ii)
                lower -= 4.0 * ULP * (1.0 + np.abs(lower))
        return np.array([lower, upper])

    def _logit_bound(self, x: Logs, c: Array, side: int, halvings: int) -> Array:
        """Return the logit where one order's bound is tight, rounded up (1), down (-1) or not."""
        moment = self.curve.log_moment(c)
        low = x[0] - x[1]
        # The second summand of the swapped sum alone bounds y from below.
        high = (moment - (1.0 + c) * x[1]) / c
        high = np.maximum(high + 1e-9 * (1.0 + np.abs(high)), low)
        for _ in range(halvings):
            middle = 0.5 * (low + high)
            beyond = _excess(x, middle, c, moment, side) > 0.0
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        return low if side < 0 else high


def _excess(x: Logs, z: Array, c: Array, moment: Array, side: int) -> Array:
    """Return the excess of the larger of both divergences' K over its bound.

    The second pair of probabilities has the logit z. The round-off is subtracted (side 1) or added
    (side -1).
    """
    a = 1.0 + c
    first = -np.log1p(np.exp(-np.abs(z)))
    second = first - np.abs(z)
    v = np.where(z >= 0.0, first, second)
    y = np.where(z >= 0.0, second, first)
    log_first, log_second = x
    one = np.logaddexp(a * v - c * log_first, a * y - c * log_second)
    other = np.logaddexp(a * log_first - c * v, a * log_second - c * y)
    size = (a + c) * -(v + y + log_first + log_second) + moment
    return np.maximum(one, other) - moment - side * 16.0 * ULP * (size + 1.0)


def _sigmoid(z: Array, sign: int) -> Array:
    """Return ``1 / (1 + e^-z)``, rounded up (sign 1) or down."""
    with np.errstate(over="ignore"):
        small = np.exp(-np.abs(z))
        value = np.where(z >= 0.0, 1.0, small) / (1.0 + small)
    rounded = np.where(np.isposinf(z), 1.0, value * (1.0 + sign * 16.0 * ULP))
    if sign > 0:
        rounded = np.where(np.isneginf(z), 0.0, np.maximum(rounded, _SMALLEST))
    return np.clip(rounded, 0.0, 1.0)


@final
@dataclass(frozen=True, slots=True)
class RenyiProfile(Profile):
    """The least delta that single orders of a curve imply at each epsilon.

    The lower end is the profile of the Gaussian whose divergences are at most the curve.
    """

    curve: RenyiCurve

    @property
    def supremum(self) -> float:
        return math.inf

    def at(self, epsilon: Array) -> ProfileValues:
        gaussian = GaussianProfile(self.curve.gaussian_mu).at(epsilon)
        with np.errstate(all="ignore"):
            c = self.curve.minimising_orders(lambda c: self._dual(c, epsilon)[0], epsilon.size)
            _, contact_gap = self._dual(c, epsilon)
            estimate, upper, slope = _proven(c, self.curve.log_moment(c), epsilon, contact_gap)
        for one, response_epsilon in _diagonal_points(self.curve):
            steepest = float(log_diagonal_slope(one, response_epsilon, np))
            near = epsilon <= steepest * (1.0 - 64.0 * ULP) - 64.0 * ULP
            e = np.minimum(epsilon, steepest)
            value = -np.expm1(e - response_epsilon) / (1.0 + math.exp(-response_epsilon))
            better = near & (value < estimate)
            estimate = np.where(better, value, estimate)
            upper = np.where(better, value * (1.0 + 16.0 * ULP) + 8.0 * ULP * e, upper)
            fall = np.exp(e - response_epsilon) / (1.0 + math.exp(-response_epsilon))
            slope = np.where(better, -fall, slope)
        upper = np.minimum(np.maximum(upper, gaussian.lower), 1.0)
        return ProfileValues(gaussian.lower, np.clip(estimate, gaussian.lower, upper), upper, slope)

    def _dual(self, c: Array, epsilon: Array) -> tuple[Array, Array]:
        """Return about the least ln delta of the orders, and the minimising contact gaps."""
        moment = self.curve.log_moment(c)

        def cost(log_contact_gap: Array) -> Array:
            value, _, log_s = dual_log_delta(c, moment, epsilon, np.exp(log_contact_gap), np)
            return np.asarray(np.where(log_s < 0.0, value, 1e6 + log_s))

        low = np.log(np.maximum(epsilon, 1e-9))
        high = np.log(epsilon + 4.0 + 60.0 / c)
        found = golden(cost, low, high)
        return cost(found), np.exp(found)


@lru_cache(maxsize=64)
def _diagonal_points(curve: RenyiCurve) -> tuple[tuple[float, float], ...]:
    """Return each order c with the epsilon, rounded up, of randomized response with its K."""
    moments = curve.log_moment(np.array(curve.orders))
    return tuple(
        (c, _response_epsilon(c, float(k))) for c, k in zip(curve.orders, moments, strict=True)
    )


def _response_epsilon(c: float, moment: float) -> float:
    """Return an epsilon at which randomized response provably has a larger moment."""
    low, high = 0.0, (moment + 1.0) / c
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if response_moment(c, middle, math) * (1.0 - 64.0 * ULP) > moment:
            high = middle
        else:
            low = middle
    return high


def _proven(
    c: Array, moment: Array, epsilon: Array, contact_gap: Array
) -> tuple[Array, Array, Array]:
    """Return delta by one order and gap: estimate, proven upper end, derivative in epsilon."""
    a = 1.0 + c
    value, log_r, log_s = dual_log_delta(c, moment, epsilon, contact_gap, np)
    off = 16.0 * ULP * (epsilon + np.abs(log_r) + contact_gap + 1.0 / c + 1.0)
    s_c, scale = np.exp(c * log_s), np.exp(-moment)
    inner = scale * (c * np.expm1(a * log_s) - a * np.expm1(c * log_s)) - np.expm1(-moment)
    wrong = 8.0 * ULP * (1.0 + scale * (2.0 * a + a * c * s_c * np.abs(log_s)))
    wrong += scale * a * c * s_c * off
    slack = np.log1p(wrong / np.maximum(inner, 0.0)) + c * off
    slack += 16.0 * ULP * (moment + np.log(a) + np.abs(value) + 1.0)
    upper = np.exp(np.minimum(value + slack, 0.0)) * (1.0 + 8.0 * ULP) + _SMALLEST
    # By the envelope theorem the derivative is that at a fixed gap.
    weight = a * c * (np.exp(a * log_s) - s_c) * scale / inner - c
    estimate = np.exp(np.minimum(value, 0.0))
    return estimate, np.where(np.isnan(upper), 1.0, upper), np.minimum(estimate * weight, 0.0)
