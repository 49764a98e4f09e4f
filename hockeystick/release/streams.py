"""Running sums, exact in floats, by tree aggregation and with correlated noise; rows of that noise.

**A matrix factorization as a stream.** Rows are rounded to integers ``x_t`` on a grid; fresh noise
is ``Z_t = round(N(0, s^2))``; what is released is ``y_t = x_t + w_t`` for rows w of correlated
noise in integers (``memory``). It is a Gaussian mechanism. Fix what is released, y. On one data set
the noise must have been ``w = y - x``, so ``y_t = M_t + Z_t`` with ``M_t = x_t - u_t(w_0, ...,
w_(t-1))``, an integer that the data and the rows released before determine. As ``M + round(N) =
round(M + N)``, each row is a function of ``M_t + N``. On a neighbouring data set, with the same y,
``w' - w = x - x'``, and

    M_t - M'_t = x_t - x'_t + sum over k >= 1 of c_k (x_(t-k) - x'_(t-k)) - (e_t - e'_t)
               = (C (x - x'))_t + at most 2 e in size in each entry.

Rows of x differ in the rounds of a participation only, by at most ``S / g + sqrt(d)`` in L2. So the
distance of M and M', over n rounds of d entries, is at most

    sensitivity(C) (S / g + sqrt(d)) + 2 e sqrt(n d),

whatever was released before, that is on every path: the rounds together are a Gaussian mechanism of
that distance over s (adaptive composition with a bound on the sum of the squares that holds on
every path: Smith and Thakurta 2022). For a banded inverse ``Z_t(y)`` is determined by the same
recurrence, ``Z - Z' = -C (x - x') - C (e - e')``, and the bound on ``C e`` is taken.

**Rows of ``C^-1 Z`` in integers.** Diagonals are taken over the main one, so that ``c_0 = 1``.
Fresh noise ``Z_t`` is an integer, and

    w_t = Z_t - u_t,  u_t = sum over k >= 1 of c_k w_(t-k) + e_t   (Toeplitz, buffered)
    w_t = Z_t + v_t,  v_t = sum over k >= 1 of d_k Z_(t-k) + e_t   (banded inverse)

where u_t and v_t are integers, computed entry by entry from what is kept, and e_t is what that
rounds. A *memory* says how large an entry of e_t, or of ``C e`` for the banded inverse, may be.

**How large numbers get.** Let D bound ``sum |d_k|`` for the inverse's diagonals d. Fresh noise and
what neighbours move, together, stay below ``most`` steps, ``2^50`` at the most, so that ``w = C^-1
(Z - e)`` stays below ``most D``, on either of two neighbouring data sets. Numbers are kept with h
binary digits behind the point, as many as 64-bit integers have room for.

**D.** Floats compute ``d^``: the exact response of C to a row with an error e in each round solves
``C d^ = 1 + e``, so ``|d|_1 <= |d^|_1 + |d|_1 |e|_1`` and ``|d|_1 <= |d^|_1 / (1 - |e|_1)``. Where
``|e|_1`` cannot be shown to be at most 1/2 the strategy is refused.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import singledispatch
from threading import Lock
from typing import Any, Final, TypeVar, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import BandedInverse, BufferedToeplitz, Encoder, MatrixFactorization
from hockeystick.mechanisms.streams.matrix_factorization import TreeAggregation
from hockeystick.mechanisms.streams.strategies import Strategy
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release._values import MOST as MOST_STEPS
from hockeystick.release._values import Grid, grid_of, of_kind, root_up, row_of
from hockeystick.release.counting import Charged, ChargedRun, book, checked_charge
from hockeystick.release.samplers.bits import Bits, Floats, Integers, secret_bits
from hockeystick.release.samplers.real_noise import SCALE, rounded_gaussian

_Array = TypeVar("_Array")
_Next = Callable[[Any], Any]
_AN_ENCODER: Final = "an Encoder of a strategy, not a matrix, whose main diagonal is not near 0"
# Fresh noise and what neighbours move, in steps of the grid.
MOST: Final = 2.0**50
# Sums of what is kept stay below 2^61; what rounds has four times that until 64 bits are full.
_ROOM: Final = 61
# At most four operations, each within 2^-53 of its result.
_LOSS: Final = 2.0**-50
_Kind = TreeAggregation | MatrixFactorization
_SIZE: Final = _validate.Domain(symbol="d", low=1, high=10**7, typical=(1, 10**6), whole=True)
_SMALL: Final = "of an encoder made from a strategy whose noise has room in 64 bits"
# No draw of a rounded Gaussian is further out, in standard deviations.
_FURTHEST: Final = 38.5
# Sizes of noise that are tried: the less there is, the less is rounded, and the faster it is drawn.
_SIZES: Final = (2.0**36, 2.0**40, 2.0**44, 2.0**48, MOST)
# The most that neighbours move, in standard deviations.
_MOST_SPREAD: Final = 2.0**40


class _Sums(ChargedRun, ABC):
    """What two kinds of running sums share: several threads may add rows, one at a time."""

    __slots__ = ("_bits", "_grid", "_lock", "_most", "_rows", "_size")

    def __init__(
        self, mechanism: _Kind, most: int, grid: Grid, size: int, charge: Any, bits: Bits
    ) -> None:
        super().__init__()
        self._most, self._rows, self._lock = most, 0, Lock()
        self._grid, self._size, self._bits = grid, size, bits
        book(checked_charge(charge), mechanism)

    @property
    def rows(self) -> int:
        """How many rows have been added."""
        return self._rows

    def add(self, row: Any) -> Floats:
        """Add the next round's d numbers, and return the noisy sum of all rows so far.

        ``IncompatibleError`` says that all rounds were added, or that this process was forked from
        the run's. Without random bits no row is added.
        """
        self._check_process()
        steps = self._grid.steps("row", row_of("row", row, self._size))
        with self._lock:
            if self._rows == self._most:
                raise IncompatibleError(f"the run is for {self._rows:,} rounds: begin another one")
            return self._added(steps)

    @abstractmethod
    def _added(self, steps: Integers) -> Floats: ...

    def _noise(self) -> Integers:
        if self._grid.scale == 0.0:
            return np.zeros(self._size, dtype=np.int64)
        return rounded_gaussian(self._grid.scale, self._size, bits=self._bits)


def tree_aggregation(
    mechanism: TreeAggregation,
    size: int,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> RunningSums:
    """Return a run that takes rows one by one, with ``add``, and returns their noisy sum so far.

    With S the sensitivity, z the finite noise multiplier, d <= 10^7 the size of a row, g a power of
    two of at most ``2^-20 S``, and a node of the tree for each binary 1 of t, it is after t rows

        M(D)_t = g (sum of round(row / g) + sum over the nodes of round(N)),
        N ~ N(0, s^2 I) for each node, s >= z (S / g + ceil(sqrt(d))).

    The sensitivity is how far a row moves in L2 between neighbouring data sets, the only one that
    does: the clipping norm, twice that under replace-one. Clipping is the caller's. It is charged
    once, here, for all rows; later rows may depend on earlier sums (Dwork, Naor, Pitassi and
    Rothblum 2010; Kairouz et al. 2021, without the refinement of Honaker 2015).

    Example:
        >>> import hockeystick as hs
        >>> run = hs.release.tree_aggregation(hs.mechanisms.TreeAggregation(5, leaves=9), 2, 1.0)
        >>> [run.add(row).shape for row in ([0.5, 0.5], [1, 0])]
        [(2,), (2,)]
    """
    return RunningSums(of_kind(mechanism, TreeAggregation), size, sensitivity, charge, bits)


@final
class RunningSums(_Sums):
    """A run of tree aggregation: made by ``tree_aggregation``."""

    __slots__ = ("_nodes", "_total")

    def __init__(
        self, mechanism: TreeAggregation, size: int, sensitivity: float, charge: Any, bits: Bits
    ) -> None:
        entries = _validate.count("size", size, _SIZE)
        grid = grid_of(mechanism, mechanism.noise_multiplier, sensitivity, root_up(entries))
        self._total = np.zeros(entries, dtype=np.int64)
        # The noise of the node that ends with the last row, by its height.
        self._nodes: dict[int, Integers] = {}
        super().__init__(mechanism, mechanism.leaves, grid, entries, charge, bits)

    def _added(self, steps: Integers) -> Floats:
        total = self._total + steps
        if bool(((total > MOST_STEPS) | (total < -MOST_STEPS)).any()):
            raise ParameterError("row", "a larger one", "such that sums stay below 2^62 steps")
        # How often the number of rows is divisible by 2: the height of the node that ends here.
        count = self._rows + 1
        height = (count & -count).bit_length() - 1
        noise = self._noise()
        self._nodes = {h: one for h, one in self._nodes.items() if h > height} | {height: noise}
        self._rows, self._total = count, total
        return self._grid.floats(total + sum(self._nodes.values()))


def matrix_factorization(
    mechanism: MatrixFactorization,
    size: int,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> CorrelatedSums:
    """Return a run that takes rows one by one and returns their sum so far, with correlated noise.

    With C the encoder, made from a strategy by ``Encoder.of(strategy, rounds)``, and all else as
    for ``tree_aggregation``, row t is released as

        g (round(row_t / g) + (C^-1 Z)_t),  Z = round(N(0, s^2 I)),  s >= z (S / g + what rounds),

    with ``C^-1 Z`` in integers, and after t rows the sum of these is returned by ``add``. S is how
    far one participant moves a row, in the rounds that they take part in; who does when is the
    caller's. The module has the proof. Rounding adds at most ``2^-16`` of the noise where the grid
    has room for it. What is kept is secret: it takes the noise off what was released (Denisov,
    McMahan, Rush, Smith and Thakurta 2022; Smith and Thakurta 2022).

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.square_root(9))
        >>> run = hs.release.matrix_factorization(plan, size=2, sensitivity=1.0)
        >>> [run.add(row).shape for row in ([0.5, 0.5], [1, 0])]
        [(2,), (2,)]
    """
    return CorrelatedSums(of_kind(mechanism, MatrixFactorization), size, sensitivity, charge, bits)


@final
class CorrelatedSums(_Sums):
    """A run of a matrix factorization: made by ``matrix_factorization``."""

    __slots__ = ("_latest", "_memory", "_sum")

    def __init__(
        self, mechanism: MatrixFactorization, size: int, sensitivity: float, charge: Any, bits: Bits
    ) -> None:
        entries = _validate.count("size", size, _SIZE)
        self._memory, grid = _prepared(mechanism, entries, sensitivity)
        self._sum, self._latest = np.zeros(entries), np.zeros(entries)
        super().__init__(mechanism, mechanism.encoder.rounds, grid, entries, charge, bits)

    @property
    def latest(self) -> Floats:
        """The row added last with its noise; zeros before the first."""
        return self._latest.copy()

    def _added(self, steps: Integers) -> Floats:
        if bool((np.abs(steps) > MOST_STEPS // 2).any()):
            raise ParameterError("row", "a larger one", "such that it stays below 2^61 steps")
        fresh = self._noise()
        noise = self._memory.row(fresh)
        self._memory.keep(fresh, noise)
        self._rows, self._latest = self._rows + 1, self._grid.floats(steps + noise)
        self._sum = self._sum + self._latest
        return self._sum.copy()


def _prepared(
    mechanism: MatrixFactorization, entries: int, sensitivity: object
) -> tuple[Memory, Grid]:
    """Return an empty memory, and a grid whose noise is scaled to what rounding adds."""
    encoder, noise = mechanism.encoder, mechanism.noise_multiplier
    strategy = encoder.strategy
    try:
        if strategy is None:
            raise TooLargeError
        if isinstance(strategy, BandedInverse):
            first = 1 / Fraction(strategy.coefficients[0])
        else:
            first = abs(strategy.diagonals(1)[0])
        own = float_up(largest_reading(noise) / first) if math.isfinite(noise) else noise
        spread = encoder.sensitivity / float(first) / own if own > 0.0 else 0.0
    except ArithmeticError:
        raise ParameterError("mechanism", mechanism, _SMALL) from None
    if not spread <= _MOST_SPREAD:
        allowed = "of noise 0, or of at least 2^-40 times the encoder's sensitivity"
        raise ParameterError("mechanism", mechanism, allowed)
    # Fresh noise and what a participant moves are at most this many scales of the noise together.
    reach = _FURTHEST + 2.0 * spread
    for most in _SIZES:
        try:
            kept, error = memory(strategy, encoder.rounds, most)
        except ArithmeticError:
            raise ParameterError("mechanism", mechanism, _SMALL) from None
        added = math.ceil(2.0 * error * math.sqrt(encoder.rounds * entries) * (1.0 + 2.0**-40))
        moved = root_up(entries) + added
        room = min(SCALE.high, most / reach)
        grid = grid_of(mechanism, own, sensitivity, moved, most=SCALE.high if most < MOST else room)
        if grid.scale <= room:
            break
    return kept, grid


@final
class CorrelatedNoise:
    """Rows of ``C^-1 Z`` for an encoder C, in the order of the rounds: noise of a training step.

    A step that adds row t of ``C^-1 Z`` to what round t adds up releases ``X + C^-1 Z``, which is
    ``C^-1 (C X + Z)``: a function of the matrix mechanism's release. With fresh noise of standard
    deviation ``noise_multiplier * clipping norm`` it is ``MatrixFactorization(noise_multiplier,
    encoder)``, for an ``Encoder.of(strategy, rounds)``. Rows follow one another by forward
    substitution, in the arithmetic of the arrays given, and what is kept is secret;
    ``matrix_factorization`` is exact. There is one such memory for each array that is trained.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.release.CorrelatedNoise(hs.mechanisms.Encoder.square_root(9))
        >>> [noise.next(1.0) for _ in range(3)]
        [1.0, 0.5, 0.375]
    """

    __slots__ = ("_next", "_shape", "encoder", "rows")

    def __init__(self, encoder: Encoder) -> None:
        strategy = encoder.strategy if isinstance(encoder, Encoder) else None
        if strategy is None:
            raise ParameterError("encoder", encoder, _AN_ENCODER)
        try:
            self._next = _in_floats(strategy, encoder.rounds)
        except (OverflowError, ZeroDivisionError):
            raise ParameterError("encoder", encoder, _AN_ENCODER) from None
        self.encoder: Encoder = encoder
        self.rows: int = 0
        self._shape: tuple[int, ...] | None = None

    def next(self, fresh: _Array) -> _Array:
        """Return the next row of ``C^-1 Z``, a new array.

        Fresh is row t of Z, of NumPy, PyTorch or whatever else adds up and takes float factors.
        """
        shape = tuple(getattr(fresh, "shape", ()))
        if self._shape not in (None, shape):
            allowed = f"of shape {self._shape}, as the rows before"
            raise ParameterError("fresh", f"an array of shape {shape}", allowed)
        if self.rows == self.encoder.rounds:
            raise IncompatibleError(f"the encoder is for {self.rows:,} rounds, and no more")
        row: _Array = self._next(fresh)
        self.rows, self._shape = self.rows + 1, shape
        return row


@singledispatch
def _in_floats(strategy: Strategy, rounds: int) -> _Next:
    """Return what gives the next row, with its memory: of a Toeplitz matrix, past rows."""
    first, *rest = strategy.diagonals(rounds)
    return _substituted([1 / first, *(-one / first for one in rest)], keep_fresh=False)


@_in_floats.register
def _(strategy: BandedInverse, rounds: int) -> _Next:
    return _substituted(strategy.coefficients[:rounds], keep_fresh=True)


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


def _substituted(exact: Sequence[Any], *, keep_fresh: bool) -> _Next:
    """Return what adds up a fresh row and past ones, fresh or returned, each times its factor."""
    own, *factors = map(float, exact)
    if any(map(math.isinf, (own, *factors))):
        raise OverflowError
    past: deque[Any] = deque(maxlen=len(factors))

    def following(fresh: Any) -> Any:
        row = fresh * own
        for factor, former in zip(factors, past, strict=False):
            if factor:
                row = row + former * factor
        past.appendleft((fresh if keep_fresh else row) * 1.0)
        return row

    return following


class TooLargeError(ArithmeticError):
    """Numbers of 64 bits have no room for what a strategy makes of the noise."""


class _Feedback:
    """Past rows, of noise (sign -1) or of fresh noise (sign 1), times factors."""

    def __init__(self, factors: Sequence[float], digits: int, sign: int) -> None:
        self._factors = [math.ldexp(one, digits) for one in factors]
        self._digits, self._sign = digits, sign
        self._past: deque[Integers] = deque(maxlen=len(factors))

    def row(self, fresh: Integers) -> Integers:
        total = np.zeros_like(fresh)
        for factor, former in zip(self._factors, self._past, strict=False):
            if factor:
                total += np.rint(former * factor).astype(np.int64)
        return np.asarray(fresh + self._sign * _whole(total, self._digits))

    def keep(self, fresh: Integers, row: Integers) -> None:
        self._past.appendleft(row if self._sign < 0 else fresh)


class _Buffers:
    """For each buffer j ``omega_j p_j``, with ``p_j <- theta_j p_j + w_t``."""

    def __init__(self, scales: Sequence[float], decays: Sequence[float], digits: int) -> None:
        self._scales = [math.ldexp(one, digits) for one in scales]
        self._losses = [1.0 - one for one in decays]
        self._digits = digits
        self._buffers: list[Any] = [np.int64(0)] * len(self._scales)

    def row(self, fresh: Integers) -> Integers:
        return np.asarray(fresh - _whole(sum(self._buffers), self._digits))

    def keep(self, fresh: Integers, row: Integers) -> None:
        self._buffers = [
            kept - np.rint(kept * loss).astype(np.int64) + np.rint(row * scale).astype(np.int64)
            for kept, loss, scale in zip(self._buffers, self._losses, self._scales, strict=True)
        ]


Memory = _Feedback | _Buffers


@singledispatch
def memory(strategy: Strategy, rounds: int, most: float = MOST) -> tuple[Memory, float]:
    """Return an empty memory, and how far its rows are from ``C^-1 (Z + e)``: the largest |e|."""
    first, *rest = strategy.diagonals(rounds)
    factors = [float(one / first) for one in rest]
    size = _norm(1.0, factors)
    # Each row sums len(factors) products of sizes that add up to this.
    unsure = (len(factors) + 4) * _LOSS * size
    largest = most * _inverse_norm(_response(factors, rounds), rounds * unsure)
    digits = _digits(largest * size)
    error = 0.5 + 0.5 * len(factors) * 2.0**-digits + _LOSS * size * largest
    return _Feedback(factors, digits, -1), error


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
    return _Feedback(factors, digits, 1), error * own


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
    return _Buffers(scales, decays, digits), error


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
    """Return a bound on ``sum |d_k|``, at least 1, from what floats have for d; or raise."""
    # How far they are from solving C d = 1, in total.
    error = unsure * max(map(abs, response), default=1.0)
    if not error <= 0.5:
        raise TooLargeError
    return math.fsum(map(abs, response)) * (1.0 + 4.0 * _LOSS) / (1.0 - error)


def _response(factors: Sequence[float], rounds: int) -> list[float]:
    kept = np.trim_zeros(np.array(factors), "b")
    found = np.zeros(rounds + len(kept))
    start = len(kept)
    found[start] = 1.0
    turned = kept[::-1].copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(start + 1, start + rounds):
            found[t] = -(turned @ found[t - start : t]) if start else 0.0
    return [float(one) for one in found[start:]]


def _buffered_response(strategy: BufferedToeplitz, rounds: int) -> list[float]:
    scales, decays = np.array(strategy.scales), np.array(strategy.decays)
    buffers, found = np.ones_like(scales), [1.0]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(1, rounds):
            found.append(-float(scales @ buffers))
            buffers = decays * buffers + found[-1]
    return found
