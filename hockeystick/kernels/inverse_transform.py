"""Noise by inverse transform: 64 random bits to an integer, with a bound on every rounding.

A survival function S falls from ``S(0) = 1`` to 0, and Q is its inverse. With u uniform on (0, 1),
``Q(u)`` has the survival function S; a fair bit gives it a sign. Of u the kernel sees 63 bits V,
that is ``V 2^-63 <= u <= (V + 1) 2^-63``. It evaluates Q by a polynomial in each of 16 cells per
octave of u, bounds the distance of what it computed from ``scale Q(u)`` for every such u, and says
"undecided" wherever that bound reaches an integer boundary. What it decides is right.
"""

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.compiled import njit_at_once

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Array = NDArray[np.float64]

# Cells per octave are 2^CELL_BITS. The lowest octave is that of V = 2^LOWEST ..; below it V has too
# few bits to say where in a cell u lies.
CELL_BITS = 4
LOWEST = 8
# One unit of round-off, and a step above 1 for the products of bounds.
_UNIT = 2.0**-53
_UP = 1.0 + 2.0**-40


@njit_at_once(cache=True)
def integers(
    words: Words,
    scale: float,
    shift: float,
    cells: Array,
    errors: Array,
    slopes: Array,
    drawn: Integers,
    undecided: Integers,
) -> int:
    """Write ``+- floor(scale Q(u) + shift)`` for each word; return how many are undecided.

    ``cells[i]`` has the coefficients of the polynomial of cell i in t from -1 to 1, ``errors[i]``
    the bound on its distance from Q, round-off included, and ``slopes[i]`` one on ``|dQ/dt|``. The
    lowest bit of a word is the sign. Places of undecided words go to ``undecided``.
    """
    count = 0
    last = cells.shape[1] - 1
    for i in range(words.size):
        word = words[i]
        position = word >> np.uint64(1)
        octave = bit_length(position) - 1
        if octave < LOWEST:
            undecided[count] = i
            count += 1
            continue
        rest = octave - CELL_BITS
        lead = np.int64(position >> np.uint64(rest)) - (1 << CELL_BITS)
        cell = ((octave - LOWEST) << CELL_BITS) + lead
        half = np.int64(1) << np.int64(rest - 1)
        within = np.int64(position & np.uint64((np.int64(1) << np.int64(rest)) - 1))
        unit = 1.0 / half  # a power of two
        t = (np.float64(within - half) + 0.5) * unit
        row = cells[cell]
        value = row[last]
        for k in range(last - 1, -1, -1):
            value = value * t + row[k]
        scaled = scale * value + shift
        error = scale * (errors[cell] + 0.5 * unit * slopes[cell]) + 4.0 * _UNIT * abs(scaled)
        error = error * _UP + 4.0 * _UNIT * shift
        whole = np.floor(scaled)
        part = scaled - whole
        if part <= error or part >= 1.0 - error:
            undecided[count] = i
            count += 1
            continue
        size = np.int64(whole)
        drawn[i] = size if word & np.uint64(1) == 0 else -size
    return count


@njit_at_once(cache=True)
def bit_length(word: np.uint64) -> int:
    """Return the number of bits of a word."""
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(step) != 0:
            word >>= np.uint64(step)
            length += step
    return length + 1 if word != 0 else 0
