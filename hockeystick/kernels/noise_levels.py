"""Quadrature over noise levels: Chebyshev moments of many points, and Gauss's rule for them."""

import math

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.series import Array
from hockeystick.kernels.uniform_minorant import minorant_exponent

# A point of no weight: what is left of the polynomials' squares is round-off.
_NOTHING = 1e-26


@njit(cache=True)
def chebyshev_sums(points: Array, weights: Array, centre: float, half: float, count: int) -> Array:
    """Return ``sum of w T_n((x - centre) / half)`` over the points, for n < count.

    Kahan's compensation keeps the sums' round-off at two units in the last place, however many.
    """
    sums, lost = np.zeros(count), np.zeros(count)
    for j in range(points.size):
        u = (points[j] - centre) / half
        before, now = u, 1.0
        for n in range(count):
            term = weights[j] * now - lost[n]
            grown = sums[n] + term
            lost[n] = (grown - sums[n]) - term
            sums[n] = grown
            before, now = now, 2.0 * u * now - before
    return sums


@interruptible
@njit(cache=True)
def recurrence(points: Array, centre: float, half: float, most: int) -> tuple[Array, Array, int]:
    """Return the three-term recurrence of the polynomials that are orthogonal on the points.

    Stieltjes' procedure for ``u = (x - centre) / half``: the diagonal, the squares beside it, and
    how many degrees there are before the polynomials vanish on all points, ``most`` at the most.
    """
    size = points.size
    diagonal, beside = np.zeros(most), np.zeros(most)
    before, now = np.zeros(size), np.ones(size)
    norm = float(size)
    for n in range(most):
        moment = 0.0
        for j in range(size):
            moment += (points[j] - centre) / half * now[j] * now[j]
        diagonal[n] = moment / norm
        after = 0.0
        for j in range(size):
            u = (points[j] - centre) / half
            value = (u - diagonal[n]) * now[j] - beside[n] * before[j]
            before[j] = now[j]
            now[j] = value
            after += value * value
        if n + 1 == most or after <= _NOTHING * size:
            return diagonal, beside, n + 1
        beside[n + 1] = after / norm
        norm = after
    return diagonal, beside, most


@njit(cache=True)
def cell_ends(points: Array, width: float) -> NDArray[np.int64]:
    """Return where the cells of ascending points end: the first point is at most ``width`` off."""
    ends = np.empty(points.size, dtype=np.int64)
    used = first = 0
    for j in range(points.size):
        if points[j] - points[first] > width:
            ends[used] = j
            used += 1
            first = j
    ends[used] = points.size
    return ends[: used + 1].copy()


@njit(cache=True)
def total_exponent(
    width: Array, mass: Array, ends: NDArray[np.int64], runs: Array, y: float
) -> float:
    """Return the sum over groups of densities of ``runs`` times their exponent at height ``y``."""
    total = 0.0
    start = 0
    for k in range(ends.size):
        group = minorant_exponent(width[start : ends[k]], mass[start : ends[k]], math.inf, y)
        total += runs[k] * group
        start = ends[k]
    return total
