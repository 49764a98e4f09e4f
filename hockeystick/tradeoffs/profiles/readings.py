"""Epsilon at a delta, and delta at an epsilon, by a profile."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hockeystick.tradeoffs.profiles.profile import Profile

# Beyond this epsilon only the monotonicity of delta is used.
FARTHEST: Final = 1e15
_SECTIONS: Final = 33
_ROUNDS: Final = 16
# Steps outward from an estimated epsilon, relative to it and absolute, until the bounds agree.
_OUTWARD: Final = 2.0 ** np.arange(-50.0, 4.0)


def epsilon_interval(profile: Profile, delta: float) -> tuple[float, float, float]:
    """Return proven ends of the epsilon of a delta, and the estimate between them.

    The upper end is inf where the profile is not proven to fall to delta.
    """
    if delta == 0.0:
        if profile.infinity_mass_lower > 0.0:
            return math.inf, math.inf, math.inf
        largest = profile.supremum
        return _highest_above(profile, 0.0, min(largest, FARTHEST)), largest, largest
    middle = _estimate(profile, delta)
    if middle == math.inf:
        return _highest_above(profile, delta, FARTHEST), math.inf, math.inf
    with np.errstate(over="ignore"):
        above = np.r_[middle, middle + _OUTWARD * (middle + 1.0), FARTHEST]
    covered = np.flatnonzero(profile.at(above).upper <= delta)
    upper = float(above[covered[0]]) if covered.size else math.inf
    return _highest_above(profile, delta, middle), min(middle, upper), upper


def _highest_above(profile: Profile, delta: float, epsilon: float) -> float:
    """Return an epsilon, at most the given one, at which delta is proven to be larger."""
    below = np.maximum(np.r_[epsilon, epsilon - _OUTWARD * (epsilon + 1.0), 0.0], 0.0)
    larger = np.flatnonzero(profile.at(below).lower > delta)
    return float(below[larger[0]]) if larger.size else 0.0


def _estimate(profile: Profile, delta: float) -> float:
    """Return the epsilon at which the estimate falls to delta; inf where it does not."""
    if _at(profile, 0.0) <= delta:
        return 0.0
    high = 1.0
    while _at(profile, high) > delta:
        high *= 2.0
        if high > FARTHEST:
            return math.inf
    low = 0.0
    for _ in range(_ROUNDS):
        grid = np.linspace(low, high, _SECTIONS)
        first = int(np.argmax(profile.at(grid).estimate <= delta))
        low, high = float(grid[max(first - 1, 0)]), float(grid[first])
        if high - low <= 2.0 * math.ulp(high):
            break
    return high


def _at(profile: Profile, epsilon: float) -> float:
    """Return the estimate at one epsilon."""
    return float(profile.at(np.array([epsilon])).estimate[0])


def ends_at(profile: Profile, epsilon: float) -> tuple[float, float, float]:
    """Return delta at one epsilon: lower end, estimate, upper end."""
    lower, middle, upper = profile.precisely(min(epsilon, FARTHEST))
    if epsilon > FARTHEST:
        lower, middle = profile.infinity_mass_lower, profile.infinity_mass_lower
    return lower, min(max(middle, lower), upper), upper
