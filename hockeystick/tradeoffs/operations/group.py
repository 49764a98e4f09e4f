"""Group privacy of trade-off functions.

Under (epsilon, delta)-DP it is the polygon of the power iterated, in exact arithmetic.

With ``A = e^epsilon`` and ``a = (1 - delta) / (1 + A)``, the power of one record is

    p(alpha) = delta + A alpha up to a,    1 - (1 - delta - alpha) / A up to 1 - delta,    then 1,

and that of g records its iterate ``p^og`` (Dong, Roth and Su 2022, theorem 2.14): no two data sets
at distance g of an (epsilon, delta)-DP mechanism are told apart with more power.

One mechanism attains it at all alpha at once. Let ``U = {0} or (0, 1]``, and ``P_j`` the
distribution on [0, 1] with ``P_j(U <= alpha) = p^oj(alpha)``, j = 0..g; release a draw of ``P_j``,
j the number of records, at most g. Since p is concave and rises, so are its iterates, and the
density of ``P_(j+1)`` over ``P_j`` at u is ``p'(p^oj(u))``, which falls with u: thresholds are the
best tests of both ``P_0`` against ``P_g`` and ``P_j`` against ``P_(j+1)``. These have power p where
``P_j`` has no mass at 0, and at rates below its mass there a chord of p: so neighbours are
(epsilon, delta)-close, in both orders since p is its own mirror, and the ends have ``p^og``.

The first side of ``p^og`` has slope ``e^(g epsilon)`` and begins at ``delta (A^g - 1) / (A - 1)``
as long as that of g - 1 records is at most a: then (g epsilon, that delta)-DP is attained. It is
not all: a group under epsilon-DP is told apart like discrete Laplace noise of scale 1/epsilon at
distance g, and less well than a randomized response of g epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import Ends, TradeOff
from hockeystick.tradeoffs.functions.closed_forms import (
    GaussianTradeOff,
    LaplaceTradeOff,
    Outcomes,
    masses_of,
)
from hockeystick.tradeoffs.functions.piecewise import (
    Corners,
    IdentityTradeOff,
    PiecewiseLinearTradeOff,
    polyline_tradeoff,
)
from hockeystick.tradeoffs.profiles.profile import (
    Array,
    ChainProfile,
    Flags,
    GaussianProfile,
    Profile,
    ProfileValues,
)
from hockeystick.tradeoffs.profiles.table import IntervalProfile

_ONE: Final = Fraction(1)


def approximate_group(
    growth: Fraction, delta: Fraction, size: int, *, relative_error: float
) -> PiecewiseLinearTradeOff:
    """Return ``1 - p^og`` of a growth A >= 1 and a delta below 1.

    For it to be a lower bound the growth is at least ``e^epsilon``; each mass may be off by the
    relative error.
    """
    alphas = _corners(growth, delta, size)
    points = [(alpha, 1 - _iterated(alpha, growth, delta, size)) for alpha in alphas]
    if points[0][1] < 1:
        points.insert(0, (Fraction(0), _ONE))
    masses = masses_of(points)
    corners = Corners.of(points, relative_error + 4.0 * ULP)
    return polyline_tradeoff(corners, Outcomes(masses, masses, relative_error))


def _corners(growth: Fraction, delta: Fraction, size: int) -> list[Fraction]:
    """Return the rates from 0 to 1 between which the iterate is linear."""
    found = {Fraction(0), _ONE}
    for start in ((1 - delta) / (1 + growth), 1 - delta):
        rate = start
        for _ in range(size):
            found.add(rate)
            if rate < delta:
                break
            rate = _inverse(rate, growth, delta)
    return sorted(found)


def _inverse(power: Fraction, growth: Fraction, delta: Fraction) -> Fraction:
    """Return the rate at which one record has a power that is at least delta."""
    bend = (growth + delta) / (1 + growth)
    steep = (power - delta) / growth
    return steep if power <= bend else 1 - delta - growth * (1 - power)


def _iterated(alpha: Fraction, growth: Fraction, delta: Fraction, size: int) -> Fraction:
    power = alpha
    for _ in range(size):
        if power >= 1 - delta:
            return _ONE
        power = min(delta + growth * power, 1 - (1 - delta - power) / growth)
    return power


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

    Every rate gives a lower end. The power is concave, so between two rates it lies below the lines
    through their neighbours on either side; the rates asked about reach from the best one to both
    ends, so no assumption is made about where the best one is.

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

    @property
    def dominating_mu(self) -> float:
        return self.gaussian

    def at(self, epsilon: Array) -> ProfileValues:
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
    """Return an upper bound of the maximum of a concave function.

    ``low`` and ``high`` are the ends of its values at x, which ascends down each column.
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


# A complement below this is not resolved: the type II error is between 0 and this.
_TINY: Final = 1e-300
_STEPS: Final = 5_000


class _Rates(NamedTuple):
    """Rates: below 1/2 the rate itself, else, where ``complemented``, one minus the rate."""

    number: Array
    complemented: Flags

    def read(self, *, complemented: bool, sign: float) -> Array:
        """Return the rates, or their complements, rounded up (sign 1) or down (-1)."""
        other = (1.0 - self.number) * (1.0 + sign * ULP)
        return np.where(self.complemented == complemented, self.number, other)


