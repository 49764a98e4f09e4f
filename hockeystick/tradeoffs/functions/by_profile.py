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
from hockeystick.tradeoffs.base import Ends, TradeOff
from hockeystick.tradeoffs.functions.piecewise import Roof
from hockeystick.tradeoffs.profiles.profile import Array, Flags, Profile, ProfileValues

Function: TypeAlias = Callable[[Array, Array], Ends]
LogTail: TypeAlias = Callable[[Array, ProfileValues], Array]

_KNOTS: Final = 257
_NEAREST: Final = 2.0**-16
_LARGEST_EPSILON: Final = 2.0**20
_MASS_MARGIN: Final = 1e-6
_SUBNORMAL: Final = 4 * 5e-324
_MOST_PAIRS: Final = 400_000
# The spacing of the points of a convexity bound, relative to the change of epsilon in which the
# tail falls to 1/e, and relative to the distance from the supremum.
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
# Best epsilons up to here belong to the part of slope -1 or to the other branch.
_EDGE: Final = 1e-12


@final
@dataclass(frozen=True)
class ProfileTradeOff(TradeOff):
    """The trade-off function with given profiles of (Q, P) and of (P, Q).

    ``release`` is the mechanism or plan that it is of, if one is known.
    """

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
        return ProfileTradeOff(self.profiles)

    def _power(self, alpha: Array) -> Ends:
        steep, flat = self._by_both_branches(alpha)
        type_ii = Ends((1.0 - flat.upper) * (1.0 - ULP), (1.0 - flat.lower) * (1.0 + ULP))
        lower = np.maximum(np.minimum(steep.lower, type_ii.lower), alpha)
        upper = np.minimum(steep.upper, type_ii.upper)
        loose = ~(upper - lower <= _LOOSE * lower)
        if loose.any():
            below = (1.0 - self._roof.at(alpha[loose])) * (1.0 - ULP)
            lower[loose] = np.maximum(lower[loose], below)
        return Ends(lower, upper)

    def _type_ii(self, alpha: Array) -> Ends:
        ends = self._by_best_epsilon(alpha)
        loose = ~(ends.upper - ends.lower <= _LOOSE * ends.upper)
        if loose.any():
            ends.upper[loose] = np.minimum(ends.upper[loose], self._roof.at(alpha[loose]))
        return ends

    def _by_best_epsilon(self, alpha: Array) -> Ends:
        """Return f, each rate by epsilons next to the best one only."""
        steep, flat = self._by_both_branches(alpha)
        found = Ends((1.0 - steep.upper) * (1.0 - ULP), (1.0 - steep.lower) * (1.0 + ULP))
        upper = np.minimum(np.maximum(found.upper, flat.upper), 1.0)
        return Ends(np.maximum(np.maximum(found.lower, flat.lower), 0.0), upper)

    @cached_property
    def _roof(self) -> Roof:
        """Chords of upper ends, which lie above f by convexity."""
        upper = self._by_best_epsilon(_RATES).upper
        mirrored = (
            self._by_best_epsilon(_RATES)
            if self.is_symmetric
            else self.inverse()._by_best_epsilon(_RATES)
        )
        # The inverse of f is at most x where f is at most y: both curves have the point (y, x).
        return Roof.of(np.r_[_RATES, mirrored.upper], np.r_[upper, _RATES])

    def _by_both_branches(self, alpha: Array) -> tuple[Ends, Ends]:
        """Return the least power by steep slopes and the largest type II error by flat ones.

        ``1 - delta - slope * alpha`` is concave in the slope: where its maximum is on one branch,
        the other branch contributes nothing.
        """
        steep, steep_peaks = self._steep.least_power(alpha)
        flat, flat_peaks = self._flat.largest_type_ii(1.0 - alpha)
        one, other = flat_peaks, steep_peaks & ~flat_peaks
        return (
            Ends(np.where(one, np.inf, steep.lower), np.where(one, np.inf, steep.upper)),
            Ends(np.where(other, -np.inf, flat.lower), np.where(other, -np.inf, flat.upper)),
        )

    def _proven_type_ii(self, alpha: Array) -> Array:
        if not (self.forward.smooth and self.backward.smooth):
            return self._type_ii(alpha).lower
        power, type_ii = self._at_best(alpha)
        return np.maximum(np.maximum((1.0 - power) * (1.0 - ULP), 0.0), type_ii)

    def _proven_power(self, alpha: Array) -> Array:
        if not (self.forward.smooth and self.backward.smooth):
            return self._power(alpha).upper
        power, type_ii = self._at_best(alpha)
        return np.minimum(np.minimum(power, (1.0 - type_ii) * (1.0 + ULP)), 1.0)

    def _at_best(self, alpha: Array) -> tuple[Array, Array]:
        """Return upper ends of 1 - f, and lower ones of f where it is flatter than -1.

        Both are those of about the best epsilon; every epsilon gives such ends.
        """
        epsilon = self._steep.solve(alpha, log_tail_other)[0]
        type_ii = np.full_like(alpha, -np.inf)
        flat = epsilon <= _EDGE
        if flat.any():
            rest = 1.0 - alpha[flat]
            best = self._flat.solve(rest, log_tail_own)[0]
            type_ii[flat] = -self._flat.type_ii_at(best, rest).upper
        return self._steep.power_at(epsilon, alpha).upper, type_ii

    @cached_property
    def _steep(self) -> _Branch:
        return _Branch(self.forward)

    @cached_property
    def _flat(self) -> _Branch:
        return _Branch(self.backward)


