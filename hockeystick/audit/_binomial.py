"""Exact one-sided bounds on a probability from a count, rounded outward.

Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial", Biometrika 26, 1934: with ``K ~ Bin(n, p)``,

    P[Bin(n, u) <= k] = level,  u = BetaInv(1 - level; k + 1, n - k),

is at least p with probability at least ``1 - level``, and so is its mirror image at most p.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.errors import HockeystickError

Array: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = int | NDArray[np.int64]

# SciPy's incomplete beta function and its inverse are asked with this much to spare, relative to
# the level: thousands of times what tests find them to be off.
SPARE: Final = 1e-9
_WIDER: Final = 4.0
_LARGEST_STEP: Final = 1e-3


def upper_rate(count: Counts, trials: Counts, level: Array) -> Array:
    """Return a probability at which so small a count has at most a probability of the level."""
    from scipy.special import betaincc, betainccinv

    k, level = np.broadcast_arrays(np.asarray(count, dtype=np.float64), level)
    a, b = k + 1.0, np.maximum(trials - k, 1.0)
    rate = np.asarray(betainccinv(a, b, level * (1.0 - SPARE)), dtype=np.float64)
    rate = _widened(rate, lambda r: betaincc(a, b, r) <= level, 1.0)
    return np.where(k >= trials, 1.0, np.minimum(rate, 1.0))


def lower_rate(count: Counts, trials: Counts, level: Array) -> Array:
    """Return a probability at which so large a count has at most a probability of the level."""
    from scipy.special import betainc, betaincinv

    k, level = np.broadcast_arrays(np.asarray(count, dtype=np.float64), level)
    a, b = np.maximum(k, 1.0), trials - k + 1.0
    rate = np.asarray(betaincinv(a, b, level * (1.0 - SPARE)), dtype=np.float64)
    rate = _widened(rate, lambda r: betainc(a, b, r) <= level, -1.0)
    return np.where(k <= 0, 0.0, rate)


def at_least(count: Array, trials: int, rate: Array | float) -> Array:
    """Return ``P[Bin(n, p) >= k]``, as SciPy rounds it."""
    from scipy.special import betainc

    inside = np.clip(count, 1.0, trials)
    value = np.asarray(betainc(inside, trials - inside + 1.0, rate), dtype=np.float64)
    return np.where(count <= 0, 1.0, np.where(count > trials, 0.0, value))


def fewest(level: Array, trials: int, rate: Array) -> Array:
    """Return the least k, up to n + 1, with ``P[Bin(n, p) >= k]`` at most the level."""
    low = np.zeros(np.broadcast_shapes(level.shape, rate.shape))
    high = np.full(low.shape, trials + 1.0)
    while bool((high - low > 1.0).any()):
        middle = np.floor(0.5 * (low + high))
        found = at_least(middle, trials, rate) <= level
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return high


def _widened(rate: Array, holds: Callable[[Array], Any], sign: float) -> Array:
    """Return rates moved outward until the function that they invert says that they hold."""
    step = 1e-12
    while step < _LARGEST_STEP:
        moved = rate * (1.0 + sign * step)
        if bool(np.all(holds(np.clip(moved, 0.0, 1.0)))):
            return np.asarray(moved)
        step *= _WIDER
    raise HockeystickError("the incomplete beta function could not be inverted")
