"""What a run of comparisons reveals, given the threshold's noise: the largest profile.

A run ends with its first "above". Given the noise, a comparison is "below" with probability a for
one data set and a' for its neighbour. The pairs (a, a') that a comparison can have lie in the
quadrilateral with the corners (0, 0), (1, 1) and, with ``R(s) = (1, e^s) / (1 + e^s)``, R(s+) and
the mirror image of R(s-): "below" at most ``e^(s+)`` times as likely for the neighbour, and "above"
for the data set, and the other way round with s-. With ``x = e^eps``,

    V_0(x) = (1 - x)_+,    V_(n+1)(x) = max of ((1 - a) - x (1 - a'))_+ + a V_n(x a'/a)

is the largest hockey-stick divergence of a run of n + 1 comparisons, whatever their order and
stopping rule. V_n is convex, as the largest of convex functions, so that the term, which is
homogeneous, is convex in (a, a'): the maximum is at a corner. (0, 0) and (1, 1) leave V as it is.

With ``V = (1 - x)_+ + Z`` nothing cancels: a corner says

    Z_(n+1)(x) = a Z_n(x a'/a) + (min(|u|, |w|), where u and w have different signs),
    u = (1 - a) - x (1 - a'),  w = a - x a'.

For whole multiples of a unit h, s+ and s-, Z at ``x = e^(j h)`` needs Z at such points only.
Numbers that do not grow when the right side, rounded up, is taken of them bound Z_n for each n, by
induction. Z falls above 1 and rises below, so that its ends bound it beyond them; between two
points the chord does, as V is convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.numerics import ULP

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Z is followed until it is less than about exp of minus this.
_LOG_RANGE: Final = 45.0
# The largest s-, and the largest number of iterations.
_LARGEST_STEP: Final = 1.5
_ITERATIONS: Final = 4000
_TINY: Final = 5e-324


@final
@dataclass(frozen=True, eq=False)
class RunProfile:
    """Upper bounds of Z at the points ``e^(j unit)``, for the j from ``first`` on."""

    unit: float
    first: int
    excess: Array

    def at(self, log_x: Array) -> Array:
        """Return upper bounds of Z, by chords in x; the arguments may be off by a few ulps."""
        size = np.abs(log_x)
        nearer = np.maximum(size - 2.0**-36 * self.unit - 2.0**-46 * size, 0.0)
        place = np.copysign(nearer, log_x) / self.unit - self.first
        place = np.clip(place, 0.0, self.excess.size - 1.0)
        left = np.minimum(place.astype(int), self.excess.size - 2)
        within = (place - left) * self.unit
        low = self.excess[left] * np.exp(within) * np.expm1(self.unit - within)
        high = self.excess[left + 1] * np.expm1(within)
        return np.asarray((low + high) / math.expm1(self.unit) * (1.0 + 2.0**-46))


@lru_cache(maxsize=128)
def run_profile(unit: float, plus: int, minus: int) -> RunProfile | None:
    """Return the bounds for ``s+ = plus unit`` and ``s- = minus unit``; None for large s-."""
    if minus * unit > _LARGEST_STEP:
        return None
    below = math.log1p(math.exp(plus * unit)) if plus * unit < 700.0 else plus * unit
    above = math.log1p(math.exp(-minus * unit))
    fewest = plus + minus + 2
    first = -fewest - math.ceil(_LOG_RANGE * max(plus / below, minus / (above + minus * unit)))
    last = fewest + math.ceil(_LOG_RANGE * minus / above)
    places = np.arange(first, last + 1, dtype=float)
    corners = [_Corner.of(places, unit, step) for step in (plus, -minus) if step]
    excess = np.zeros(places.size)
    for _ in range(_ITERATIONS):
        new = np.maximum.reduce([one.value(excess) for one in corners])
        if (new <= excess).all():
            return RunProfile(unit, first, excess)
        excess = np.maximum(new, excess)
    return None


@final
@dataclass(frozen=True, eq=False)
class _Corner:
    """R(s), with the ratio ``a'/a = e^s`` and ``s = step unit``, or its mirror image for s < 0."""

    chance: float
    step: int
    gain: Array
    slack: float

    @classmethod
    def of(cls, places: Array, unit: float, step: int) -> _Corner:
        """Return the corner, with what it adds to Z at each place."""
        size = step * unit
        chance = max(1.0 / (1.0 + math.exp(min(size, 700.0))), _TINY)
        above = 1.0 / (1.0 + math.exp(max(-size, -700.0)))
        with np.errstate(over="ignore"):
            up = above * np.abs(np.expm1((places - step) * unit))
            down = chance * np.abs(np.expm1((places + step) * unit))
        gain = np.where(np.abs(places) < abs(step), np.minimum(up, down), 0.0)
        return cls(chance, step, gain, 1.0 + ULP * (64.0 + 16.0 * abs(size)))

    def value(self, excess: Array) -> Array:
        """Return the corner's term for Z, rounded up."""
        last = excess.size - 1
        moved = excess[np.clip(np.arange(excess.size) + self.step, 0, last)]
        return np.asarray((self.chance * moved + self.gain) * self.slack)