@final
@dataclass(frozen=True)
class GroupTradeOff(TradeOff):
    """``1 - (1 - f)^og``: the power of one record, g times over.

    Made by ``group``, which knows closed forms where there are some, and mechanisms whose loss at
    distance g is known.

    Guarantees:
        Proven ends: the power is monotone, so proven ends of each step give those of the next.
        Rates below 1/2 are carried as they are, the others as their complements. Deltas are the
        smaller ones of the iterated function's and of a chain of single records (``ChainProfile``).

        The lower end of f, and with it the upper ends of power, delta and epsilon, holds for every
        mechanism that is f-DP and any two data sets at distance g.

        A function alone stands for the worst mechanism that is f-DP: at each alpha, three outcomes
        that only one test distinguishes attain the iterated function, so both ends enclose it. The
        worst pair of a plan (``release``) at distance g may be anywhere from there up to f itself,
        since a group may be a single record, and so the other ends are those of one record.
    """

    inner: TradeOff
    size: int

    @property
    def forward(self) -> Profile:
        return self._profile(self.inner.forward)

    @property
    def backward(self) -> Profile:
        return self.inverse()._profile(self.inner.backward)

    def _profile(self, one: Profile) -> Profile:
        """Return the profile; its largest loss and dominating mu grow g-fold."""
        mu = max(self.inner.forward.dominating_mu, self.inner.backward.dominating_mu)
        largest = one.supremum * self.size * (1.0 + 4.0 * ULP)
        function = FunctionProfile(self._iterated, largest, _times(mu, self.size))
        iterated = ChainProfile(function, one, self.size)
        return iterated if self.inner.release is None else IntervalProfile(one, iterated)

    @cached_property
    def _iterated(self) -> GroupTradeOff:
        plain = self.inner.without_release
        return self if plain is self.inner else GroupTradeOff(plain, self.size)

    @property
    def is_symmetric(self) -> bool:
        return self.inner.is_symmetric

    def inverse(self) -> GroupTradeOff:
        return self if self.is_symmetric else GroupTradeOff(self.inner.inverse(), self.size)

    def _power(self, alpha: Array) -> Ends:
        high = self._iterated_power(alpha, up=True).read(complemented=False, sign=1.0)
        if self.inner.release is not None:
            low = self.inner._power(alpha).lower
        else:
            low = self._iterated_power(alpha, up=False).read(complemented=False, sign=-1.0)
        return Ends(np.maximum(low, alpha), np.minimum(high, 1.0))

    def _type_ii(self, alpha: Array) -> Ends:
        low = self._iterated_power(alpha, up=True).read(complemented=True, sign=-1.0)
        if self.inner.release is not None:
            high = self.inner._type_ii(alpha).upper
        else:
            high = self._iterated_power(alpha, up=False).read(complemented=True, sign=1.0)
        return Ends(np.maximum(low, 0.0), np.minimum(high, 1.0))

    def _iterated_power(self, alpha: Array, *, up: bool) -> _Rates:
        """Return the upper (or lower) end of the power, iterated g times."""
        complemented = alpha >= 0.5
        number = np.where(complemented, 1.0 - alpha, alpha)
        moving = np.flatnonzero(alpha < 1.0)
        for step in range(self.size):
            if not moving.size:
                break
            if step == _STEPS:
                # No proof beyond: the upper end is 1, and the power does not fall.
                if up:
                    number[moving], complemented[moving] = 0.0, True
                break
            before = _Rates(number[moving], complemented[moving])
            after = self._one_more_record(before, up=up)
            number[moving], complemented[moving] = after
            # A fixed point of one step stays there.
            same = (after.number == before.number) & (after.complemented == before.complemented)
            moving = moving[~(same | (after.complemented & (after.number == 0.0)))]
        return _Rates(number, complemented)

    def _one_more_record(self, before: _Rates, *, up: bool) -> _Rates:
        number, complemented = before.number.copy(), before.complemented.copy()
        power = self.inner._power(number[~complemented])
        # The power is never below the rate, whatever its lower end says.
        number[~complemented] = np.maximum(
            power.upper if up else power.lower, number[~complemented]
        )
        crossed = ~complemented & (number >= 0.5)
        for which, type_ii in (
            (crossed, self.inner._type_ii(before.number[crossed])),
            (complemented, self.inner.type_ii_of_complement(before.number[complemented])),
        ):
            number[which] = type_ii.lower if up else type_ii.upper
        complemented |= crossed
        # Of the upper end a tiny complement is rounded to 0; of the lower end up to the threshold.
        lost = complemented & (number < _TINY)
        number[lost] = 0.0 if up else _TINY
        return _Rates(number, complemented)


def group_of(f: TradeOff, size: int) -> TradeOff:
    """Return the function of a group of at least 2, rounded to the side of less privacy."""
    match f:
        case GaussianTradeOff():
            return GaussianTradeOff(_times(f.mu, size))
        case LaplaceTradeOff():
            scale = f.scale / size
            enough = math.isinf(scale) or Fraction(scale) * size <= Fraction(f.scale)
            return LaplaceTradeOff(scale if enough else math.nextafter(scale, 0.0))
        case IdentityTradeOff():
            return f
        case GroupTradeOff():
            return GroupTradeOff(f.inner, f.size * size)
        case _:
            return GroupTradeOff(f, size)


def _times(mu: float, size: int) -> float:
    product = mu * size
    enough = math.isinf(product) or Fraction(product) >= Fraction(mu) * size
    return product if enough else math.nextafter(product, math.inf)
