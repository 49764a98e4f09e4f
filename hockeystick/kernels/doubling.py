"""Sums and products of two independent positive variables, each on some points, put on others.

``mass`` and ``at`` list the variables' probabilities and values, ascending; of the second one, the
entries from ``first[i]`` up to ``last[i]`` meet the i-th of the first. Where both are the ``same``,
each pair is met once and counted twice. Only positive numbers are added, and each result adds up at
most ``len(first) + len(second)`` terms one after another, so that it errs by no more than about as
many units in the last place, relative, however small it is.
"""

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.compiled import interruptible, njit
from hockeystick.kernels.series import Array

Indices = NDArray[np.int64]


@interruptible
@njit(cache=True)
def shares(
    mass: tuple[Array, Array],
    at: tuple[Array, Array],
    first: Indices,
    last: Indices,
    edge: Array,
    same: bool,
    product: bool,
) -> tuple[Array, Array]:
    """Return the masses that the cells between edges give to their lower and to their upper edge.

    What falls into a cell goes to both, so that its mean is kept. A share errs as if the value were
    off by at most 8 ulp. Values beyond the outermost edges, which only rounding can bring about,
    count as if they were there.
    """
    x_mass, y_mass = mass
    x_at, y_at = at
    inverse = 1.0 / np.diff(edge)
    lower, upper = np.zeros(edge.size - 1), np.zeros(edge.size - 1)
    end = edge.size - 2
    for i in range(x_mass.size):
        own = x_mass[i]
        stop = min(last[i], i) if same else last[i]
        weight = 2.0 * own if same else own
        n = place(edge, value(x_at[i], y_at[min(first[i], y_at.size - 1)], product))
        low, high = 0.0, 0.0
        for j in range(first[i], stop):
            v = value(x_at[i], y_at[j], product)
            if v >= edge[n + 1] and n < end:
                lower[n] += weight * low
                upper[n] += weight * high
                low, high = 0.0, 0.0
                while v >= edge[n + 1] and n < end:
                    n += 1
            share = min(max((v - edge[n]) * inverse[n], 0.0), 1.0)
            low += y_mass[j] * (1.0 - share)
            high += y_mass[j] * share
        lower[n] += weight * low
        upper[n] += weight * high
        if same and first[i] <= i < last[i]:
            v = value(x_at[i], x_at[i], product)
            n = place(edge, v)
            share = min(max((v - edge[n]) * inverse[n], 0.0), 1.0)
            lower[n] += own * own * (1.0 - share)
            upper[n] += own * own * share
    return lower, upper


@njit(cache=True)
def value(x: float, y: float, product: bool) -> float:
    """Return the sum or the product of two values."""
    return x * y if product else x + y


@njit(cache=True)
def place(ends: Array, at: float) -> int:
    """Return in which interval between ascending ends a value lies, the outermost ones included."""
    low, high = 0, ends.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if ends[middle] <= at:
            low = middle
        else:
            high = middle
    return low
