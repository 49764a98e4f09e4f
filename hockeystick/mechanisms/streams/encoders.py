"""Linear encoders of a training run's rounds, and how far one participant moves what they give."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import registered
from hockeystick.mechanisms.streams.sensitivity import (
    Pattern,
    Squares,
    of_columns,
    of_toeplitz,
    of_tree,
    square_root,
    widened,
)
from hockeystick.mechanisms.streams.strategies import (
    MOST_ROUNDS,
    BandedInverse,
    BufferedToeplitz,
    SquareRoot,
    Strategy,
    Toeplitz,
    checked_strategy,
    exact_row,
)
from hockeystick.numerics.rounding import float_up

_MATRIX: Final = "a matrix of finite numbers: rows of one length, at least one"


def _whole(symbol: str, typical: tuple[int, int]) -> Domain:
    return Domain(symbol=symbol, low=1, high=MOST_ROUNDS, typical=typical, whole=True)


_ROUNDS: Final = _whole("n", (100, 10_000))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Encoder:
    """How far one participant moves what a linear encoder C releases: its sensitivity.

    The largest ``|sum C_i u_i|`` over the rounds i of a participation and over vectors of norm at
    most 1, where C_i is what round i adds. A participant takes part at most ``participations``
    times, any two of them at least ``separation`` rounds apart. Made by ``of`` a strategy, for
    which there are shorthands (``toeplitz``, ``square_root``, ``banded_inverse``,
    ``buffered_toeplitz``), by ``of_matrix``, or by ``tree``, the nodes of a binary tree; only a
    strategy is kept, of which noise can be drawn. Encoders are equal if what is known of them is.

    Guarantees:
        Exact for one participation (the largest column norm), for columns that share no row where
        they are ``separation`` apart (banded matrices; dynamic programming over the squares of
        the column norms), and for Toeplitz matrices whose coefficients are nonnegative and fall.
        Otherwise between the square of a concrete participant and an upper bound, the largest sum
        of the sizes of the columns' inner products: over every pattern where these are few, else
        bounded by dynamic programming, each round with the worst pattern of its own. Strategies
        that are kept in fixed point have two ends, which agree to 60 digits.

    References:
        Choquette-Choo, McMahan, Rush and Thakurta, "Multi-Epoch Matrix Factorization Mechanisms
        for Private Machine Learning", 2023, section 2; Choquette-Choo et al., "(Amplified) Banded
        Matrix Factorization", 2023, theorem 2; Kalinin and Lampert, "Banded Square Root Matrix
        Factorization for Differentially Private Model Training", 2024, theorem 2.

    Example:
        >>> import hockeystick as hs
        >>> hs.mechanisms.Encoder.of_matrix([[1, 0], [1, 1]]).sensitivity
        1.4142135623730951
    """

    words: str
    rounds: int
    participations: int
    separation: int
    least_square: Fraction = field(repr=False)
    square: Fraction = field(repr=False)
    strategy: Strategy | None = field(repr=False)

    def __init__(
        self,
        words: str,
        rounds: int,
        pattern: Pattern,
        squares: Squares,
        strategy: Strategy | None = None,
    ) -> None:
        values = (words, rounds, pattern.participations, pattern.separation)
        for name, value in zip(Encoder.__slots__, (*values, *squares, strategy), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls, strategy: Strategy, rounds: float, *, participations: float = 1, separation: float = 1
    ) -> Encoder:
        """Return the sensitivity of a strategy's matrix.

        Args:
            strategy: ``Toeplitz``, ``SquareRoot``, ``BandedInverse`` or ``BufferedToeplitz``.
            rounds: The number of rounds, an integer from 1 to 10^6.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        Example:
            >>> import hockeystick as hs
            >>> strategy = hs.mechanisms.BufferedToeplitz(scales=[0.25, 0.25], decays=[0.5, 0.875])
            >>> encoder = hs.mechanisms.Encoder.of(
            ...     strategy, 1000, participations=10, separation=100
            ... )
            >>> f"{encoder.sensitivity:.6f}"
            '3.965128'
        """
        size = _validate.count("rounds", rounds, _ROUNDS)
        pattern = _pattern(participations, separation)
        plainest = checked_strategy(strategy).within(size)
        diagonals, error = plainest.enclosed(size)
        squares = of_toeplitz(diagonals, size, pattern)
        if error:
            # No more than the sum of what the columns of a pattern are off.
            off = error * len(pattern.earliest(size)) * (math.isqrt(size) + 1)
            least, most = widened(squares, off)
            squares = Squares(_shortened(least, math.floor), _shortened(most, math.ceil))
        return cls(plainest.words(size), size, pattern, squares, plainest)

    @classmethod
    def of_matrix(
        cls, matrix: Iterable[Iterable[float]], *, participations: float = 1, separation: float = 1
    ) -> Encoder:
        """Return the sensitivity of a matrix whose columns are the rounds.

        Args:
            matrix: Rows of finite numbers; a NumPy array is one.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        Example:
            >>> import hockeystick as hs
            >>> hs.mechanisms.Encoder.of_matrix([[1, 0], [1, 1]], participations=2).sensitivity
            2.23606797749979
        """
        pattern = _pattern(participations, separation)
        columns = _columns(matrix)
        return cls("matrix", len(columns), pattern, of_columns(columns, pattern))

    @classmethod
    def tree(cls, rounds: float, *, participations: float = 1, separation: float = 1) -> Encoder:
        """Return the sensitivity of the nodes of one binary tree over the rounds, as in DP-FTRL.

        The nodes are those whose leaves are all there, as in ``TreeAggregation``, which this is
        with one participation. Exact where the separation is a power of two, or a small multiple of
        one and the participations few; else two-sided, mostly within a few per cent.

        Args:
            rounds: The number of leaves, an integer from 1 to 10^6.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        References:
            Kairouz, McMahan, Song, Thakkar, Thakurta and Xu, "Practical and Private (Deep)
            Learning without Sampling or Shuffling", 2021, appendix D.

        Example:
            >>> import hockeystick as hs
            >>> encoder = hs.mechanisms.Encoder.tree(1000, participations=10, separation=100)
            >>> encoder.square
            Fraction(143, 1)
        """
        size = _validate.count("rounds", rounds, _ROUNDS)
        pattern = _pattern(participations, separation)
        return cls("tree", size, pattern, of_tree(size, pattern))

    @classmethod
    def toeplitz(
        cls,
        coefficients: Iterable[float | Fraction],
        rounds: float,
        *,
        participations: float = 1,
        separation: float = 1,
    ) -> Encoder:
        """Return the sensitivity of ``Toeplitz(coefficients)``, as ``of`` does.

        Args:
            coefficients: The diagonals from the main one down; further ones are 0.
            rounds: The number of rounds, an integer from 1 to 10^6.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        Example:
            >>> import hockeystick as hs
            >>> encoder = hs.mechanisms.Encoder.toeplitz(
            ...     [2, 1.5], 100, participations=4, separation=2
            ... )
            >>> encoder.sensitivity
            5.0
        """
        return cls.of(
            Toeplitz(coefficients), rounds, participations=participations, separation=separation
        )

    @classmethod
    def square_root(
        cls,
        rounds: float,
        *,
        bands: float | None = None,
        participations: float = 1,
        separation: float = 1,
    ) -> Encoder:
        """Return the sensitivity of ``SquareRoot(bands)``, as ``of`` does, to 60 digits.

        Args:
            bands: How many diagonals are kept, an integer >= 1; all where not given.
            rounds: The number of rounds, an integer from 1 to 10^6.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        Example:
            >>> import hockeystick as hs
            >>> hs.mechanisms.Encoder.square_root(1000).sensitivity
            1.806931952418915
        """
        kept = None if bands is None else _validate.count("bands", bands, _whole("b", (4, 1000)))
        return cls.of(
            SquareRoot(kept), rounds, participations=participations, separation=separation
        )

    @classmethod
    def banded_inverse(
        cls,
        coefficients: Iterable[float | Fraction],
        rounds: float,
        *,
        participations: float = 1,
        separation: float = 1,
    ) -> Encoder:
        """Return the sensitivity of ``BandedInverse(coefficients)``, as ``of`` does.

        Args:
            coefficients: The diagonals of C^-1 from the main one down, the first above 0.
            rounds: The number of rounds, an integer from 1 to 10^6.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        Example:
            >>> import hockeystick as hs
            >>> f"{hs.mechanisms.Encoder.banded_inverse([1, -0.5], 100).sensitivity:.6f}"
            '1.154701'
        """
        return cls.of(
            BandedInverse(coefficients),
            rounds,
            participations=participations,
            separation=separation,
        )

    @classmethod
    def buffered_toeplitz(
        cls,
        scales: Iterable[float],
        decays: Iterable[float],
        rounds: float,
        *,
        participations: float = 1,
        separation: float = 1,
    ) -> Encoder:
        """Return the sensitivity of ``BufferedToeplitz(scales, decays)``, as ``of`` does.

        To 60 digits where the scales sum to at most 1: the diagonals fall.

        Args:
            scales: Finite numbers above 0, one for each buffer.
            decays: As many numbers above 0 and below 1.
            rounds: The number of rounds, an integer from 1 to 10^6.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        Example:
            >>> import hockeystick as hs
            >>> f"{hs.mechanisms.Encoder.buffered_toeplitz([0.5], [0.5], 100).sensitivity:.6f}"
            '1.154701'
        """
        return cls.of(
            BufferedToeplitz(scales, decays),
            rounds,
            participations=participations,
            separation=separation,
        )

    @property
    def sensitivity(self) -> float:
        """The sensitivity, or an upper bound of it, rounded up; inf beyond the largest float."""
        return float_up(square_root(self.square))

    def __str__(self) -> str:
        words = f"{self.words}, {self.rounds} rounds"
        if self.participations == 1:
            return words
        apart = f"{self.separation} {rounds_word(self.separation)} apart"
        return f"{words}, {self.participations} participations, {apart}"


def rounds_word(count: int) -> str:
    """Return what so many rounds are called: one is a round."""
    return "round" if count == 1 else "rounds"


def _pattern(participations: float, separation: float) -> Pattern:
    return Pattern(
        _validate.count("participations", participations, _whole("k", (1, 20))),
        _validate.count("separation", separation, _whole("b", (1, 1000))),
    )


def _columns(matrix: object) -> list[tuple[Fraction, ...]]:
    if not _validate.has_several(matrix) or isinstance(matrix, str):
        raise ParameterError("matrix", matrix, _MATRIX)
    rows = [exact_row("matrix", row, _MATRIX) for row in matrix]
    if len({len(row) for row in rows}) != 1:
        raise ParameterError("matrix", matrix, _MATRIX)
    return list(zip(*rows, strict=True))


def _shortened(square: Fraction, rounding: Callable[[Fraction], int]) -> Fraction:
    """Return a fraction in 256 binary digits, far more than a float has."""
    unit = Fraction(2) ** (square.numerator.bit_length() - square.denominator.bit_length() - 256)
    return rounding(square / unit) * unit
