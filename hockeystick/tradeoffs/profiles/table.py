"""Profiles bounded by convexity from a table, and profiles enclosed by two others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from hockeystick._validate import real
from hockeystick.errors import ParameterError
from hockeystick.tradeoffs.base import TradeOff
from hockeystick.tradeoffs.functions.by_profile import ProfileTradeOff
from hockeystick.tradeoffs.profiles.profile import Array, CombinedProfile, Profile, ProfileValues

Indices: TypeAlias = NDArray[np.intp]

_SLACK: Final = 2.0**-48
_LARGEST_EXPONENT: Final = 600.0


@final
@dataclass(frozen=True, eq=False)
class TableProfile(Profile):
    """Proven ends of delta at ascending epsilons, interpolated by convexity in ``e^eps``.

    ``largest`` is the largest loss, ``least`` a lower bound of delta everywhere below it.

    Upper bound: the chords of the upper ends. Lower bound: the next lower end, as delta decreases,
    and the extrapolated lines through the two ends on either side. The first epsilon must be 0;
    beyond the last one delta is between 0 and the last upper end.
    """

    epsilons: Array
    lower: Array
    upper: Array
    largest: float
    least: float

    def __post_init__(self) -> None:
        for array in (self.epsilons, self.lower, self.upper):
            array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableProfile) and self._numbers == other._numbers

    def __hash__(self) -> int:
        return hash(self._numbers)

    @property
    def _numbers(self) -> tuple[object, ...]:
        arrays = (self.epsilons, self.lower, self.upper)
        return (*(array.tobytes() for array in arrays), self.largest, self.least)

    @property
    def smooth(self) -> bool:
        return False

    @property
    def breakpoints(self) -> Array:
        return self.epsilons

    @property
    def supremum(self) -> float:
        return self.largest

    @property
    def infinity_mass_lower(self) -> float:
        return self.least

    def at(self, epsilon: Array) -> ProfileValues:
        with np.errstate(all="ignore"):
            return self._at(epsilon)

    def _at(self, epsilon: Array) -> ProfileValues:
        last = self.epsilons.size - 1
        k = np.clip(np.searchsorted(self.epsilons, epsilon, side="right") - 1, 0, max(last - 1, 0))
        beyond = epsilon > self.epsilons[last]
        if last == 0:
            chord, slope, below = self.upper[k], np.zeros_like(epsilon), self.lower[k]
        else:
            left, right = self._share(epsilon, k + 1, k), self._share(epsilon, k, k + 1)
            chord = self.upper[k] * left + self.upper[k + 1] * right
            e, f = self.epsilons[k], self.epsilons[k + 1]
            rise = np.exp(np.minimum(epsilon - f, 0.0)) / -np.expm1(e - f)
            slope = (self.upper[k + 1] - self.upper[k]) * rise
            below = self._below(epsilon, k)
        chord = np.where(beyond, self.upper[last], chord)
        below = np.maximum(np.where(beyond, 0.0, below), self.least)
        slope = np.where(beyond, 0.0, slope)
        out = epsilon >= self.largest
        above = np.minimum(np.where(chord > 0.0, chord * (1.0 + _SLACK) + 5e-324, 0.0), 1.0)
        values = (below * (1.0 - _SLACK), chord, above, slope)
        return ProfileValues(*(np.where(out, 0.0, value) for value in values))

    def _below(self, epsilon: Array, k: Indices) -> Array:
        """Return the lower end between two knots, by extrapolation from both sides."""
        last = self.epsilons.size - 1
        right = np.minimum(k + 2, last)
        left = np.maximum(k - 1, 0)
        # The extrapolated chord lies below: each end is taken in the direction that lowers it.
        t = np.where(right > k + 1, -self._share(epsilon, k + 1, right), 0.0)
        ahead = self.lower[k + 1] - t * (self.upper[right] - self.lower[k + 1])
        t = np.where(left < k, -self._share(epsilon, k, left), 0.0)
        with np.errstate(over="ignore"):
            behind = self.lower[k] - t * (self.upper[left] - self.lower[k])
        behind = np.where(left < k, behind, 0.0)
        slack = 64.0 * _SLACK * self.upper[left]
        exact = epsilon == self.epsilons[k]
        below = np.maximum(np.maximum(ahead, behind) - slack, self.lower[k + 1])
        return np.asarray(np.where(exact, self.lower[k], below))

    def _share(self, epsilon: Array, start: Indices, end: Indices) -> Array:
        """Return the position of ``e^eps`` between two knots: 0 at the first, 1 at the second."""
        e, f = self.epsilons[start], self.epsilons[end]
        with np.errstate(all="ignore"):
            near = np.expm1(epsilon - e) / np.expm1(f - e)
            far = np.exp(epsilon - f) * -np.expm1(e - epsilon)
        return np.nan_to_num(np.where(f - e > _LARGEST_EXPONENT, far, near), nan=0.0)


@final
@dataclass(frozen=True, slots=True)
class IntervalProfile(CombinedProfile):
    """The lower ends of one profile and the upper ends of another: an interval of profiles."""

    low: Profile
    high: Profile

    @property
    def parts(self) -> tuple[Profile, ...]:
        return self.low, self.high

    @property
    def infinity_mass_lower(self) -> float:
        return self.low.infinity_mass_lower

    def precisely(self, epsilon: float) -> tuple[float, float, float]:
        return (self.low.precisely(epsilon)[0], *self.high.precisely(epsilon)[1:])

    def at(self, epsilon: Array) -> ProfileValues:
        upper = self.high.at(epsilon)
        return upper._replace(lower=self.low.at(epsilon).lower)


def tradeoff_of_deltas(points: Iterable[tuple[float, float]]) -> TradeOff:
    """Return the trade-off function that several (epsilon, delta) guarantees imply together.

    delta is convex in ``e^epsilon`` and falls: the chords through the points bound it from above.

    Guarantees:
        Calling it returns a proven lower end for every mechanism with all of these guarantees;
        nothing is known from above, where ``bounds`` has ``1 - alpha``.

    Args:
        points: Pairs (epsilon, delta), epsilon >= 0 and finite, delta in [0, 1]; at least one.

    References:
        Dong, Roth and Su 2022, proposition 2.12.

    Example:
        >>> import hockeystick as hs
        >>> f = hs.tradeoffs.tradeoff_of_deltas([(0.5, 1e-2), (1.0, 1e-3), (2.0, 1e-5)])
        >>> print(f"{f.power(0.01):.6f}")
        0.026487
    """
    try:
        pairs = sorted((real("epsilon", e), real("delta", d)) for e, d in points)
    except (TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError("points", points, "pairs (epsilon, delta)") from None
    if not pairs or pairs[-1][0] == math.inf:
        raise ParameterError("points", points, "one pair (epsilon, delta) or more, epsilon finite")
    epsilon, delta = pairs[0]
    # The total variation of a pair with this one guarantee.
    at_zero = delta + (1.0 - delta) * math.tanh(0.5 * epsilon) * (1.0 + _SLACK)
    knots = np.array([0.0, *(e for e, _ in pairs if e > 0.0)])
    upper = np.array([min(at_zero, 1.0), *(d for e, d in pairs if e > 0.0)])
    # The least upper end so far, at knots without repetitions.
    last = np.r_[knots[1:] > knots[:-1], True]
    knots, upper = knots[last], np.minimum.accumulate(upper)[last]
    # Where delta is 0, no loss is larger.
    largest = float(knots[np.argmin(upper)]) if upper[-1] == 0.0 else math.inf
    profile = TableProfile(knots, np.zeros(knots.size), upper, largest, 0.0)
    return ProfileTradeOff((profile, profile))
