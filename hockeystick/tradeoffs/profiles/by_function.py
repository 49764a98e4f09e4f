"""The privacy profile of a trade-off function that is known as a function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import TradeOff
from hockeystick.tradeoffs.profiles.profile import Array, GaussianProfile, Profile, ProfileValues

_LARGEST_EXPONENT: Final = 690.0
_KNOTS: Final = 1381
# Offsets in ln alpha from the estimated best rate: dense next to it, and up to both ends.
_NEAREST_OFFSET: Final = 2e-5
_OFFSETS: Final = _NEAREST_OFFSET * np.array(
    [0.0, 1.0, 2.0, 3.0, *(3.0 * 4.0**k for k in range(1, 13))]
)
# Covers the round-off of sums and products of a few numbers.
_ROUND: Final = 1.0 + 1e-14
_GRID_SEARCHES: Final = 9
_GRID_POINTS: Final = 9


@final
@dataclass(frozen=True)
class FunctionProfile(Profile):
    """``delta(eps) = sup over alpha of (1 - f(alpha)) - e^eps alpha``.

    Guarantees:
        Every rate gives a lower end. The power is concave, so between two rates it lies below the
        lines through their neighbours on either side; the rates asked about reach from the best
        one to both ends, so no assumption is made about where the best one is.

    Args:
        function: The function f.
        largest: A loss from which on delta is constant, where one is known.
        gaussian: A mu with ``f >= G_mu``, where one is known; it helps where floats end.
    """

    function: TradeOff
    largest: float = math.inf
    gaussian: float = math.inf

    @property
    def supremum(self) -> float:
        return self.largest

    def at(self, epsilon: Array) -> ProfileValues:
        """Return delta at epsilons >= 0, at most at 690: from there on, what holds there."""
        x = np.exp(np.minimum(epsilon, _LARGEST_EXPONENT))
        best = self._best_log_rate(x)
        t = np.unique(np.r_[-_OFFSETS, _OFFSETS])[:, None] + best
        alpha = np.exp(np.minimum(t, 0.0))
        alpha = np.vstack([np.zeros_like(x), alpha, np.ones_like(x)])
        ends = self.function._power(alpha.ravel())
        lower, upper = (end.reshape(alpha.shape) for end in ends)
        line = x * alpha
        slack = 8.0 * ULP * (line + upper)
        low = (lower - line - slack).max(axis=0)
        high = _concave_maximum(alpha, lower - line - slack, upper - line + slack)
        low = np.where(epsilon > _LARGEST_EXPONENT, lower[0], low)
        high = np.where(
            epsilon >= self.largest, upper[0], np.minimum(high, self._gaussian_upper(epsilon))
        )
        low, high = np.maximum(low, 0.0), np.clip(high, 0.0, 1.0)
        return ProfileValues(low, 0.5 * (low + high), high, -x * np.exp(best))

    def _gaussian_upper(self, epsilon: Array) -> Array:
        """Return the profile of the Gaussian that dominates, an upper bound."""
        if not 0.0 < self.gaussian < math.inf:
            return np.ones_like(epsilon)
        return GaussianProfile(self.gaussian).at(epsilon).upper

    def _best_log_rate(self, x: Array) -> Array:
        """Return about the ln of the rates at which the power has derivative x."""
        t, slopes = self._log_slopes
        place = np.searchsorted(-slopes, 1e-9 - np.log(x), side="right")
        low, high = t[np.maximum(place - 1, 0)], t[np.minimum(place + 1, len(t) - 1)]
        share = np.linspace(0.0, 1.0, _GRID_POINTS)[:, None]
        for _ in range(_GRID_SEARCHES):
            grid = low + share * (high - low)
            alpha = np.exp(grid)
            ends = self.function._power(alpha.ravel())
            middle = 0.5 * (ends.lower + ends.upper).reshape(alpha.shape) - x * alpha
            noise = (ends.upper - ends.lower).reshape(alpha.shape) + 8.0 * ULP * x * alpha
            # The last of equal values: left of a breakpoint the function may be constant.
            best = middle >= middle.max(axis=0) - noise
            peak = _GRID_POINTS - 1 - best[::-1].argmax(axis=0)
            step = (high - low) / (_GRID_POINTS - 1.0)
            found = low + peak * step
            low, high = np.maximum(low, found - step), np.minimum(high, found + step)
        return np.asarray(0.5 * (low + high))

    @cached_property
    def _log_slopes(self) -> tuple[Array, Array]:
        """Logarithms of rates, and of the mean derivative of the power between neighbours."""
        t = np.r_[np.linspace(-_LARGEST_EXPONENT, -0.5, _KNOTS), np.linspace(-0.49, 0.0, 50)]
        alpha = np.exp(t)
        ends = self.function._power(alpha)
        power = 0.5 * (ends.lower + ends.upper)
        slopes = np.diff(power) / np.diff(alpha)
        # They decrease; where digits are lost, next to a power at alpha = 0, they may round to 0.
        slopes = np.maximum.accumulate(slopes[::-1])[::-1]
        slopes = np.log(np.maximum(slopes, 1e-300))
        return t, slopes


def _concave_maximum(x: Array, low: Array, high: Array) -> Array:
    """Return an upper bound of the maximum of a concave function, from values at some points.

    Args:
        x: The points, ascending down each column.
        low: Lower ends of the values there.
        high: Upper ends.
    """
    width = np.diff(x, axis=0)
    empty = width <= 0.0
    safe = np.where(empty, 1.0, width)
    edge = np.full_like(x[:1], np.inf)
    # Next to 0, a width may be so small that a quotient is infinite, which still is a bound.
    with np.errstate(over="ignore", invalid="ignore"):
        # Upper bounds of the derivative in the previous cell, and of minus that in the next one.
        rise = np.where(empty, np.inf, (high[1:] - low[:-1]) / safe)
        drop = np.where(empty, np.inf, (high[:-1] - low[1:]) / safe)
        up = np.maximum(np.vstack([edge, rise[:-1]]) * width, 0.0) * _ROUND
        down = np.maximum(np.vstack([drop[1:], edge]) * width, 0.0) * _ROUND
    left, right = high[:-1] + up, high[1:] + down
    cell = np.where(empty, np.maximum(high[:-1], high[1:]), np.fmin(left, right))
    return np.asarray(cell.max(axis=0) * _ROUND)
