"""Rows of correlated noise ``C^-1 Z``, one by one, from fresh noise and a small memory."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import singledispatch
from typing import Any, TypeVar, final

from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import BandedInverse, BufferedToeplitz, Encoder
from hockeystick.mechanisms.streams.strategies import Strategy

_Array = TypeVar("_Array")
_NEXT = Callable[[Any], Any]
AN_ENCODER = (
    "an Encoder of a strategy whose main diagonal is not 0, with no diagonal beyond a float's "
    "range of it; one made from a matrix keeps no strategy"
)


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

    Guarantees:
        Computed in the arithmetic of the arrays given, as is the noise: for training with noise in
        floating point. ``hs.release.matrix_factorization`` is exact.

    Edge cases:
        It keeps as many rows as the strategy has diagonals beside the main one (the whole square
        root: all rows so far), or buffers. **What it keeps is secret**: whoever sees it can
        take the noise off what was released. There is one such memory for each array that
        is trained, and a run that goes on from a checkpoint goes on from the memory as well.

    Args:
        encoder: An encoder made from a strategy, ``Encoder.of(strategy, rounds)``.

    Raises:
        ParameterError: If it is no such encoder.

    Example:
        >>> import hockeystick as hs
        >>> import numpy as np
        >>> rng = np.random.default_rng(1)
        >>> encoder = hs.mechanisms.Encoder.buffered_toeplitz([0.25, 0.25], [0.5, 0.875], 1000)
        >>> noise = hs.release.CorrelatedNoise(encoder)
        >>> rows = np.stack([noise.next(rng.normal(size=2)) for _ in range(1000)])
        >>> bool(abs(rows.sum(axis=0)).max() < abs(rng.normal(size=(1000, 2)).sum(axis=0)).max())
        True
    """

    __slots__ = ("_encoder", "_next", "_rows", "_shape")

    def __init__(self, encoder: Encoder) -> None:
        strategy = encoder.strategy if isinstance(encoder, Encoder) else None
        if strategy is None:
            raise ParameterError("encoder", encoder, AN_ENCODER)
        try:
            self._next = _memory(strategy, encoder.rounds)
        except (OverflowError, ZeroDivisionError):
            raise ParameterError("encoder", encoder, AN_ENCODER) from None
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
        """Return the next row of ``C^-1 Z``.

        Args:
            fresh: Row t of Z, independent Gaussian noise of the same shape in each round: an array
                of NumPy, a tensor of PyTorch or whatever else adds up and takes float factors.

        Returns:
            A new array of that kind, which may be changed.

        Raises:
            IncompatibleError: If there were as many rows already as the encoder has rounds.
            ParameterError: If it has another shape than the row before.
        """
        shape = tuple(getattr(fresh, "shape", ()))
        if self._shape not in (None, shape):
            allowed = f"of shape {self._shape}, as the rows before"
            raise ParameterError("fresh", f"an array of shape {shape}", allowed)
        if self._rows == self._encoder.rounds:
            raise IncompatibleError(
                f"the encoder is for {self._rows:,} rounds, and there were as many; its "
                "sensitivity holds for no more"
            )
        row: _Array = self._next(fresh)
        self._rows, self._shape = self._rows + 1, shape
        return row


@singledispatch
def _memory(strategy: Strategy, rounds: int) -> _NEXT:
    """Return what gives the next row, with its memory: of a Toeplitz matrix, past rows."""
    first, *rest = strategy.diagonals(rounds)
    own = _factor(1 / first)
    factors = [_factor(one / first) for one in rest]
    past: deque[Any] = deque(maxlen=len(factors))

    def following(fresh: Any) -> Any:
        row = fresh * own
        for factor, former in zip(factors, past, strict=False):
            if factor:
                row = row - former * factor
        past.appendleft(row * 1.0)
        return row

    return following


@_memory.register
def _(strategy: BandedInverse, rounds: int) -> _NEXT:
    own, *factors = map(_factor, strategy.coefficients[:rounds])
    past: deque[Any] = deque(maxlen=len(factors))

    def following(fresh: Any) -> Any:
        row = fresh * own
        for factor, former in zip(factors, past, strict=False):
            if factor:
                row = row + former * factor
        past.appendleft(fresh * 1.0)
        return row

    return following


@_memory.register
def _(strategy: BufferedToeplitz, rounds: int) -> _NEXT:
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


def _factor(value: Any) -> float:
    """Return an exact number as a float, or raise where it is beyond the largest."""
    found = float(value)
    if math.isinf(found):
        raise OverflowError
    return found
