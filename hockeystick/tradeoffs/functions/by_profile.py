"""Any trade-off function from its two profiles.

    f(alpha) = max( sup over eps >= 0 of 1 - delta(eps) - e^eps alpha         (forward),
                    sup over eps >= 0 of e^-eps (1 - alpha - delta(eps))      (backward) ).

Every epsilon gives a proven lower end of f; the best one solves ``alpha = Pr[L > eps]`` under the
null hypothesis. The upper end follows from convexity in ``e^eps``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import Ends, TradeOff, complement
from hockeystick.tradeoffs.functions.piecewise import lower_envelope
from hockeystick.tradeoffs.profiles.profile import Array, Flags, Profile

Function: TypeAlias = Callable[[Array, Array], Ends]

_KNOTS: Final = 257
_NEAREST: Final = 2.0**-16
_LARGEST_EPSILON: Final = 2.0**20
_MASS_MARGIN: Final = 1e-6
_SUBNORMAL: Final = 4 * 5e-324
_MOST_PAIRS: Final = 400_000
# The spacing of a convexity bound's points, relative to the change of epsilon in which the tail
# falls to 1/e, and to the distance from the supremum.
_SPACING: Final = 3e-5
_SUPREMUM_SPACING: Final = 1e-3
# Factors by which the spacing grows where the ends are not as narrow as this.
_NARROW: Final = 1e-7
_WIDER: Final = (30.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5)
# Where the ends of f are wider than this, relatively, chords between these rates are used.
_LOOSE: Final = 1e-4
_RATES: Final = np.sort(np.r_[10.0 ** np.arange(-12.0, -2.0), np.linspace(0.0, 1.0, 257)])
# Where interpolation errs by more than this, in ln, the tail jumps, and bisection is used.
_SMOOTH: Final = 0.05
_HALVINGS: Final = 50
# A rate of 0 is replaced by this in the search.
_LEAST: Final = 1e-24
# Logarithms of the probabilities down to which tables are made.
_LEVELS: Final = (-8.0, -16.0, -32.0, -64.0, -128.0, -256.0, -750.0)


@final
@dataclass(frozen=True)
class ProfileTradeOff(TradeOff):
    """The trade-off function with given profiles of (Q, P) and of (P, Q)."""

    profiles: tuple[Profile, Profile]
    release: object = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        if self.release is not None:
            return f"<trade-off function of {self.release}>"
        return f"ProfileTradeOff({self.profiles!r})"

    @property
    def forward(self) -> Profile:
        return self.profiles[0]

    @property
    def backward(self) -> Profile:
        return self.profiles[1]

    def inverse(self) -> ProfileTradeOff:
        return self if self.is_symmetric else ProfileTradeOff((self.backward, self.forward))

    @property
    def without_release(self) -> ProfileTradeOff:
        return self if self.release is None else ProfileTradeOff(self.profiles)

    def _power(self, alpha: Array) -> Ends:
        steep, flat = self._by_both_branches(alpha)
        type_ii = complement(flat)
        lower = np.maximum(np.minimum(steep.lower, type_ii.lower), alpha)
        upper = np.minimum(steep.upper, type_ii.upper)
        loose = ~(upper - lower <= _LOOSE * lower)
        if loose.any():
            below = (1.0 - self._below_chords(alpha[loose])) * (1.0 - ULP)
            lower[loose] = np.maximum(lower[loose], below)
        return Ends(lower, upper)

    def _type_ii(self, alpha: Array) -> Ends:
        ends = self._by_best_epsilon(alpha)
        loose = ~(ends.upper - ends.lower <= _LOOSE * ends.upper)
        if loose.any():
            ends.upper[loose] = np.minimum(ends.upper[loose], self._below_chords(alpha[loose]))
        return ends

    def _by_best_epsilon(self, alpha: Array) -> Ends:
        steep, flat = self._by_both_branches(alpha)
        found = complement(steep)
        upper = np.minimum(np.maximum(found.upper, flat.upper), 1.0)
        return Ends(np.maximum(np.maximum(found.lower, flat.lower), 0.0), upper)

    @cached_property
    def _chords(self) -> tuple[Array, Array]:
        """The corners of the lower convex envelope of upper ends, above f by convexity."""
        upper = self._by_best_epsilon(_RATES).upper
        other = upper if self.is_symmetric else self.inverse()._by_best_epsilon(_RATES).upper
        # The inverse of f is at most x where f is at most y: both curves have the point (y, x).
        points = np.c_[np.r_[0.0, _RATES, other, 1.0], np.r_[1.0, upper, _RATES, 0.0]]
        alpha, beta = np.array(lower_envelope(points.tolist())).T
        return alpha, beta

    def _below_chords(self, alpha: Array) -> Array:
        """Return the height of that envelope, rounded up."""
        x, y = self._chords
        k = np.clip(np.searchsorted(x, alpha), 1, x.size - 1)
        share = (alpha - x[k - 1]) / (x[k] - x[k - 1])
        chord = y[k - 1] * (1.0 - share) + y[k] * share
        return np.asarray(chord * (1.0 + 16.0 * ULP) + _SUBNORMAL + 4.0 * ULP * y[k - 1])

    def _by_both_branches(self, alpha: Array) -> tuple[Ends, Ends]:
        """Return the least power by steep slopes and the largest type II error by flat ones.

        ``1 - delta - slope * alpha`` is concave in the slope: where its maximum is on one branch,
        the other branch contributes nothing.
        """
        (low, high), steep_peaks = self._steep.minimum(alpha)
        low = np.maximum(low, self.forward.infinity_mass_lower)
        (least, most), flat_peaks = self._flat.minimum(1.0 - alpha)
        lower, upper = np.maximum(-most, 0.0), np.maximum(-least, 0.0)
        one, other = flat_peaks, steep_peaks & ~flat_peaks
        return (
            Ends(np.where(one, np.inf, low), np.where(one, np.inf, high)),
            Ends(np.where(other, -np.inf, lower), np.where(other, -np.inf, upper)),
        )

    @cached_property
    def _steep(self) -> _Branch:
        return _Branch(self.forward, steep=True)

    @cached_property
    def _flat(self) -> _Branch:
        return _Branch(self.backward, steep=False)


class _Branch:
    """The branch of f by one profile: the best of its epsilons for each rate.

    The steep one minimises ``delta(eps) + e^eps alpha``, convex in ``x = e^eps``, and the flat one
    ``-e^-eps (rest - delta(eps))`` of ``rest = 1 - alpha``, convex in ``x = e^-eps``.
    """

    def __init__(self, profile: Profile, *, steep: bool) -> None:
        self._profile, self._is_steep = profile, steep
        self._tables: dict[float, tuple[float, Array, Array]] = {}

    def minimum(self, rates: Array) -> tuple[Ends, Flags]:
        """Return the minima, and where they are proven to be attained away from eps = 0."""
        best, scale = self._solve(rates)
        left = _SUPREMUM_SPACING * np.abs(self._profile.supremum - best)
        spacing = np.maximum(np.minimum(left, _SPACING * scale), 16.0 * ULP * best)
        sign = 1.0 if self._is_steep else -1.0
        (lower, upper), inside = _least(self._value, best, rates, sign * spacing)
        knots = self._profile.breakpoints
        parts = np.array_split(np.arange(rates.size), 1 + rates.size * knots.size // _MOST_PAIRS)
        for some in parts if knots.size else []:
            ends = self._value(np.tile(knots, some.size), np.repeat(rates[some], knots.size))
            least = ends.upper.reshape(some.size, knots.size).min(axis=1)
            upper[some] = np.minimum(upper[some], least)
        return Ends(lower, upper), inside

    def _value(self, epsilon: Array, rates: Array) -> Ends:
        delta = self._profile.at(epsilon)
        if not self._is_steep:
            x, slack = np.exp(-epsilon), 8.0 * ULP * rates
            return Ends(x * (delta.lower - rates - slack), x * (delta.upper - rates + slack))
        with np.errstate(over="ignore", invalid="ignore"):
            line = np.where(rates > 0.0, np.exp(epsilon) * rates, 0.0)
        tiny = np.where(rates > 0.0, _SUBNORMAL, 0.0)
        lower = np.maximum((delta.lower + line) * (1.0 - 8.0 * ULP) - tiny, 0.0)
        return Ends(lower, (delta.upper + line) * (1.0 + 8.0 * ULP) + tiny)

    def _log_tail(self, epsilon: Array) -> Array:
        """Return ``ln Pr[L > epsilon]``, which at the best epsilon is the logarithm of the rate.

        It is ``-delta' e^-epsilon`` under Q, and ``delta - delta'`` under P.
        """
        delta = self._profile.at(epsilon)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._is_steep:
                return np.log(-delta.slope) - epsilon
            return np.log(delta.estimate - delta.slope)

    def _solve(self, rates: Array) -> tuple[Array, Array]:
        """Return the epsilons, and the change of epsilon over which the tail falls to 1/e."""
        goal = np.log(np.where(rates > 0.0, rates, _LEAST))
        least = float(goal.min(initial=0.0))
        reach, knots, values = self._table(next(level for level in _LEVELS if level <= least))
        if knots.size < 2:
            # The tail is constant: up to the largest loss, or there is none.
            return np.where(goal < values.max(initial=-math.inf), reach, 0.0), np.ones_like(rates)
        inside = np.clip(goal, values[-1], values[0])
        found = np.interp(-inside, -values, knots)
        k = np.clip(np.searchsorted(-values, -inside), 1, knots.size - 1)
        scale = (knots[k] - knots[k - 1]) / (values[k - 1] - values[k])
        off = self._log_tail(found) - inside
        moved = np.clip(found + scale * off, 0.0, knots[-1])
        found = np.where(np.isfinite(moved), moved, found)
        jumps = np.flatnonzero(~(np.abs(off) < _SMOOTH))
        if jumps.size:
            low, high = knots[k[jumps] - 1], knots[k[jumps]]
            for _ in range(_HALVINGS):
                middle = 0.5 * (low + high)
                above = self._log_tail(middle) > inside[jumps]
                low, high = np.where(above, middle, low), np.where(above, high, middle)
            found[jumps] = high
        return np.where(goal < values[-1], reach, found), np.minimum(scale, 1.0)

    def _table(self, lowest: float) -> tuple[float, Array, Array]:
        """Return an epsilon where the tail is that low, knots up to it, and the falling tail."""
        if lowest in self._tables:
            return self._tables[lowest]
        reach = self._reach(lowest)
        # Knots are dense near 0, where the two sides meet, and near the largest loss.
        knots = reach * np.linspace(0.0, 1.0, _KNOTS) ** 2
        if reach == self._profile.supremum:
            edge = reach * (1.0 - 2.0 ** -np.linspace(1.0, 53.0, _KNOTS))
            knots = np.unique(np.r_[knots, edge])
        values = self._log_tail(knots)
        falling = np.isfinite(values)
        falling[1:] &= values[1:] < np.minimum.accumulate(values)[:-1]
        self._tables[lowest] = table = reach, knots[falling], values[falling]
        return table

    def _reach(self, lowest: float) -> float:
        """Return an epsilon beyond which the tail is below the lowest that is asked for."""
        farthest = min(self._profile.supremum, _LARGEST_EPSILON)
        end, floor = _NEAREST, self._profile.infinity_mass_lower
        least = math.log(floor) + _MASS_MARGIN if floor > 0.0 else -math.inf
        # The limit of the tail is the infinity mass.
        while end < farthest and float(self._log_tail(np.array([end]))[0]) > max(lowest, least):
            end *= 2.0
        return min(end, farthest)


def _least(value: Function, best: Array, rates: Array, spacing: Array) -> tuple[Ends, Flags]:
    """Return the minima, and whether they are interior, with the narrowest adequate spacing."""
    (lower, upper), inside = _least_about(value, best, rates, spacing)
    for factor in _WIDER:
        loose = np.flatnonzero(~(upper - lower <= _NARROW * np.abs(upper)))
        if loose.size == 0:
            break
        again, found = _least_about(value, best[loose], rates[loose], factor * spacing[loose])
        lower[loose] = np.maximum(lower[loose], again.lower)
        upper[loose] = np.minimum(upper[loose], again.upper)
        inside[loose] |= found
    return Ends(lower, upper), inside


def _least_about(value: Function, best: Array, rates: Array, spacing: Array) -> tuple[Ends, Flags]:
    """Return the minimum of a function convex in ``x = exp(+-epsilon)``, epsilon >= 0.

    The sign is that of the spacing. Of five points about the best epsilon, the function lies
    between two of them, and outside, above the lines extrapolated from neighbouring pairs.
    """
    sign = np.sign(spacing)
    epsilons = [np.maximum(best + k * np.abs(spacing), 0.0) for k in (-2.0, -1.0, 0.0, 1.0, 2.0)]
    with np.errstate(over="ignore"):
        # Only ratios of differences of x count.
        x = [np.expm1(sign * (one - best)) for one in epsilons]
    found = value(np.concatenate(epsilons), np.tile(rates, 5))
    low, high = (list(np.split(end, 5)) for end in found)

    def line(near: int, far: int, at: Array) -> Array:
        """Return the line through two points, extrapolated to a third x; -inf where undefined."""
        with np.errstate(all="ignore"):
            beyond = (at - x[near]) / (x[near] - x[far])
            there = low[near] - np.maximum(high[far] - low[near], 0.0) * beyond
        return np.where(at == x[near], low[near], np.where(np.isfinite(there), there, -np.inf))

    with np.errstate(all="ignore"):
        nearest = np.expm1(-sign * best)
        # From e^eps rates = g on, g is exceeded; e^-eps ends at 0.
        farthest = np.where(sign > 0.0, low[2] / rates * np.exp(-best) - 1.0, -1.0)
        farthest = np.where(sign > 0.0, np.maximum(farthest, x[4]), farthest)
    parts = (
        line(0, 1, nearest),
        line(1, 2, x[0]),
        np.maximum(line(1, 0, x[2]), line(2, 3, x[1])),
        np.maximum(line(3, 4, x[2]), line(2, 1, x[3])),
        line(3, 2, x[4]),
        line(4, 3, farthest),
    )
    lower = np.minimum.reduce([*low, *parts])
    ends = Ends(lower - 16.0 * ULP * np.abs(lower), np.minimum.reduce(high))
    return ends, (low[0] >= high[1]) & (epsilons[0] > 0.0)