@dataclass(frozen=True)
class _Table:
    """Knots in epsilon, and the logarithm of a tail's probability at each, strictly falling."""

    reach: float
    knots: Array
    values: Array

    def inverse(self, logs: Array) -> tuple[Array, Array]:
        """Return the epsilons of logarithms by linear interpolation, and the derivatives."""
        found = np.interp(-logs, -self.values, self.knots)
        k = np.clip(np.searchsorted(-self.values, -logs), 1, self.knots.size - 1)
        rise = (self.knots[k] - self.knots[k - 1]) / (self.values[k - 1] - self.values[k])
        return found, rise


class _Branch:
    """The branch of f by one profile: the optimum over its epsilons for each rate."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._tables: dict[tuple[LogTail, float], _Table] = {}

    def least_power(self, alpha: Array) -> tuple[Ends, Flags]:
        """Return ``inf over eps >= 0 of delta(eps) + e^eps alpha``, convex in ``x = e^eps``.

        The flags tell where it is proven to be attained away from eps = 0.
        """
        best, scale = self.solve(alpha, log_tail_other)
        (lower, upper), inside = _least(self.power_at, best, alpha, self._spacing(best, scale))
        upper = self._at_breakpoints(self.power_at, alpha, upper)
        return Ends(np.maximum(lower, self._profile.infinity_mass_lower), upper), inside

    def power_at(self, epsilon: Array, alpha: Array) -> Ends:
        """Return ``delta(eps) + e^eps alpha``."""
        delta = self._profile.at(epsilon)
        with np.errstate(over="ignore", invalid="ignore"):
            line = np.where(alpha > 0.0, np.exp(epsilon) * alpha, 0.0)
        tiny = np.where(alpha > 0.0, _SUBNORMAL, 0.0)
        lower = np.maximum((delta.lower + line) * (1.0 - 8.0 * ULP) - tiny, 0.0)
        return Ends(lower, (delta.upper + line) * (1.0 + 8.0 * ULP) + tiny)

    def largest_type_ii(self, rest: Array) -> tuple[Ends, Flags]:
        """Return ``sup over eps >= 0 of e^-eps (rest - delta(eps))``, concave in ``x = e^-eps``.

        The flags tell where it is proven to be attained away from eps = 0.
        """
        best, scale = self.solve(rest, log_tail_own)
        least, inside = _least(self.type_ii_at, best, rest, -self._spacing(best, scale))
        least = least._replace(upper=self._at_breakpoints(self.type_ii_at, rest, least.upper))
        return Ends(np.maximum(-least.upper, 0.0), np.maximum(-least.lower, 0.0)), inside

    def type_ii_at(self, epsilon: Array, rest: Array) -> Ends:
        """Return ``-e^-eps (rest - delta(eps))``."""
        delta = self._profile.at(epsilon)
        x, slack = np.exp(-epsilon), 8.0 * ULP * rest
        return Ends(x * (delta.lower - rest - slack), x * (delta.upper - rest + slack))

    def _at_breakpoints(self, value: Function, rates: Array, upper: Array) -> Array:
        """Return the least of upper ends and of those at the profile's breakpoints."""
        knots = self._profile.breakpoints
        if knots.size == 0:
            return upper
        found = upper.copy()
        for some in np.array_split(
            np.arange(rates.size), 1 + rates.size * knots.size // _MOST_PAIRS
        ):
            every = np.tile(knots, some.size)
            ends = value(every, np.repeat(rates[some], knots.size))
            best = ends.upper.reshape(some.size, knots.size).min(axis=1)
            found[some] = np.minimum(found[some], best)
        return found

    def _spacing(self, best: Array, scale: Array) -> Array:
        """Return the spacing of the points about the best epsilons."""
        left = _SUPREMUM_SPACING * np.abs(self._profile.supremum - best)
        return np.maximum(np.minimum(left, _SPACING * scale), 16.0 * ULP * best)

    def solve(self, rates: Array, log_tail: LogTail) -> tuple[Array, Array]:
        """Return the epsilons, and the change of epsilon over which the tail falls to 1/e."""
        goal = np.log(np.where(rates > 0.0, rates, _LEAST))
        least = float(goal.min(initial=0.0))
        table = self._table(next(level for level in _LEVELS if level <= least), log_tail)
        if table.knots.size < 2:
            # The tail is constant: up to the largest loss, or there is none.
            tail = table.values.max(initial=-math.inf)
            return np.where(goal < tail, table.reach, 0.0), np.ones_like(rates)
        inside = np.clip(goal, table.values[-1], table.values[0])
        found, scale = table.inverse(inside)
        off = log_tail(found, self._profile.at(found)) - inside
        moved = np.clip(found + scale * off, 0.0, table.knots[-1])
        found = np.where(np.isfinite(moved), moved, found)
        jumps = np.flatnonzero(~(np.abs(off) < _SMOOTH))
        if jumps.size:
            found[jumps] = self._bisected(inside[jumps], table, log_tail)
        return np.where(goal < table.values[-1], table.reach, found), np.minimum(scale, 1.0)

    def _bisected(self, logs: Array, table: _Table, log_tail: LogTail) -> Array:
        """Return the epsilons at which the tail crosses these logarithms, by bisection."""
        k = np.clip(np.searchsorted(-table.values, -logs), 1, table.knots.size - 1)
        low, high = table.knots[k - 1], table.knots[k]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            above = log_tail(middle, self._profile.at(middle)) > logs
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.asarray(high)

    def _table(self, lowest: float, log_tail: LogTail) -> _Table:
        """Return a table that reaches down to a probability."""
        known = self._tables.get((log_tail, lowest))
        if known is not None:
            return known
        reach = self._reach(lowest, log_tail)
        # Knots are dense near 0, where the two sides meet, and near the largest loss.
        knots = reach * np.linspace(0.0, 1.0, _KNOTS) ** 2
        if reach == self._profile.supremum:
            edge = reach * (1.0 - 2.0 ** -np.linspace(1.0, 53.0, _KNOTS))
            knots = np.unique(np.r_[knots, edge])
        values = log_tail(knots, self._profile.at(knots))
        falling = np.isfinite(values)
        falling[1:] &= values[1:] < np.minimum.accumulate(values)[:-1]
        self._tables[log_tail, lowest] = table = _Table(reach, knots[falling], values[falling])
        return table

    def _reach(self, lowest: float, log_tail: LogTail) -> float:
        """Return an epsilon beyond which the tail is below the lowest that is asked for."""
        farthest = min(self._profile.supremum, _LARGEST_EPSILON)
        end, floor = _NEAREST, self._profile.infinity_mass_lower
        least = math.log(floor) + _MASS_MARGIN if floor > 0.0 else -math.inf
        while end < farthest:
            point = np.array([end])
            tail = float(log_tail(point, self._profile.at(point))[0])
            # The limit of the tail is the infinity mass.
            if not tail > max(lowest, least):
                return end
            end *= 2.0
        return farthest


def log_tail_other(epsilon: Array, delta: ProfileValues) -> Array:
    """Return ``ln Pr[L > epsilon]`` under Q, ``-delta' e^-epsilon``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(-delta.slope) - epsilon


def log_tail_own(epsilon: Array, delta: ProfileValues) -> Array:
    """Return ``ln Pr[L > epsilon]`` under P, ``delta - delta'``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(delta.estimate - delta.slope)


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
