"""Rows of correlated noise ``C^-1 Z``, one by one, from fresh noise and a small memory.

In the arithmetic of the arrays given (``CorrelatedNoise``), and in integers with a bound on what
rounding adds (``memory``), for ``matrix_factorization``.

In integers, diagonals are taken over the main one, so that ``c_0 = 1``. Fresh noise ``Z_t`` is an
integer, and

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
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, final

import numpy as np

from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import BandedInverse, BufferedToeplitz, Encoder
from hockeystick.mechanisms.streams.strategies import Strategy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Steps = NDArray[np.int64]

_Array = TypeVar("_Array")
_Next = Callable[[Any], Any]
_AN_ENCODER: Final = (
    "an Encoder of a strategy whose main diagonal is not 0, with no diagonal beyond a float's "
    "range of it; one made from a matrix keeps no strategy"
)
# Fresh noise and what neighbours move, in steps of the grid.
MOST: Final = 2.0**50
# Sums of what is kept stay below 2^61; what rounds has four times that until 64 bits are full.
_ROOM: Final = 61
# At most four operations, each within 2^-53 of its result.
_LOSS: Final = 2.0**-50


@final
class CorrelatedNoise:
    """Rows of ``C^-1 Z`` for an encoder C, in the order of the rounds: noise of a training step.

    A step that adds row t of ``C^-1 Z`` to what round t adds up releases ``X + C^-1 Z``, which is
    ``C^-1 (C X + Z)``: a function of the matrix mechanism's release. With fresh noise of standard
    deviation ``noise_multiplier * clipping norm`` it is ``MatrixFactorization(noise_multiplier,
    encoder)``. Rows follow one another by forward substitution:

    * ``Toeplitz``, ``SquareRoot``: ``w_t = (z_t - sum over k >= 1 of c_k w_(t-k)) / c_0``,
    * ``BandedInverse``: ``w_t = sum over k >= 0 of d_k z_(t-k)``,
    * ``BufferedToeplitz``: ``w_t = z_t - sum_j omega_j p_j``, ``p_j <- theta_j p_j + w_t``.

    It is made of an encoder that was made from a strategy, ``Encoder.of(strategy, rounds)``, and
    computes in the arithmetic of the arrays given: for training with noise in floating point.
    ``matrix_factorization`` is exact, and says what both keep, and that it is secret. There is one
    such memory for each array that is trained, with which a run goes on from a checkpoint.

    Example:
        >>> import hockeystick as hs
        >>> import numpy as np
        >>> noise = hs.release.CorrelatedNoise(hs.mechanisms.Encoder.square_root(9))
        >>> [noise.next(np.ones(1)).tolist() for _ in range(3)]
        [[1.0], [0.5], [0.375]]
    """

    __slots__ = ("_encoder", "_next", "_rows", "_shape")

    def __init__(self, encoder: Encoder) -> None:
        strategy = encoder.strategy if isinstance(encoder, Encoder) else None
        if strategy is None:
            raise ParameterError("encoder", encoder, _AN_ENCODER)
        try:
            self._next = _in_floats(strategy, encoder.rounds)
        except (OverflowError, ZeroDivisionError):
            raise ParameterError("encoder", encoder, _AN_ENCODER) from None
        self._encoder, self._rows = encoder, 0
        self._shape: tuple[int, ...] | None = None

    @property
    def encoder(self) -> Encoder:
        """The encoder C."""
        return self._encoder

    @property
    def rows(self) -> int:
        """How many rows there have been."""
        return self._rows

    def next(self, fresh: _Array) -> _Array:
        """Return the next row of ``C^-1 Z``, a new array, which may be changed.

        Fresh is row t of Z, independent Gaussian noise of the same shape in each round: an array of
        NumPy, a tensor of PyTorch or whatever else adds up and takes float factors.
        """
        shape = tuple(getattr(fresh, "shape", ()))
        if self._shape not in (None, shape):
            allowed = f"of shape {self._shape}, as the rows before"
            raise ParameterError("fresh", f"an array of shape {shape}", allowed)
        if self._rows == self._encoder.rounds:
            raise IncompatibleError(f"the encoder is for {self._rows:,} rounds, and no more")
        row: _Array = self._next(fresh)
        self._rows, self._shape = self._rows + 1, shape
        return row


@singledispatch
def _in_floats(strategy: Strategy, rounds: int) -> _Next:
    """Return what gives the next row, with its memory: of a Toeplitz matrix, past rows."""
    first, *rest = strategy.diagonals(rounds)
    return _substituted(
        _factor(1 / first), [-_factor(one / first) for one in rest], keep_fresh=False
    )


@_in_floats.register
def _(strategy: BandedInverse, rounds: int) -> _Next:
    own, *factors = map(_factor, strategy.coefficients[:rounds])
    return _substituted(own, factors, keep_fresh=True)


@_in_floats.register
def _(strategy: BufferedToeplitz, rounds: int) -> _Next:
    buffers: list[Any] = []

    def following(fresh: Any) -> Any:
        row = fresh * 1.0
        for scale, buffer in zip(strategy.scales, buffers, strict=False):
            row = row - buffer * scale
        if not buffers:
            buffers.extend(row * 1.0 for _ in strategy.decays)
            return row
        for j, decay in enumerate(strategy.decays):
            buffers[j] = buffers[j] * decay + row
        return row

    return following


def _substituted(own: float, factors: Sequence[float], *, keep_fresh: bool) -> _Next:
    """Return what adds past rows, fresh ones or those returned, times factors to a fresh row."""
    past: deque[Any] = deque(maxlen=len(factors))

    def following(fresh: Any) -> Any:
        row = fresh * own
        for factor, former in zip(factors, past, strict=False):
            if factor:
                row = row + former * factor
        past.appendleft((fresh if keep_fresh else row) * 1.0)
        return row

    return following


def _factor(value: Any) -> float:
    """Return an exact number as a float, or raise where it is beyond the largest."""
    found = float(value)
    if math.isinf(found):
        raise OverflowError
    return found


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

    Most is how large fresh noise and what neighbours move may be together, in steps.
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
    size, both = _norm(1.0, sizes), list(zip(sizes, lengths, strict=True))
    unsure = sum(_LOSS * (len(scales) + 4) * one * (n + 1) for one, n in both)
    largest = most * _inverse_norm(_buffered_response(strategy, rounds), rounds * unsure)
    digits = _digits(largest * size)
    error = 0.5 + sum(n * 2.0**-digits + 2 * _LOSS * one * largest for one, n in both)
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
    """Return a bound on ``sum |d_k|``, at least 1, from what floats have for d; or raise.

    Unsure is how far they are from solving ``C d = 1``, in total, over the largest of them.
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
