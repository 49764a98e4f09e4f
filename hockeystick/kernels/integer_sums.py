"""Rows of floats as rows of integers: their sums and squared lengths, in one pass."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels.compiled import njit_at_once

Array = NDArray[np.float64]

# Numbers next to each other are worked on in vectors, blocks of columns in a processor's cache.
LANES = 128
_BLOCK = 1024


@njit_at_once(cache=True, nogil=True)
def add_rounded(
    rows: NDArray[Any], scales: Array, weights: Array, sums: Array, squares: Array
) -> None:
    """Add ``m_i = round(scales_i rows_i)``, to the nearest integers, to sums, and m_i^2 to squares.

    Row i is added to ``sums[k]`` where ``weights[k, i]`` is not 0, and its squares to
    ``squares[i]``, each to one of ``LANES`` parts. All is in float64: exact below 2^53; squares
    never fall, whatever is added.
    """
    examples, entries = rows.shape
    integers = np.empty(LANES)
    for block in range(0, entries, _BLOCK):
        for i in range(examples):
            for start in range(block, min(block + _BLOCK, entries), LANES):
                row = rows[i, start : start + LANES]
                if row.size == LANES:  # a number that the compiler knows
                    add_squares(row, LANES, scales[i], integers, squares[i])
                else:
                    add_squares(row, row.size, scales[i], integers, squares[i])
                for k in range(weights.shape[0]):
                    if weights[k, i] != 0.0:
                        part = sums[k, start : start + row.size]
                        for j in range(row.size):
                            part[j] += integers[j]


@njit_at_once(cache=True, nogil=True)
def add_squares(
    row: NDArray[Any], size: int, scale: float, integers: Array, squares: Array
) -> None:
    """Write a row's integers, and add their squares."""
    for j in range(size):
        integer = np.rint(row[j] * scale)
        integers[j] = integer
        squares[j] += integer * integer
