"""Running sums, exact in floats: by tree aggregation, and with correlated noise.

**A matrix factorization as a stream.** Rows are rounded to integers ``x_t`` on a grid; fresh noise
is ``Z_t = round(N(0, s^2))``; what is released is ``y_t = x_t + w_t`` for rows w of correlated
noise in integers (``correlated_noise.memory``).

It is a Gaussian mechanism. Fix what is released, y. On one data set the noise must have been
``w = y - x``, so ``y_t = M_t + Z_t`` with ``M_t = x_t - u_t(w_0, ..., w_(t-1))``, an integer that
the data and the rows released before determine. As ``M + round(N) = round(M + N)``, each row is a
function of ``M_t + N``. On a neighbouring data set, with the same y, ``w' - w = x - x'``, and

    M_t - M'_t = x_t - x'_t + sum over k >= 1 of c_k (x_(t-k) - x'_(t-k)) - (e_t - e'_t)
               = (C (x - x'))_t + at most 2 e in size in each entry.

Rows of x differ in the rounds of a participation only, by at most ``S / g + sqrt(d)`` in L2. So the
distance of M and M', over n rounds of d entries, is at most

    sensitivity(C) (S / g + sqrt(d)) + 2 e sqrt(n d),

whatever was released before, that is on every path: the rounds together are a Gaussian mechanism of
that distance over s (adaptive composition with a bound on the sum of the squares that holds on
every path: Smith and Thakurta 2022). For a banded inverse ``Z_t(y)`` is determined by
the same recurrence, ``Z - Z' = -C (x - x') - C (e - e')``, and the bound on ``C e`` is taken.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import BandedInverse, MatrixFactorization
from hockeystick.mechanisms.streams.matrix_factorization import TreeAggregation
from hockeystick.mechanisms.streams.strategies import Strategy
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release._values import MOST as MOST_STEPS
from hockeystick.release._values import Grid, grid_of, of_kind, root_up, row_of
from hockeystick.release.charging import Charged, ChargedRun, book, checked_charge
from hockeystick.release.correlated_noise import MOST, Memory, TooLargeError, memory
from hockeystick.release.samplers import Bits, rounded_gaussian, secret_bits
from hockeystick.release.samplers.rounded import SCALE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Kind = TreeAggregation | MatrixFactorization
_SIZE: Final = _validate.whole_numbers("d", 1, (1, 10**7))
_MOST_ENTRIES: Final = _validate.Domain(
    symbol="d", low=1, high=10**7, typical=(1, 10**6), whole=True
)
_SMALL: Final = (
    "of an encoder made from a strategy whose noise has room in 64 bits: its main diagonal is not "
    "0, its inverse does not grow, and its diagonals do not add up to too much"
)
# No draw of a rounded Gaussian is further out, in standard deviations.
_FURTHEST: Final = 38.5
# Sizes of noise that are tried: the less there is, the less is rounded, and the faster it is drawn.
_SIZES: Final = (2.0**36, 2.0**40, 2.0**44, 2.0**48, MOST)
# The most that neighbours move, in standard deviations.
_MOST_SPREAD: Final = 2.0**40


class _Sums(ChargedRun, ABC):
    """What two kinds of running sums share: several threads may add rows, one at a time."""

    __slots__ = ("_bits", "_grid", "_lock", "_most", "_noisy", "_rows", "_size")

    def __init__(
        self, mechanism: _Kind, most: int, grid: Grid, size: int, charge: Any, bits: Bits
    ) -> None:
        super().__init__()
        self._most, self._rows, self._lock = most, 0, Lock()
        self._grid, self._size, self._bits = grid, size, bits
        self._noisy = mechanism.noise_multiplier != 0.0
        book(checked_charge(charge), mechanism)

    @property
    def rows(self) -> int:
        """How many rows have been added."""
        return self._rows

    def add(self, row: Any) -> NDArray[np.float64]:
        """Add the next round's d numbers, and return the noisy sum of all rows so far.

        ``IncompatibleError`` says that there are as many rows already as the mechanism has rounds,
        or that this process was forked from the run's. Without random bits no row is added.
        """
        self._check_process()
        steps = self._grid.steps("row", row_of("row", row, self._size))
        with self._lock:
            if self._rows == self._most:
                raise IncompatibleError(f"the run is for {self._rows:,} rounds: begin another one")
            return self._added(steps)

    @abstractmethod
    def _added(self, steps: NDArray[np.int64]) -> NDArray[np.float64]: ...

    def _noise(self) -> NDArray[np.int64]:
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

    After t rows it is their sum plus one noise for each 1 in the binary digits of t: the noise of
    the node of the tree over the rounds that holds those rows. With S the sensitivity, z the finite
    noise multiplier, d the size of a row, and g a power of two of at most ``2^-20 S``,

        M(D)_t = g (sum of round(row / g) + sum over the nodes of round(N)),
        N ~ N(0, s^2 I) for each node, s >= z (S / g + ceil(sqrt(d))).

    The sensitivity is how far a row moves in L2 between neighbouring data sets, the only one that
    does: the clipping norm, twice that under replace-one. Clipping is the caller's.

    Guarantees:
        That of the mechanism, which is charged once, here, for all rows; later rows may depend on
        earlier sums. Node by node it is as for ``gaussian``. The nodes that no sum needs are not
        drawn.

    References:
        Dwork, Naor, Pitassi and Rothblum, "Differential Privacy under Continual Observation",
        2010; Kairouz et al. 2021, without the refinement of Honaker 2015.

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
        self._nodes: dict[int, NDArray[np.int64]] = {}
        super().__init__(mechanism, mechanism.leaves, grid, entries, charge, bits)

    def _added(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        total = self._total + steps
        if bool(((total > MOST_STEPS) | (total < -MOST_STEPS)).any()):
            raise ParameterError("row", "a larger one", "such that sums stay below 2^62 steps")
        # How often the number of rows is divisible by 2: the height of the node that ends here.
        count = self._rows + 1
        height = (count & -count).bit_length() - 1
        noise = self._noise() if self._noisy else np.zeros_like(total)
        self._nodes = {h: one for h, one in self._nodes.items() if h > height}
        self._nodes[height] = noise
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

    With S the sensitivity, z the finite noise multiplier, C the encoder, made from a strategy by
    ``Encoder.of(strategy, rounds)``, d the size of a row, up to 10^7, and g a power of two of at
    most ``2^-20 S``, row t is released as

        g (round(row_t / g) + (C^-1 Z)_t),  Z = round(N(0, s^2 I)),  s >= z (S / g + what rounds),

    with ``C^-1 Z`` in integers, and after t rows the sum of these is returned by ``add``. The
    sensitivity is how far one participant moves a row in L2, in the rounds that they take part in:
    the clipping norm, twice that under replace-one. Clipping and who takes part when are the
    caller's.

    Guarantees:
        That of the mechanism, which is charged once, here, for all rows; later rows may depend on
        earlier sums: the module has the proof. Rounding adds at most ``2^-16`` of the noise where
        the grid has room for it.

    Edge cases:
        It keeps as many rows of noise as the strategy has diagonals beside the main one (the whole
        square root: all rows so far), or buffers. What it keeps is secret: whoever sees it can take
        the noise off what was released. Noise multiplier 0 returns the sums of rows on the grid.

    References:
        Denisov, McMahan, Rush, Smith and Thakurta 2022; Smith and Thakurta 2022.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.MatrixFactorization(5, hs.mechanisms.Encoder.square_root(100))
        >>> run = hs.release.matrix_factorization(noise, size=2, sensitivity=1)
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
        entries = _validate.count("size", size, _MOST_ENTRIES)
        self._memory, grid = _prepared(mechanism, entries, sensitivity)
        self._sum, self._latest = np.zeros(entries), np.zeros(entries)
        super().__init__(mechanism, mechanism.encoder.rounds, grid, entries, charge, bits)

    @property
    def latest(self) -> NDArray[np.float64]:
        """The row added last with its noise, by which the sum grew; zeros before the first."""
        return self._latest.copy()

    def _added(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        if bool((np.abs(steps) > MOST_STEPS // 2).any()):
            raise ParameterError("row", "a larger one", "such that it stays below 2^61 steps")
        if self._noisy:
            fresh = self._noise()
            noise = self._memory.row(fresh)
            self._memory.keep(fresh, noise)
            steps = steps + noise
        self._rows, self._latest = self._rows + 1, self._grid.floats(steps)
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
        first = _main_diagonal(strategy)
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


def _main_diagonal(strategy: Strategy) -> Fraction:
    """Return the size of the main diagonal, exactly; it is not 0."""
    if isinstance(strategy, BandedInverse):
        return 1 / Fraction(strategy.coefficients[0])
    first = abs(strategy.diagonals(1)[0])
    if first == 0:
        raise TooLargeError
    return first
