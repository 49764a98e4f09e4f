"""Running sums with correlated noise, exact in floats: a matrix factorization as a stream.

Rows are rounded to integers ``x_t`` on a grid; fresh noise is ``Z_t = round(N(0, s^2))``; what is
released is ``y_t = x_t + w_t`` for rows w of correlated noise in integers (``_integer_noise``).

**It is a Gaussian mechanism.** Fix what is released, y. On one data set the noise must have been
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
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import BandedInverse, MatrixFactorization
from hockeystick.mechanisms.streams.strategies import Strategy
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release._values import MOST as MOST_STEPS
from hockeystick.release._values import numbers, of_kind
from hockeystick.release.charging import Charged, ChargedRun, book, checked_charge
from hockeystick.release.noise._grid import Grid, grid_of
from hockeystick.release.samplers import Bits, rounded_gaussian, secret_bits
from hockeystick.release.samplers.rounded import SCALE
from hockeystick.release.streams._integer_noise import MOST, Memory, TooLargeError, memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIZE: Final = Domain(symbol="d", low=1, high=10**7, typical=(1, 10**6), whole=True)
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


def matrix_factorization(
    mechanism: MatrixFactorization,
    size: int,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> CorrelatedSums:
    """Return a run that takes rows one by one and returns their sum so far, with correlated noise.

    With S the sensitivity, z the noise multiplier, C the encoder, d the size of a row, and g a
    power of two of at most ``2^-20 S``, row t is released as

        g (round(row_t / g) + (C^-1 Z)_t),  Z = round(N(0, s^2 I)),  s >= z (S / g + what rounds),

    with ``C^-1 Z`` in integers, and after t rows the sum of these is returned.

    Guarantees:
        That of the mechanism, which is charged once, here, for all rows; later rows may depend on
        earlier sums. Noise is in integers, each step rounds by a bounded amount, and s is scaled
        to what that adds to the distance of neighbouring data sets: the module has the proof. What
        it adds is at most ``2^-16`` of the noise where the grid has room for it.

    Edge cases:
        It keeps as many rows of noise as the strategy has diagonals beside the main one (the whole
        square root: all rows so far), or buffers. What it keeps is secret: whoever sees it can take
        the noise off what was released. Noise multiplier 0 returns the sums of rows on the grid.

    Args:
        mechanism: A matrix factorization, of a finite noise multiplier, whose encoder was made from
            a strategy: ``Encoder.of(strategy, rounds)``.
        size: The number d of entries of each row, an integer from 1 to 10^7.
        sensitivity: How far one participant moves a row in L2, in the rounds that they take part
            in: the clipping norm, twice that under replace-one. A finite number > 0. Clipping is
            the caller's, and so is who takes part when.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The run; give it rows with ``add``.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.

    References:
        Denisov, McMahan, Rush, Smith and Thakurta, "Improved Differential Privacy for SGD via
        Optimal Private Linear Operators on Adaptive Streams", 2022; Smith and Thakurta, "Fully
        Adaptive Composition for Gaussian Differential Privacy", 2022.

    Example:
        >>> import hockeystick as hs
        >>> encoder = hs.mechanisms.Encoder.buffered_toeplitz([0.3, 0.1], [0.5, 0.95], rounds=100)
        >>> noise = hs.mechanisms.MatrixFactorization(noise_multiplier=5, encoder=encoder)
        >>> run = hs.release.matrix_factorization(noise, size=2, sensitivity=1)
        >>> [run.add(row).shape for row in ([0.5, 0.5], [1, 0], [0, 0])]
        [(2,), (2,), (2,)]
    """
    return CorrelatedSums(of_kind(mechanism, MatrixFactorization), size, sensitivity, charge, bits)


@final
class CorrelatedSums(ChargedRun):
    """A run of a matrix factorization: made by ``matrix_factorization``.

    Several threads may add rows. It cannot be copied or pickled, nor gone on with in a forked
    process: noise would be used twice.
    """

    __slots__ = ("_bits", "_grid", "_latest", "_lock", "_mechanism", "_memory", "_rows", "_sum")

    def __init__(
        self,
        mechanism: MatrixFactorization,
        size: int,
        sensitivity: float,
        charge: Charged | None,
        bits: Bits,
    ) -> None:
        super().__init__()
        entries = _validate.count("size", size, _SIZE)
        self._memory, self._grid = _prepared(mechanism, entries, sensitivity)
        self._mechanism, self._bits, self._lock, self._rows = mechanism, bits, Lock(), 0
        self._sum = np.zeros(entries)
        self._latest = np.zeros(entries)
        book(checked_charge(charge), mechanism)

    @property
    def rows(self) -> int:
        """How many rows have been added."""
        return self._rows

    @property
    def latest(self) -> NDArray[np.float64]:
        """The row added last with its noise, by which the sum grew; zeros before the first."""
        return self._latest.copy()

    def add(self, row: Any) -> NDArray[np.float64]:
        """Add a row, and return the noisy sum of all rows so far.

        Args:
            row: The next round's d numbers, the sum of its participants' clipped contributions.

        Returns:
            An array of d floats.

        Raises:
            IncompatibleError: If there are as many rows already as the encoder has rounds, or
                this process was forked from the run's.
            ParameterError: If it is no row of d finite numbers, or one too large.
            OSError: If the operating system has no random bits to give; the row is not added then.
        """
        self._check_process()
        given = numbers("row", row)
        if given.shape != self._sum.shape:
            allowed = f"a row of {self._sum.size:,} numbers"
            raise ParameterError("row", f"an array of shape {given.shape}", allowed)
        steps = self._grid.steps("row", given)
        if bool((np.abs(steps) > MOST_STEPS // 2).any()):
            raise ParameterError("row", "a larger one", "such that it stays below 2^61 steps")
        with self._lock:
            if self._rows == self._mechanism.encoder.rounds:
                raise IncompatibleError(
                    f"the encoder is for {self._rows:,} rounds, and there were as many; begin "
                    "another run, which is charged for itself"
                )
            if self._mechanism.noise_multiplier != 0.0:
                fresh = rounded_gaussian(self._grid.scale, steps.size, bits=self._bits)
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
        first = _main_diagonal(strategy, encoder.rounds)
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
        moved = math.isqrt(entries - 1) + 1 + added
        room = min(SCALE.high, most / reach)
        grid = grid_of(mechanism, own, sensitivity, moved, most=SCALE.high if most < MOST else room)
        if grid.scale <= room:
            break
    return kept, grid


def _main_diagonal(strategy: Strategy, rounds: int) -> Fraction:
    """Return the size of the main diagonal, exactly; it is not 0."""
    if isinstance(strategy, BandedInverse):
        return 1 / Fraction(strategy.coefficients[0])
    first = abs(strategy.diagonals(1)[0])
    if first == 0:
        raise TooLargeError
    return first
