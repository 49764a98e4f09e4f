"""Where both error rates of a test lie, with a stated confidence: a region, not two intervals.

Let the test err on y of m trials of one kind, with probability q, and hit in x of n trials of the
other, with probability p, all independent. The exact p-values

    v(q) = P[Bin(m, q) <= y],    w(p) = P[Bin(n, p) >= x]

are independent and, at the true q and p, stochastically no smaller than uniform. With U and V
independent normal variables, let ``a, b > 0`` be such that ``P[(U+/a)^2 + (V+/b)^2 > 1] <= alpha``.
Then the set of all (q, p) with

    (PhiInv(1 - w(p))+ / a)^2 + (PhiInv(1 - v(q))+ / b)^2 <= 1

holds the true rates with probability at least ``1 - alpha``, since the left side only grows as
either p-value falls. What is at least some value in the whole set is so with that confidence, for
all functions of the rates at once. Its lower right boundary is the curve of pairs of exact bounds
at the levels ``Phi(-b sin s)`` and ``Phi(-a cos s)``, s from 0 to pi/2; a rectangle of two bounds
at alpha/2 each would be wider wherever both rates matter.

Exact one-sided bounds on a probability from a count, rounded outward.

Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial", Biometrika 26, 1934: with ``K ~ Bin(n, p)``,

    P[Bin(n, u) <= k] = level,  u = BetaInv(1 - level; k + 1, n - k),

is at least p with probability at least ``1 - level``, and so is its mirror image at most p.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.audit._scores import Array
from hockeystick.errors import HockeystickError

Count: TypeAlias = int | NDArray[np.int64]

# SciPy's incomplete beta function and its inverse are asked with this much to spare, relative to
# the level: thousands of times what tests find them to be off.
SPARE: Final = 1e-9
_WIDER: Final = 4.0
_LARGEST_STEP: Final = 1e-3


def upper_rate(count: Count, trials: Count, level: Array) -> Array:
    """Return a probability at which so small a count has at most a probability of the level."""
    from scipy.special import betaincc, betainccinv

    k, level = np.broadcast_arrays(np.asarray(count, dtype=np.float64), level)
    a, b = k + 1.0, np.maximum(trials - k, 1.0)
    rate = np.asarray(betainccinv(a, b, level * (1.0 - SPARE)), dtype=np.float64)
    rate = _widened(rate, lambda r: betaincc(a, b, r) <= level, 1.0)
    return np.where(k >= trials, 1.0, np.minimum(rate, 1.0))


def lower_rate(count: Count, trials: Count, level: Array) -> Array:
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


CELLS: Final = 256
# Where the confidence is lower, what is said has this one: the axes have to be positive.
_LARGEST_ALPHA: Final = 0.5
_NODES: Final = 80
_BISECTIONS: Final = 60

Levels: TypeAlias = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a test did: at most ``errors`` of ``error_trials``, at least ``hits`` of ``hit_trials``.

    Each may be an array, for several tests.
    """

    errors: int | np.ndarray
    error_trials: int | np.ndarray
    hits: int | np.ndarray
    hit_trials: int | np.ndarray


@dataclass(frozen=True, slots=True)
class Region:
    """Corners of cells that cover the boundary of a confidence region.

    In the whole region a function that falls in q and rises in p is at least its least value at
    the corners; ``rest`` is at most ``1 - q`` and ``miss`` at least ``1 - p``, precise relative to
    themselves.
    """

    q: Array
    p: Array
    rest: Array
    miss: Array


Objective: TypeAlias = Callable[[Region], Array]


def region(counts: Counts, levels: Levels) -> Region:
    """Return the corners for counts (one array more where the counts are arrays, of axis 0)."""
    for_errors, for_hits = levels
    y, m, x, n = (
        np.asarray(one)[..., np.newaxis]
        for one in (counts.errors, counts.error_trials, counts.hits, counts.hit_trials)
    )
    return Region(
        upper_rate(y, m, for_errors),
        lower_rate(x, n, for_hits),
        lower_rate(m - y, m, for_errors),
        upper_rate(n - x, n, for_hits),
    )


def rectangle(alpha: float) -> Levels:
    """Return the levels of two bounds at alpha/2 each."""
    half = np.array([0.5 * alpha])
    return half, half


