"""Correlated noise: the matrix mechanism for the running sums of a training run (DP-FTRL)."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeGuard, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.mechanisms.streams.sensitivity import Pattern, Squares, of_columns, of_toeplitz
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import quotient_down

_MOST_ROUNDS: Final = 10**6
_MATRIX: Final = "a matrix of finite numbers: rows of one length, at least one"
_COEFFICIENTS: Final = "a sequence of finite numbers, at least one"
# Squares are kept to this number of binary digits, far more than a float has.
_BITS: Final = 128


def _whole(symbol: str, typical: tuple[int, int]) -> Domain:
    """Return the domain of a number of rounds."""
    return Domain(symbol=symbol, low=1, high=_MOST_ROUNDS, typical=typical, whole=True)


_ROUNDS: Final = _whole("n", (100, 10_000))
_PARTICIPATIONS: Final = _whole("k", (1, 20))
_SEPARATION: Final = _whole("b", (1, 1000))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Encoder:
    """How far one participant moves what a linear encoder C releases: its sensitivity.

    The largest ``|sum C_i u_i|`` over the rounds i of a participation and over vectors of norm at
    most 1, where C_i is what round i adds. A participant takes part at most ``participations``
    times, any two of them at least ``separation`` rounds apart. Made by ``of_matrix``,
    ``toeplitz`` or ``square_root``; encoders are equal if what is known of them is.

    Guarantees:
        Exact for one participation (the largest column norm), for columns that share no row where
        they are ``separation`` apart (banded matrices; dynamic programming over the squares of
        the column norms), and for Toeplitz matrices whose coefficients are nonnegative and fall.
        Otherwise between the square of a concrete participant and an upper bound, the largest sum
        of the sizes of the columns' inner products: over every pattern where these are few, else
        bounded by dynamic programming, each round with the worst pattern of its own.

    Edge cases:
        An encoder of zeros has sensitivity 0. Beyond the largest float, ``sensitivity`` is inf.

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

    def __init__(self, words: str, rounds: int, pattern: Pattern, squares: Squares) -> None:
        values = (words, rounds, pattern.participations, pattern.separation)
        ends = (_shortened(squares.least, up=False), _shortened(squares.most, up=True))
        if squares.least == squares.most:
            ends = (ends[1], ends[1])
        for name, value in zip(Encoder.__slots__, (*values, *ends), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def of_matrix(
        cls, matrix: Iterable[Iterable[float]], *, participations: float = 1, separation: float = 1
    ) -> Encoder:
        """Return the sensitivity of a matrix whose columns are the rounds.

        Args:
            matrix: Rows of finite numbers; a NumPy array is one.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        Returns:
            What is known of its sensitivity: exact or two-sided, as the class says.

        Raises:
            ParameterError: If it is no such matrix, or a count is outside its domain.

        Example:
            >>> import hockeystick as hs
            >>> hs.mechanisms.Encoder.of_matrix([[1, 0], [1, 1]], participations=2).sensitivity
            2.23606797749979
        """
        pattern = _pattern(participations, separation)
        columns = _columns(matrix)
        return cls("matrix", len(columns), pattern, of_columns(columns, pattern))

    @classmethod
    def toeplitz(
        cls,
        coefficients: Iterable[float],
        rounds: float,
        *,
        participations: float = 1,
        separation: float = 1,
    ) -> Encoder:
        """Return the sensitivity of the lower triangular matrix with these diagonals.

        Args:
            coefficients: The diagonals from the main one down; further ones are 0.
            rounds: The number of rounds, an integer from 1 to 10^6.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        Returns:
            What is known of its sensitivity: exact or two-sided, as the class says.

        Raises:
            ParameterError: If a parameter is outside its domain.

        Example:
            >>> import hockeystick as hs
            >>> encoder = hs.mechanisms.Encoder.toeplitz(
            ...     [2, 1.5], 100, participations=4, separation=2
            ... )
            >>> encoder.sensitivity
            5.0
        """
        size = _validate.count("rounds", rounds, _ROUNDS)
        pattern = _pattern(participations, separation)
        given = _row("coefficients", coefficients, _COEFFICIENTS)
        return cls("Toeplitz matrix", size, pattern, of_toeplitz(given, size, pattern))

    @classmethod
    def square_root(
        cls,
        rounds: float,
        *,
        bands: float | None = None,
        participations: float = 1,
        separation: float = 1,
    ) -> Encoder:
        """Return the sensitivity of the square root of the prefix sums, or of its first bands.

        The Toeplitz matrix with ``c_0 = 1``, ``c_k = c_(k-1) (2k - 1) / (2k)``, to 200 binary
        digits.

        Args:
            rounds: The number of rounds, an integer from 1 to 10^6.
            bands: How many diagonals are kept, an integer >= 1; all where not given.
            participations: The most rounds that one participant takes part in, an integer >= 1.
            separation: The least distance of two of them in rounds, an integer >= 1.

        Returns:
            The sensitivity, exact: the coefficients fall.

        Raises:
            ParameterError: If a parameter is outside its domain.

        References:
            Fichtenberger, Henzinger and Upadhyay, "Constant Matters: Fine-grained Error Bound on
            Differentially Private Continual Observation", 2023.

        Example:
            >>> import hockeystick as hs
            >>> hs.mechanisms.Encoder.square_root(1000).sensitivity
            1.806931952418915
        """
        size = _validate.count("rounds", rounds, _ROUNDS)
        kept = size if bands is None else _validate.count("bands", bands, _whole("b", (4, 1000)))
        pattern = _pattern(participations, separation)
        given = _square_root_coefficients(min(kept, size))
        words = "square root" if kept >= size else f"square root in {kept} bands"
        return cls(words, size, pattern, of_toeplitz(given, size, pattern))

    @property
    def sensitivity(self) -> float:
        """The sensitivity, or an upper bound of it, rounded up; inf beyond the largest float."""
        root = square_root(self.square)
        try:
            nearest = float(root)
        except OverflowError:
            return math.inf
        return nearest if Fraction(nearest) >= root else math.nextafter(nearest, math.inf)

    def __str__(self) -> str:
        """Return what it is, on one line."""
        words = f"{self.words}, {self.rounds} rounds"
        if self.participations == 1:
            return words
        return f"{words}, {self.participations} participations, {self.separation} rounds apart"


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class MatrixFactorization(AnyAdjacency):
    """A training run's running sums with correlated noise: A X = B (C X + Z) for A = B C.

    The release is C X + Z, where row i of X is what round i adds up over its participants, each
    clipped in L2 norm, and Z is Gaussian of standard deviation noise_multiplier * clipping norm;
    all else is computed from it. So it is one Gaussian mechanism, of
    ``mu = sensitivity(C) / noise_multiplier``, also where later rounds depend on what the earlier
    ones released.

    Guarantees:
        As exact as the encoder's sensitivity. Where that is only bounded, lower ends rest on a
        concrete participant.

    Edge cases:
        Noise multiplier 0 releases the sums themselves; inf releases nothing. An encoder of zeros
        releases nothing either.

    Args:
        noise_multiplier: Standard deviation of each entry of Z over the clipping norm, in
            [0, inf]; under replace-one, over twice the clipping norm.
        encoder: What C is, and how often one participant takes part.

    Raises:
        ParameterError: If the noise multiplier is no such number, or the encoder none.

    References:
        Li, Miklau, Hay, McGregor and Rastogi, "The Matrix Mechanism", 2015; Denisov, McMahan,
        Rush, Smith and Thakurta, "Improved Differential Privacy for SGD via Optimal Private Linear
        Operators on Adaptive Streams", 2022, theorem 2.1 (adaptivity is free with Gaussian noise).

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.MatrixFactorization(4.0, hs.mechanisms.Encoder.square_root(1000)))
        matrix factorization (noise multiplier 4, square root, 1000 rounds)
    """

    falls_with = ("noise_multiplier",)

    noise_multiplier: float
    encoder: Encoder

    def __init__(self, noise_multiplier: float, encoder: Encoder) -> None:
        if not isinstance(encoder, Encoder):
            raise ParameterError("encoder", encoder, "an Encoder")
        number = _validate.real("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", number)
        object.__setattr__(self, "encoder", encoder)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold in the training code for the release to be as described."""
        times, apart = self.encoder.participations, self.encoder.separation
        taking_part = f"Each participant takes part in at most {times:,} rounds"
        if times > 1:
            taking_part += f", any two of them at least {apart:,} rounds apart"
        return (
            "Each participant's contribution to a round is clipped in L2, and the encoder is "
            f"applied to the rounds' sums ({self.encoder}).",
            f"{taking_part}, whatever the data are.",
            "Gaussian noise is added to each entry of what the encoder gives; its standard "
            f"deviation is {plain(self.noise_multiplier)} times the clipping norm.",
        )

    def for_group(self, size: int) -> MatrixFactorization:
        """Return the mechanism whose noise is ``size`` times smaller."""
        return MatrixFactorization(quotient_down(self.noise_multiplier, size), self.encoder)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        """Return the name, the noise and the encoder."""
        noise = f"noise multiplier {self.noise_multiplier:g}"
        return "matrix factorization", (noise, str(self.encoder))


def square_root(square: Fraction) -> Fraction:
    """Return a square root to far more digits than a float has."""
    shift = max(2 * _BITS + square.denominator.bit_length() - square.numerator.bit_length(), 0)
    shift += shift % 2
    root = math.isqrt((square.numerator << shift) // square.denominator)
    whole = Fraction(root * root, 1 << shift) == square
    return Fraction(root if whole else root + 1, 1 << (shift // 2))


def _pattern(participations: float, separation: float) -> Pattern:
    """Return the number of participations and their separation, or raise."""
    return Pattern(
        _validate.count("participations", participations, _PARTICIPATIONS),
        _validate.count("separation", separation, _SEPARATION),
    )


def _columns(matrix: object) -> list[tuple[Fraction, ...]]:
    """Return the columns of a matrix given by its rows, or raise."""
    if not _validate.has_several(matrix) or isinstance(matrix, str):
        raise ParameterError("matrix", matrix, _MATRIX)
    rows = [_row("matrix", row, _MATRIX) for row in matrix]
    if len({len(row) for row in rows}) != 1:
        raise ParameterError("matrix", matrix, _MATRIX)
    return list(zip(*rows, strict=True))


def _row(name: str, values: object, allowed: str) -> Sequence[Fraction]:
    """Return numbers as they are, exactly, or raise."""
    if not _validate.has_several(values) or isinstance(values, str):
        raise ParameterError(name, values, allowed)
    row = []
    for value in values:
        if not _is_finite(value):
            raise ParameterError(name, value, allowed)
        if isinstance(value, numbers.Rational):
            # NumPy's integers overflow.
            row.append(Fraction(int(value.numerator), int(value.denominator)))
        else:
            row.append(Fraction(float(value)))
    if not row:
        raise ParameterError(name, values, allowed)
    return row


def _is_finite(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number; a bool is none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def _square_root_coefficients(count: int) -> list[Fraction]:
    """Return ``c_k = c_(k-1) (2k-1) / (2k)`` for k up to a count, in fixed point.

    Each step loses less than one unit of ``2^-256``, next to coefficients above ``2^-11``.
    """
    unit = 1 << 2 * _BITS
    found = [unit]
    for k in range(1, count):
        found.append(found[-1] * (2 * k - 1) // (2 * k))
    return [Fraction(value, unit) for value in found]


def _shortened(square: Fraction, *, up: bool) -> Fraction:
    """Return a fraction rounded to one side, to far more digits than a float has."""
    shift = 2 * _BITS + square.denominator.bit_length() - square.numerator.bit_length()
    scaled = square * Fraction(2) ** shift
    rounded = math.ceil(scaled) if up else math.floor(scaled)
    return Fraction(rounded) / Fraction(2) ** shift
