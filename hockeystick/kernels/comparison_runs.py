"""The recursion of a run of comparisons, over points of equal ratios.

Z at the points ``x_j = e^(j h)`` is followed through N comparisons. A comparison k, with the
chances (a, a') of "below", adds a gain and moves Z by ``ln(a'/a)``, which is not a multiple of h:
between two points Z is at most its chord in x. As the points are equally far apart, the chord's
weights and the offset are the same at every point, so that each comparison is a shifted sum:

    Z_new[j] = max(Z[j], max over k of gain[k, j] + low_k Z[j + o_k] + high_k Z[j + o_k + 1]).
"""

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.compiled import njit
from hockeystick.kernels.series import Array

Indices = NDArray[np.int64]

# What Z begins with in place of 0: above subnormal numbers, whose arithmetic is slow and coarse.
LEAST = 1e-280
# Each round enlarges by this, which is more than its round-off.
ENLARGED = 1.0 + 2.0**-50


@njit(cache=True)
def run_excess(
    gain: Array, spans: Indices, low: Array, high: Array, margin: int, comparisons: int
) -> Array:
    """Return upper bounds of Z at each point after so many comparisons.

    ``spans[s]`` is a comparison k, its first point, the one after its last point, and the offset
    o_k, of at most ``margin - 1`` to either side; ``low[s]`` and ``high[s]`` are the weights there.
    Beyond the ends Z counts as it is at the ends.

    All numbers are at least 0: a value is a sum of three terms, two of them products, which in
    floats is at least ``(1 - 2^-53)^3`` times what it is exactly, as long as no product is
    subnormal; one that is errs by less than ``2^-1074``, far below ``2^-52 LEAST``. ``1 + 2^-50``
    in the end, itself rounded once, is more than both together. So a round in floats is at least
    the round in exact arithmetic, of numbers that are at least as large; as a round rises with each
    of its numbers, the bound holds after any number of rounds, and N rounds enlarge it by at most a
    relative ``N 2^-49`` and 2 N ``LEAST``.
    """
    places = gain.shape[1]
    padded = np.full(places + 2 * margin, LEAST)
    new = np.empty(places)
    for _ in range(comparisons):
        for j in range(places):
            new[j] = padded[margin + j]
        for s in range(low.size):
            start, stop, one, other = spans[s, 1], spans[s, 2], low[s], high[s]
            moved = margin + spans[s, 3] + start
            # Parts that begin at 0 are worked on in vectors: no index can be negative.
            own, best = gain[spans[s, 0], start:stop], new[start:stop]
            before = padded[moved : moved + stop - start + 1]
            for j in range(stop - start):
                value = own[j] + (one * before[j] + other * before[j + 1])
                best[j] = value if value > best[j] else best[j]
        for j in range(places):
            padded[margin + j] = new[j] * ENLARGED
        for j in range(margin):
            padded[j] = padded[margin]
            padded[margin + places + j] = padded[margin + places - 1]
    return padded[margin : margin + places].copy()