@lru_cache(maxsize=256)
def quarter_ellipse(alpha: float, share: float, cells: int = CELLS) -> Levels:
    """Return the levels, for errors and for hits, at the corners of cells along the boundary.

    Args:
        alpha: The probability that the region may miss the true rates with.
        share: How much of ``Phi(-a) + Phi(-b)`` is that of the errors, in (0, 1).
        cells: Into how many cells the boundary is divided.
    """
    from scipy.special import ndtr

    a, b = _axes(min(alpha, _LARGEST_ALPHA), share)
    s = np.linspace(0.0, 0.5 * math.pi, cells + 1)
    for_errors = np.asarray(ndtr(-b * np.sin(s[1:])) * (1.0 - SPARE))
    for_hits = np.asarray(ndtr(-a * np.cos(s[:-1])) * (1.0 - SPARE))
    for levels in (for_errors, for_hits):
        levels.setflags(write=False)
    return for_errors, for_hits


def _axes(alpha: float, share: float) -> tuple[float, float]:
    """Return a and b with ``P[(U+/a)^2 + (V+/b)^2 > 1]`` at most alpha."""
    low, high = 0.25 * alpha, alpha
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        outside = outside_probability(*_axes_of(middle, share))
        low, high = (middle, high) if outside <= alpha * (1.0 - SPARE) else (low, middle)
    return _axes_of(low, share)


def _axes_of(total: float, share: float) -> tuple[float, float]:
    """Return the axes a and b of which ``Phi(-a) + Phi(-b)`` is a total."""
    from scipy.special import ndtri

    return -float(ndtri((1.0 - share) * total)), -float(ndtri(share * total))


def outside_probability(a: float, b: float) -> float:
    """Return ``P[(U+/a)^2 + (V+/b)^2 > 1]`` for independent standard normal U and V.

    ``Phi(-b)/2 + Phi(-a) + integral over u in (0, a) of phi(u) Phi(-b sqrt(1 - u^2/a^2))``, by
    Gauss and Legendre in the angle, in which the integrand is entire.
    """
    from scipy.special import ndtr

    nodes, weights = _rule()
    angle = 0.25 * math.pi * (nodes + 1.0)
    density = np.exp(-0.5 * (a * np.sin(angle)) ** 2) / math.sqrt(2.0 * math.pi)
    inner = density * ndtr(-b * np.cos(angle)) * a * np.cos(angle)
    integral = 0.25 * math.pi * float(weights @ inner)
    return 0.5 * float(ndtr(-b)) + float(ndtr(-a)) + integral


@cache
def _rule() -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss and Legendre, which take longer than the integrals."""
    return np.polynomial.legendre.leggauss(_NODES)


def epsilons(delta: float) -> Objective:
    """Return the objective that is the epsilon which each corner proves at a delta.

    (epsilon, delta)-DP has ``p <= e^eps q + delta`` and ``1 - q <= e^eps (1 - p) + delta``.
    """

    def objective(corners: Region) -> Array:
        forward = _log_ratio(corners.p - delta, corners.q, corners.p)
        backward = _log_ratio(corners.rest - delta, corners.miss, corners.rest)
        return np.maximum(forward, backward)

    return objective


def _log_ratio(top: Array, bottom: Array, of: Array) -> Array:
    """Return ``ln(top / bottom)`` rounded down, where top is a difference from a number."""
    top = np.maximum(top - 2.0**-52 * of, 0.0)
    with np.errstate(divide="ignore"):
        value = np.log(top) - np.log(bottom)
    return np.asarray(value - 2.0**-46 * (1.0 + np.abs(np.log(bottom))))


def mus(corners: Region) -> Array:
    """Return the mu that each corner proves: mu-GDP has ``PhiInv(p) - PhiInv(q) <= mu``."""
    hit, error = _quantile(corners.p, corners.miss), _quantile(corners.rest, corners.q)
    with np.errstate(invalid="ignore"):
        value = hit + error - 2.0**-40 * (1.0 + np.abs(hit) + np.abs(error))
    return np.where(np.isnan(value), -np.inf, value)


def _quantile(below: Array, above: Array) -> Array:
    """Return ``PhiInv`` of a probability, given with the rest, whichever is smaller."""
    from scipy.special import ndtri

    return np.asarray(np.where(below <= 0.5, ndtri(below), -np.asarray(ndtri(above))))
