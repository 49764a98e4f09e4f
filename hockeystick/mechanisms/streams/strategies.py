"""Strategies of correlated noise: the lower triangular Toeplitz matrix C of ``C X + Z``.

Each is known by its diagonals ``c_0, c_1, ...`` from the main one down. Strategies of few numbers
have an inverse that is applied in little memory, so that noise ``C^-1 Z`` can be drawn as it is
needed. Diagonals that are not given are kept in fixed point, in units of about ``2^-256 c_0``, with
a bound of what is lost by that.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeGuard, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import registered, set_fields

MOST_ROUNDS: Final = 10**6
_COEFFICIENTS: Final = "a sequence of finite numbers, at least one"
_INVERSE: Final = "a sequence of finite numbers, of which the first is above 0"
_SCALES: Final = "a sequence of finite numbers above 0, at least one"
_BANDS: Final = Domain(symbol="b", low=1, high=MOST_ROUNDS, typical=(4, 1000), whole=True)
_DECAY: Final = Domain(symbol="theta", low=0, high=1, low_open=True, high_open=True,
                       typical=(0.1, 0.999))  # fmt: skip
# Fixed point has this number of binary digits behind the point.
_BITS: Final = 256
_UNIT: Final = 1 << _BITS


@dataclass(frozen=True, slots=True)
class Strategy(ABC):
    """A lower triangular Toeplitz matrix for any number of rounds."""

    @abstractmethod
    def enclosed(self, rounds: int) -> tuple[list[Fraction], Fraction]:
        """Return the diagonals in fixed point, and the most that one of them is off."""

    def diagonals(self, rounds: int) -> list[Fraction]:
        """Return the diagonals from the main one down, one for each round or fewer: then 0."""
        return self.enclosed(rounds)[0]

    def inverse(self, rounds: int) -> list[Fraction]:
        """Return the diagonals of the inverse, one for each round, to 200 binary digits.

        By forward substitution, each step of which rounds up to a unit.
        """
        return _substituted(self.diagonals(rounds), rounds)[0]

    @abstractmethod
    def words(self, rounds: int) -> str:
        """Return what it is for that many rounds, in a few words."""

    def within(self, rounds: int) -> Strategy:
        """Return a strategy that is the same for that many rounds, in its plainest form."""
        return self


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Toeplitz(Strategy):
    """The lower triangular matrix with these diagonals: banded where they are few.

    Its noise ``w_t = (z_t - sum over k >= 1 of c_k w_(t-k)) / c_0`` takes a memory of as many rows
    as there are diagonals beside the main one.

    Args:
        coefficients: The diagonals from the main one down, finite numbers; further ones are 0.

    References:
        Choquette-Choo et al., "(Amplified) Banded Matrix Factorization: A Unified Approach to
        Private Training", 2023.

    Example:
        >>> import hockeystick as hs
        >>> hs.mechanisms.Toeplitz([1, 0.5, 0.25])
        Toeplitz(coefficients=(1.0, 0.5, 0.25))
    """

    coefficients: tuple[float | Fraction, ...]

    def __init__(self, coefficients: Iterable[float | Fraction]) -> None:
        given = exact_row("coefficients", coefficients, _COEFFICIENTS)
        object.__setattr__(self, "coefficients", tuple(map(_plain, given)))

    def enclosed(self, rounds: int) -> tuple[list[Fraction], Fraction]:
        return [Fraction(value) for value in self.coefficients[:rounds]], Fraction(0)

    def words(self, rounds: int) -> str:
        return "Toeplitz matrix"


@registered
@final
@dataclass(frozen=True, slots=True)
class SquareRoot(Strategy):
    """The square root of the prefix sums, or its first bands.

    The Toeplitz matrix with ``c_0 = 1``, ``c_k = c_(k-1) (2k - 1) / (2k)``, to 200 binary digits.

    Args:
        bands: How many diagonals are kept, an integer from 1 to 10^6; all where not given.

    References:
        Fichtenberger, Henzinger and Upadhyay, "Constant Matters: Fine-grained Error Bound on
        Differentially Private Continual Observation", 2023; Kalinin and Lampert, "Banded Square
        Root Matrix Factorization for Differentially Private Model Training", 2024.

    Example:
        >>> import hockeystick as hs
        >>> [float(c) for c in hs.mechanisms.SquareRoot(bands=3).diagonals(100)]
        [1.0, 0.5, 0.375]
    """

    bands: int | None = field(default=None, metadata={"domain": _BANDS})

    def __post_init__(self) -> None:
        set_fields(self)

    def enclosed(self, rounds: int) -> tuple[list[Fraction], Fraction]:
        """Return the diagonals: a step that rounds loses less than one unit, and none grows."""
        kept = rounds if self.bands is None else min(self.bands, rounds)
        found, lost = [_UNIT], 0
        for k in range(1, kept):
            value, rest = divmod(found[-1] * (2 * k - 1), 2 * k)
            found.append(value)
            lost += rest > 0
        return [Fraction(value, _UNIT) for value in found], Fraction(lost, _UNIT)

    def inverse(self, rounds: int) -> list[Fraction]:
        if self.within(rounds) != SquareRoot():
            return Strategy.inverse(self, rounds)
        found = [_UNIT]
        for k in range(1, rounds):
            found.append(found[-1] * (2 * k - 3) // (2 * k))
        return [Fraction(value, _UNIT) for value in found]

    def words(self, rounds: int) -> str:
        whole = self.bands is None or self.bands >= rounds
        return "square root" if whole else f"square root in {self.bands} bands"

    def within(self, rounds: int) -> Strategy:
        return SquareRoot() if self.bands is None or self.bands >= rounds else self


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class BandedInverse(Strategy):
    """The inverse of the lower triangular Toeplitz matrix with these diagonals.

    Its noise ``w_t = sum over k of d_k z_(t-k)`` takes a memory of as many rows as there are
    diagonals ``d_k`` beside the main one. C itself is full:
    ``c_t = -(sum over k >= 1 of d_k c_(t-k)) / d_0``, to 200 binary digits.

    Args:
        coefficients: The diagonals ``d_0, d_1, ...`` of C^-1, finite numbers, the first above 0.

    References:
        Kalinin, McKenna, Upadhyay and Lampert, "Back to Square Roots: An Optimal Bound on the
        Matrix Factorization Error for Multi-Epoch Differentially Private SGD", 2025.

    Example:
        >>> import hockeystick as hs
        >>> one = hs.mechanisms.BandedInverse([1, -0.5])
        >>> [float(c) for c in one.diagonals(4)]
        [1.0, 0.5, 0.25, 0.125]
    """

    coefficients: tuple[float | Fraction, ...]

    def __init__(self, coefficients: Iterable[float | Fraction]) -> None:
        given = exact_row("coefficients", coefficients, _INVERSE)
        if given[0] <= 0:
            raise ParameterError("coefficients", coefficients, _INVERSE)
        object.__setattr__(self, "coefficients", tuple(map(_plain, given)))

    @classmethod
    def square_root(cls, bands: float) -> BandedInverse:
        """Return the first bands of the inverse square root of the prefix sums, in floats.

        ``d_0 = 1``, ``d_k = d_(k-1) (2k - 3) / (2k)``: the series of ``sqrt(1 - x)``.
        """
        kept = _validate.count("bands", bands, _BANDS)
        found = [1.0]
        for k in range(1, kept):
            found.append(found[-1] * (2 * k - 3) / (2 * k))
        return cls(found)

    def enclosed(self, rounds: int) -> tuple[list[Fraction], Fraction]:
        return _substituted([Fraction(value) for value in self.coefficients], rounds)

    def inverse(self, rounds: int) -> list[Fraction]:
        kept = [Fraction(value) for value in self.coefficients[:rounds]]
        return kept + [Fraction(0)] * (rounds - len(kept))

    def words(self, rounds: int) -> str:
        return f"inverse of {len(self.coefficients)} bands"


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class BufferedToeplitz(Strategy):
    """A buffered linear Toeplitz matrix (BLT): ``c_0 = 1``, ``c_k = sum_j omega_j theta_j^(k-1)``.

    Its noise takes a memory of one row for each buffer, whatever the number of rounds:
    ``w_t = z_t - sum_j omega_j p_j`` with ``p_j`` next ``theta_j p_j + w_t``. The diagonals fall
    where the scales sum to at most 1, and sensitivities are known there. They are kept to 200
    binary digits, rounded up.

    Args:
        scales: ``omega_1, ...``, finite numbers above 0, one for each buffer.
        decays: ``theta_1, ...``, as many numbers above 0 and below 1.

    References:
        Dvijotham, McMahan, Pillutla, Steinke and Thakurta, "Efficient and Near-Optimal Noise
        Generation for Streaming Differential Privacy", 2024; McMahan, Xu and Zhang, "A Hassle-free
        Algorithm for Strong Differential Privacy in Federated Learning Systems", 2024.

    Example:
        >>> import hockeystick as hs
        >>> one = hs.mechanisms.BufferedToeplitz(scales=[0.25, 0.25], decays=[0.5, 0.875])
        >>> [float(c) for c in one.diagonals(4)]
        [1.0, 0.5, 0.34375, 0.25390625]
    """

    scales: tuple[float, ...]
    decays: tuple[float, ...]

    def __init__(self, scales: Iterable[float], decays: Iterable[float]) -> None:
        given = tuple(map(float, exact_row("scales", scales, _SCALES)))
        if not all(0 < one < math.inf for one in given):
            raise ParameterError("scales", scales, _SCALES)
        rates = _validate.reals("decays", decays, _DECAY)
        if len(rates) != len(given):
            allowed = f"as many numbers as there are scales, {len(given)}"
            raise ParameterError("decays", decays, allowed)
        object.__setattr__(self, "scales", given)
        object.__setattr__(self, "decays", rates)

    def enclosed(self, rounds: int) -> tuple[list[Fraction], Fraction]:
        """Return the diagonals, rounded up: a step adds less than one unit to a buffer."""
        total, added = [_UNIT, *[0] * (rounds - 1)], 0
        for scale, decay in zip(self.scales, self.decays, strict=True):
            (numerator, bits), (factor, shift) = _binary(scale), _binary(decay)
            value, rest = divmod(numerator * _UNIT, 1 << bits)
            for t in range(1, rounds):
                value, added = value + (rest > 0), added + (rest > 0)
                total[t] += value
                value, rest = divmod(value * factor, 1 << shift)
        return [Fraction(value, _UNIT) for value in total], Fraction(added, _UNIT)

    def inverse(self, rounds: int) -> list[Fraction]:
        terms = [(_binary(w), _binary(p)) for w, p in zip(self.scales, self.decays, strict=True)]
        found, buffers = [_UNIT], [_UNIT] * len(terms)
        for _ in range(1, rounds):
            held = zip(terms, buffers, strict=True)
            row = -sum(p * factor >> shift for ((factor, shift), _), p in held)
            held = zip(terms, buffers, strict=True)
            buffers = [(p * factor >> shift) + row for (_, (factor, shift)), p in held]
            found.append(row)
        return [Fraction(value, _UNIT) for value in found]

    def words(self, rounds: int) -> str:
        return f"buffered Toeplitz matrix with {len(self.scales)} buffers"


def _substituted(diagonals: Sequence[Fraction], rounds: int) -> tuple[list[Fraction], Fraction]:
    """Return the diagonals of a Toeplitz matrix's inverse in fixed point, each step rounded up.

    With steps rounded by ``r_t < u``, ``D c = (1, 0, ...) + d_0 r``, so that no ``c_t`` is off by
    more than ``u |d_0| sum |c_t|``: with this u, less than ``2^-254`` times the sum of those found.
    """
    unit = math.lcm(*(value.denominator for value in diagonals))
    first, *rest = (int(value * unit) for value in diagonals)
    bits = _BITS + first.bit_length() - unit.bit_length()
    value, lost = divmod(-unit << max(bits, 0), first << max(-bits, 0))
    found = [-value]
    for _ in range(1, rounds):
        total = sum(d * c for d, c in zip(rest, reversed(found[-len(rest) :]), strict=False))
        value, over = divmod(total, first)
        found.append(-value)
        lost = lost or over
    scale = Fraction(2) ** -bits
    most = sum(map(abs, found)) * scale / 2 ** (_BITS - 2) if lost else Fraction(0)
    return [value * scale for value in found], most


def checked_strategy(value: object) -> Strategy:
    """Return a strategy, or raise."""
    if not isinstance(value, Strategy):
        raise ParameterError("strategy", value, "a strategy, as SquareRoot(bands=10)")
    return value


def exact_row(name: str, values: object, allowed: str) -> Sequence[Fraction]:
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
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return isinstance(value, numbers.Rational) or math.isfinite(value)


def _plain(value: Fraction) -> float | Fraction:
    try:
        nearest = float(value)
    except OverflowError:
        return value
    return nearest if Fraction(nearest) == value else value


def _binary(value: float) -> tuple[int, int]:
    """Return a float as an integer over a power of two, by its exponent."""
    numerator, denominator = value.as_integer_ratio()
    return numerator, denominator.bit_length() - 1
