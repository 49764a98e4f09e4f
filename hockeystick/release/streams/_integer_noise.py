"""Rows of correlated noise in integers, with a bound on what rounding adds.

Diagonals are taken over the main one, so that ``c_0 = 1``. Fresh noise ``Z_t`` is an integer, and

    w_t = Z_t - u_t,  u_t = sum over k >= 1 of c_k w_(t-k) + e_t   (Toeplitz, buffered)
    w_t = Z_t + v_t,  v_t = sum over k >= 1 of d_k Z_(t-k) + e_t   (banded inverse)

where u_t and v_t are integers, computed entry by entry from what is kept, and e_t is what that
rounds. A *memory* says how large an entry of e_t, or of ``C e`` for the banded inverse, may be.

**How large numbers get.** Let D bound ``sum |d_k|`` for the inverse's diagonals d. Fresh noise and
what neighbours move, together, stay below ``most`` steps, ``2^50`` at the most, so that
``w = C^-1 (Z - e)`` stays below ``most D``, on either of two neighbouring data sets. Numbers are
kept with h binary digits behind the point, as many as 64-bit integers have room for.

**D.** Floats compute ``d^``: the exact response of C to a row with an error e in each round solves
``C d^ = 1 + e``, so ``|d|_1 <= |d^|_1 + |d|_1 |e|_1`` and ``|d|_1 <= |d^|_1 / (1 - |e|_1)``. Where
``|e|_1`` cannot be shown to be at most 1/2 the strategy is refused.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import numpy as np

from hockeystick.mechanisms import BandedInverse, BufferedToeplitz
from hockeystick.mechanisms.streams.strategies import Strategy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Steps = NDArray[np.int64]

# Fresh noise and what neighbours move, in steps of the grid.
MOST: Final = 2.0**50
# Sums of what is kept stay below 2^61; what rounds has four times that until 64 bits are full.
_ROOM: Final = 61
# At most four operations, each within 2^-53 of its result.
_LOSS: Final = 2.0**-50


class TooLargeError(ArithmeticError):
    """Numbers of 64 bits have no room for what a strategy makes of the noise."""


class Memory(Protocol):
    """What follows from the noise of earlier rounds."""

    def row(self, fresh: Steps) -> Steps:
        """Return the next row of noise, and change nothing."""

    def keep(self, fresh: Steps, row: Steps) -> None:
        """Keep what later rows need."""


@singledispatch
def memory(strategy: Strategy, rounds: int, most: float = MOST) -> tuple[Memory, float]:
    """Return an empty memory, and how far its rows are from ``C^-1 (Z + e)``: the largest |e|.

    Args:
        strategy: The strategy.
        rounds: The number of rounds.
        most: How large fresh noise and what neighbours move may be together, in steps.

    Raises:
        TooLargeError: If 64 bits are too few.
    """
    first, *rest = strategy.diagonals(rounds)
    factors = [float(one / first) for one in rest]
    size = _norm(1.0, factors)
    # Each row sums len(factors) products of sizes that add up to this.
    unsure = (len(factors) + 4) * _LOSS * size
    largest = most * _inverse_norm(_response(factors, rounds), rounds * unsure)
    digits = _digits(largest * size)
    error = 0.5 + 0.5 * len(factors) * 2.0**-digits + _LOSS * size * largest
    return Feedback(factors, digits, -1), error


@memory.register
def _(strategy: BandedInverse, rounds: int, most: float = MOST) -> tuple[Memory, float]:
    first, *rest = strategy.coefficients[:rounds]
    factors = [float(one / first) for one in rest]
    diagonals = strategy.diagonals(rounds)
    own = sum(abs(float(one / diagonals[0])) for one in diagonals) * (1.0 + rounds * _LOSS)
    size = _norm(1.0, factors)
    digits = _digits(most * size)
    error = 0.5 + 0.5 * len(factors) * 2.0**-digits + _LOSS * size * most
    if math.isinf(own):
        raise TooLargeError
    return Feedback(factors, digits, 1), error * own


@memory.register
def _(strategy: BufferedToeplitz, rounds: int, most: float = MOST) -> tuple[Memory, float]:
    scales, decays = strategy.scales, strategy.decays
    # No power sum of a decay is larger than this, up to the number of rounds.
    lengths = [min(float(rounds), (1.0 + _LOSS) / (1.0 - decay)) for decay in decays]
    sizes = [scale * length for scale, length in zip(scales, lengths, strict=True)]
    size = _norm(1.0, sizes)
    unsure = sum(_LOSS * (len(scales) + 4) * one * (n + 1) for one, n in zip(sizes, lengths,
                 strict=True))  # fmt: skip
    largest = most * _inverse_norm(_buffered_response(strategy, rounds), rounds * unsure)
    digits = _digits(largest * size)
    error = 0.5 + sum(
        n * 2.0**-digits + 2 * _LOSS * one * largest for one, n in zip(sizes, lengths, strict=True)
    )
    return Buffers(scales, decays, digits), error


@final
class Feedback:
    """Past rows, of noise (sign -1) or of fresh noise (sign 1), times factors."""

    def __init__(self, factors: Sequence[float], digits: int, sign: int) -> None:
        self._factors = [math.ldexp(one, digits) for one in factors]
        self._digits, self._sign = digits, sign
        self._past: deque[Steps] = deque(maxlen=len(factors))

    def row(self, fresh: Steps) -> Steps:
        """Return the fresh noise and what past rows add to it."""
        total = np.zeros_like(fresh)
        for factor, former in zip(self._factors, self._past, strict=False):
            if factor:
                total += np.rint(former * factor).astype(np.int64)
        row: Steps = fresh + self._sign * _whole(total, self._digits)
        return row

    def keep(self, fresh: Steps, row: Steps) -> None:
        """Keep one row."""
        self._past.appendleft(row if self._sign < 0 else fresh)


@final
class Buffers:
    """For each buffer j ``omega_j p_j``, with ``p_j <- theta_j p_j + w_t``."""

    def __init__(self, scales: Sequence[float], decays: Sequence[float], digits: int) -> None:
        self._scales = [math.ldexp(one, digits) for one in scales]
        self._losses = [1.0 - one for one in decays]
        self._digits = digits
        self._buffers: list[Any] = [np.int64(0)] * len(self._scales)

    def row(self, fresh: Steps) -> Steps:
        """Return the fresh noise without what the buffers hold."""
        row: Steps = fresh - _whole(sum(self._buffers), self._digits)
        return row

    def keep(self, fresh: Steps, row: Steps) -> None:
        """Let each buffer decay, and add the row."""
        self._buffers = [
            kept - np.rint(kept * loss).astype(np.int64) + np.rint(row * scale).astype(np.int64)
            for kept, loss, scale in zip(self._buffers, self._losses, self._scales, strict=True)
        ]


def _whole(total: Any, digits: int) -> Any:
    """Return numbers with binary digits behind the point, rounded to integers."""
    return (total + (1 << digits >> 1)) >> digits


def _digits(largest: float) -> int:
    """Return how many binary digits behind the point there is room for, or raise."""
    if not largest < 2.0**_ROOM:
        raise TooLargeError
    return _ROOM - max(math.frexp(largest)[1], 0)


def _norm(first: float, rest: Sequence[float]) -> float:
    """Return the sum of the sizes of numbers, rounded up."""
    return (first + math.fsum(map(abs, rest))) * (1.0 + 4.0 * _LOSS)


def _inverse_norm(response: Sequence[float], unsure: float) -> float:
    """Return a bound on ``sum |d_k|``, at least 1, or raise.

    Args:
        response: What floats have for d.
        unsure: How far they are from solving ``C d = 1``, in total, over the largest of them.
    """
    error = unsure * max(map(abs, response), default=1.0)
    if not error <= 0.5:
        raise TooLargeError
    return math.fsum(map(abs, response)) * (1.0 + 4.0 * _LOSS) / (1.0 - error)


def _response(factors: Sequence[float], rounds: int) -> list[float]:
    """Return the diagonals of the inverse of a Toeplitz matrix, in floats."""
    kept = np.array(factors)
    while len(kept) and kept[-1] == 0.0:
        kept = kept[:-1]
    found = np.zeros(rounds + len(kept))
    start = len(kept)
    found[start] = 1.0
    turned = kept[::-1].copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(start + 1, start + rounds):
            found[t] = -(turned @ found[t - start : t]) if start else 0.0
    return [float(one) for one in found[start:]]


def _buffered_response(strategy: BufferedToeplitz, rounds: int) -> list[float]:
    """Return the diagonals of the inverse of a buffered Toeplitz matrix, in floats."""
    scales, decays = np.array(strategy.scales), np.array(strategy.decays)
    buffers, found = np.ones_like(scales), [1.0]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(1, rounds):
            found.append(-float(scales @ buffers))
            buffers = decays * buffers + found[-1]
    return found
