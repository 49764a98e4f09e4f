"""Numbers with real noise that are compared exactly, though no real number is ever written down."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Final, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.numerics.working_precision import interval_bits, working_bits
from hockeystick.precision import inverse_transform as laws
from hockeystick.release.samplers.bits import WORD, Bits, Uniform, checked_words, secret_bits

# Floats that are said to be right to four units in the last place are believed to this.
_BELIEVED: Final = 1e-9
# Where u is this near an end, in units of the bits known, they leave more than that of it open.
_NEAR_AN_END: Final = 1 << 32


class RealNoise(StrEnum):
    """A continuous law of noise, of scale or standard deviation 1."""

    EXPONENTIAL = "exponential"
    GUMBEL = "gumbel"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@final
class NoisyNumber:
    """``value + scale Z`` for one draw of real noise Z, known as closely as it was asked for.

    Z is a function of a uniform u and, where the noise has two sides, a fair sign. The outcome of
    every comparison is that of the real numbers: noise without atoms makes no two of them equal.
    """

    __slots__ = ("_bounds", "_noise", "_position", "_scale", "_sign", "_value")

    def __init__(
        self, value: Fraction, noise: RealNoise, scale: Fraction, word: int, bits: Bits
    ) -> None:
        self._value, self._noise, self._scale = value, RealNoise(noise), scale
        self._sign = -1 if word & 1 else 1
        self._position = Uniform(word >> 1, WORD - 1, bits)
        self._bounds: tuple[Fraction, Fraction] | None = None

    def exceeds(self, other: NoisyNumber) -> bool:
        """Return whether this number is the larger one, or both are without noise and equal."""
        while True:
            low, high = self.bounds()
            least, most = other.bounds()
            if low > most:
                return True
            if high < least:
                return False
            if self is other or (self._scale == 0 and other._scale == 0):
                return low >= most
            self.refine()
            other.refine()

    def bounds(self) -> tuple[Fraction, Fraction]:
        """Return two numbers around this one."""
        if self._bounds is None:
            self._bounds = self._around()
        return self._bounds

    def refine(self) -> None:
        """Draw more bits."""
        if self._scale != 0:
            self._position.refine()
            self._bounds = None

    def _around(self) -> tuple[Fraction, Fraction]:
        if self._scale == 0:
            return self._value, self._value
        law = laws.HALF_NORMAL if self._noise is RealNoise.GAUSSIAN else laws.EXPONENTIAL
        while not (found := _inverse_around(law, self._position)):
            self._position.refine()
        low, high = found
        if self._noise is RealNoise.GUMBEL:
            low, high = _minus_log(high)[0], _minus_log(low)[1]
        elif self._noise is not RealNoise.EXPONENTIAL and self._sign < 0:
            low, high = -high, -low
        return self._value + self._scale * low, self._value + self._scale * high


def noisy_argmax(
    values: Sequence[float | Fraction],
    noise: RealNoise,
    scale: Fraction,
    *,
    bits: Bits = secret_bits,
) -> int:
    """Return where ``value_i + scale Z_i`` is largest, for independent real noises Z_i, exactly.

    Values, at least one, are the binary fractions that they are; the scale is a fraction >= 0, and
    with 0 it is the first of the largest. Floats find the few that could be largest, among them all
    whose noise the bits known leave open; these are compared as ``NoisyNumber`` in interval
    arithmetic, with as many bits as it takes (Durfee and Rogers, NeurIPS 2019 (the largest after
    Gumbel noise has the exponential mechanism's distribution)).

    Example:
        >>> from hockeystick.release.samplers import RealNoise, noisy_argmax
        >>> noisy_argmax([0, 1000], RealNoise.GUMBEL, 1)
        1
    """
    if len(values) == 0:
        raise ParameterError("values", values, "at least one number")
    if scale < 0:
        raise ParameterError("scale", scale, "a number >= 0")
    noise = _validate.choice("noise", noise, RealNoise)
    exact, spread = _near_one(values, scale)
    words = checked_words(bits, len(exact))
    floats = np.array([float(value) for value in exact])
    drawn = floats + float(spread) * _estimates(noise, words)
    slack = _BELIEVED * (float(spread) * 64 + float(np.abs(floats).max()))
    known = _is_known(noise, words)
    contenders = np.flatnonzero(~known | (drawn >= drawn[known].max(initial=-np.inf) - 2 * slack))
    best = int(contenders[0])
    numbers = {
        int(i): NoisyNumber(exact[int(i)], noise, spread, int(words[i]), bits) for i in contenders
    }
    for place in contenders[1:]:
        if not numbers[best].exceeds(numbers[int(place)]):
            best = int(place)
    return best


def _near_one(
    values: Sequence[float | Fraction], scale: Fraction
) -> tuple[list[Fraction], Fraction]:
    """Return numbers and their noise's scale times a power of two: the largest is near 1."""
    exact = [Fraction(value) for value in values]
    most = max(scale, *map(abs, exact))
    factor = Fraction(2) ** (most.denominator.bit_length() - most.numerator.bit_length())
    return [value * factor for value in exact], scale * factor


def _inverse_around(law: laws.Law, position: Uniform) -> tuple[Fraction, Fraction] | None:
    """Return two numbers > 0 around ``Q(u)``, or None where too few bits are known.

    Candidates on either side of the middle move outward until enclosures of S have u between.
    """
    value, length = position.value, position.length
    if value == 0 or value + 1 >= 1 << length:
        return None
    with working_bits(length + WORD):
        from hockeystick.numerics.multiprecision import mp

        middle = law.inverse(mp.ldexp(2 * value + 1, -length - 1))
        ends = [law.inverse(mp.ldexp(end, -length)) for end in (value, value + 1)]
        exact = Fraction(*_ratio(middle))
        width = Fraction(*_ratio(abs(ends[0] - ends[1])))
    while width < exact:
        low, high = exact - width, exact + width
        fine = length + WORD
        certain = value << WORD, (value + 1) << WORD
        if (
            laws.enclosure(law, high, fine)[1] <= certain[0]
            and laws.enclosure(law, low, fine)[0] >= certain[1]
        ):
            return low, high
        width *= 2
    return None


def _ratio(number: object) -> tuple[int, int]:
    """Return a binary number of mpmath as a numerator and a denominator."""
    from mpmath import libmp

    return libmp.to_rational(number._mpf_)  # type: ignore[attr-defined, no-any-return]


def _minus_log(x: Fraction) -> tuple[Fraction, Fraction]:
    """Return two numbers around ``-ln x`` for x > 0."""
    from mpmath import libmp

    from hockeystick.numerics.multiprecision import iv

    with interval_bits(x.denominator.bit_length() + x.numerator.bit_length() + WORD):
        found = -iv.log(iv.mpf(x.numerator) / x.denominator)
    low, high = found._mpi_
    return Fraction(*libmp.to_rational(low)), Fraction(*libmp.to_rational(high))


def _is_known(noise: RealNoise, words: np.ndarray) -> np.ndarray:
    """Return for which words the noise is known as closely as floats are believed to be."""
    low = words >> np.uint64(1) >= _NEAR_AN_END
    return low & (~words >> np.uint64(1) >= _NEAR_AN_END) if noise is RealNoise.GUMBEL else low


def _middle(positions: np.ndarray) -> np.ndarray:
    """Return the middle of the uniform numbers that begin with 63 bits."""
    return (positions.astype(np.float64) + 0.5) * 2.0 ** -(WORD - 1)


def _estimates(noise: RealNoise, words: np.ndarray) -> np.ndarray:
    """Return the noise of words in floats."""
    from scipy import special

    u = _middle(words >> np.uint64(1))
    sign = 1.0 - 2.0 * (words & np.uint64(1)).astype(np.float64)
    if noise is RealNoise.GAUSSIAN:
        return np.asarray(-special.ndtri(u / 2) * sign)
    exponential = -np.log(u)
    if noise is RealNoise.GUMBEL:
        # next to 1 only the distance from 1 has the digits
        rest = np.minimum(_middle(~words >> np.uint64(1)), 0.5)
        return np.asarray(-np.log(np.where(u > 0.5, -np.log1p(-rest), exponential)))
    return np.asarray(exponential * (sign if noise is RealNoise.LAPLACE else 1.0))
