"""Real noise, compared or rounded exactly, though no real number is ever written down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.numerics.multiprecision import interval_bits, iv, mp, working_bits
from hockeystick.numerics.rounding import fraction_of
from hockeystick.precision import inverse_transform as laws
from hockeystick.release.samplers import Bits, secret_bits
from hockeystick.release.samplers.bits import COUNT, POSITIVE, WORD, Integers, Uniform, words_from

Number = float | Fraction
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

    Z is a function of a uniform u and, of two sides, a fair sign. Comparisons are those of reals.

    Example:
        >>> from fractions import Fraction
        >>> from hockeystick.release.samplers import NoisyNumber, secret_bits
        >>> law = "laplace", Fraction(1), 5, secret_bits
        >>> NoisyNumber(Fraction(90), *law).exceeds(NoisyNumber(Fraction(0), *law))
        True
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
        """Return whether this number is larger, or both are without noise and equal."""
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
    values: Sequence[Number], noise: RealNoise, scale: Fraction, *, bits: Bits = secret_bits
) -> int:
    """Return where ``value_i + scale Z_i`` is largest, for independent real noises Z_i, exactly.

    Values, at least one, are the binary fractions that they are; the scale is a fraction >= 0, and
    with 0 it is the first of the largest. Floats find the few that could be largest, among them all
    whose noise the bits known leave open; these are compared as ``NoisyNumber`` (Durfee and Rogers,
    NeurIPS 2019: the largest after Gumbel noise has the exponential mechanism's distribution).

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.noisy_argmax([0, 3000, 5], "gumbel", scale=2)
        1
    """
    if len(values) == 0:
        raise ParameterError("values", values, "at least one number")
    if scale < 0:
        raise ParameterError("scale", scale, "a number >= 0")
    noise = _validate.choice("noise", noise, RealNoise)
    # Times a power of two, so that the largest is near 1.
    given = [Fraction(value) for value in values]
    most = max(scale, *map(abs, given))
    factor = Fraction(2) ** (most.denominator.bit_length() - most.numerator.bit_length())
    exact, spread = [value * factor for value in given], scale * factor
    words = words_from(bits, len(exact))
    floats = np.array([float(value) for value in exact])
    drawn = floats + float(spread) * _estimates(noise, words)
    slack = _BELIEVED * (float(spread) * 64 + float(np.abs(floats).max()))
    # Of these the noise is known as closely as floats are believed to be.
    known = words >> np.uint64(1) >= _NEAR_AN_END
    if noise is RealNoise.GUMBEL:
        known &= ~words >> np.uint64(1) >= _NEAR_AN_END
    contenders = np.flatnonzero(~known | (drawn >= drawn[known].max(initial=-np.inf) - 2 * slack))
    best, *others = (
        (i, NoisyNumber(exact[i], noise, spread, int(words[i]), bits)) for i in contenders.tolist()
    )
    for one in others:
        if not best[1].exceeds(one[1]):
            best = one
    return int(best[0])


def _inverse_around(law: laws.Law, position: Uniform) -> tuple[Fraction, Fraction] | None:
    """Return two numbers > 0 around ``Q(u)``, or None where too few bits are known.

    Candidates on either side of the middle move outward until enclosures of S have u between.
    """
    value, length = position.value, position.length
    if value == 0 or value + 1 >= 1 << length:
        return None
    with working_bits(length + WORD):
        middle = law.inverse(mp.ldexp(2 * value + 1, -length - 1))
        ends = [law.inverse(mp.ldexp(end, -length)) for end in (value, value + 1)]
        exact = fraction_of(middle)
        width = fraction_of(abs(ends[0] - ends[1]))
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


def _minus_log(x: Fraction) -> tuple[Fraction, Fraction]:
    """Return two numbers around ``-ln x`` for x > 0."""
    with interval_bits(x.denominator.bit_length() + x.numerator.bit_length() + WORD):
        found = -iv.log(iv.mpf(x.numerator) / x.denominator)
    low, high = (fraction_of(mp.make_mpf(end)) for end in found._mpi_)
    return low, high


def _middle(positions: np.ndarray) -> np.ndarray:
    return (positions.astype(np.float64) + 0.5) * 2.0 ** -(WORD - 1)


def _estimates(noise: RealNoise, words: np.ndarray) -> np.ndarray:
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


# Above 2^44 a float next to the largest draw, some 2^6 scales, would have no bit for the round-off.
SCALE: Final = _validate.Domain("s", 0, 2.0**44, (1, 2.0**24), low_open=True)
# Words that are transformed at once: half a megabyte, which stays in a processor's cache.
_BLOCK: Final = 1 << 16
# Gaussians of a radial draw are known to half of 2^-44 at first.
_FINE: Final = 44
# Bits of the ends of a Gaussian whose words were refined.
_FINER: Final = 1024

Ends = Sequence[tuple[int, int]]


def rounded_gaussian(scale: float, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw ``round(N(0, s^2))`` for a float s as it is, in (0, 2^44], in units of the grid.

    For integers S, ``S + round(Z) = round(S + Z)``: an integer sum with this noise is a function of
    the sum with real Gaussian noise, and as private.

    Guarantees:
        The number k has probability ``Phi((k + 1/2)/s) - Phi((k - 1/2)/s)``, tails included.
        A draw is ``+- floor(s Q(u) + 1/2)`` for u uniform on (0, 1), a fair sign, and Q the inverse
        of ``S(x) = erfc(x / sqrt 2)``. It is computed from 63 bits of u in floating point; wherever
        the bound on its error reaches the boundary between two integers, further bits of the same u
        are compared with S there in interval arithmetic until they decide (Devroye 1986, II.2,
        inversion; Karney 2016, bits on demand).

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.rounded_gaussian(2.0**22, size=3).shape
        (3,)
    """
    return _draw(laws.HALF_NORMAL, scale, 0.5, size, bits)


def rounded_laplace(scale: float, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw ``round(Laplace(b))``, b in (0, 2^44], as ``rounded_gaussian`` does.

    With ``S(x) = exp(-x)``: ``P(|k| >= n)`` is ``exp(-(n - 1/2)/b)`` for n >= 1, with a fair sign.

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.rounded_laplace(10.0, size=3).shape
        (3,)
    """
    return _draw(laws.EXPONENTIAL, scale, 0.5, size, bits)


def discrete_laplace(scale: float, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw integers with probability proportional to ``exp(-|k|/b)``, b in (0, 2^44], exactly.

    ``floor(b E)`` of an exponential E is geometric, ``P(n) = (1 - r) r^n`` with ``r = exp(-1/b)``;
    the difference of two has ``P(k) = (1 - r)/(1 + r) r^|k|``.

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.discrete_laplace(2.0, size=3).shape
        (3,)
    """
    first = np.abs(_draw(laws.EXPONENTIAL, scale, 0.0, size, bits))
    return first - np.abs(_draw(laws.EXPONENTIAL, scale, 0.0, size, bits))


def _draw(law: laws.Law, scale: float, shift: float, size: int, bits: Bits) -> Integers:
    """Return ``+- floor(s Q(u) + shift)``."""
    from hockeystick.kernels.inverse_transform import integers

    s = _validate.real("scale", scale, SCALE)
    count = _validate.count("size", size, COUNT)
    cells, errors, slopes = _table(law)
    drawn = np.empty(count, dtype=np.int64)
    undecided = np.empty(min(count, _BLOCK), dtype=np.int64)
    for start in range(0, count, _BLOCK):
        block = drawn[start : start + _BLOCK]
        words = words_from(bits, len(block))
        left = integers(words, s, shift, cells, errors, slopes, block, undecided)
        for place in undecided[:left]:
            block[place] = decided(law, s, shift, int(words[place]), bits)
    return drawn


def decided(law: laws.Law, scale: float, shift: float, word: int, bits: Bits) -> int:
    """Return ``+- floor(s Q(u) + shift)`` for a word, with as many further bits of u as it takes.

    It is at least n where u is below ``S((n - shift)/s)``; floats say from where to look.
    """
    position = Uniform(word >> 1, WORD - 1, bits)

    def reaches(size: int) -> bool:
        boundary = (size - Fraction(shift)) / Fraction(scale)
        return position.below(lambda fine: laws.enclosure(law, boundary, fine))

    with working_bits(2 * WORD):
        middle = law.inverse(mp.ldexp(2 * position.value + 1, -WORD))
        size = int(mp.floor(middle * mp.mpf(scale) + mp.mpf(shift)))
    while reaches(size + 1):
        size += 1
    while not reaches(size):
        size -= 1
    return -size if word & 1 else size


@lru_cache(maxsize=4)
def _table(law: laws.Law) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from hockeystick.kernels.inverse_transform import CELL_BITS, LOWEST

    return laws.table(law, LOWEST, CELL_BITS)


def rounded_multivariate_laplace(
    scale: float, dimension: int, *, bits: Bits = secret_bits
) -> Integers:
    """Draw ``round(Z)``, each coordinate, for Z of the density ``~ exp(-|z|/b)`` on R^n.

    ``Z = b |H| G`` with independent standard Gaussian vectors H of n + 1 and G of n coordinates; b
    is in units of the grid, in (0, 2^44]. It returns n integers.

    Guarantees:
        Exact, tails included. Given ``v = b^2 |H|^2``, Z is Gaussian with variance v, and v / b^2
        has a chi-squared distribution of n + 1 degrees of freedom, with density ``~ v^((n-1)/2)
        exp(-v / (2 b^2))``; the mixture of ``v^(-n/2) exp(-r^2 / (2 v))`` over it (Andrews and
        Mallows, JRSS B 1974) is

            int v^(-1/2) exp(-r^2/(2v) - v/(2b^2)) dv  ~  exp(-r / b).

        Bounds of each uniform number give bounds of each coordinate, in integers; where these leave
        open how one is rounded, more bits of the same uniform numbers are drawn until they decide.

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.rounded_multivariate_laplace(10.0, dimension=3).shape
        (3,)
    """
    exact = Fraction(_validate.real("scale", scale, SCALE))
    count = _validate.count("dimension", dimension, POSITIVE)
    words = words_from(bits, 2 * count + 1)
    ends = _coarse(words)
    half = count + 1
    found = _rounded(exact, ends[:half], ends[half:], _FINE + 1) if ends else None
    if found is None:
        found = _refined(exact, words, bits)
    return np.array(found, dtype=np.int64)


def _coarse(words: np.ndarray) -> Ends:
    """Return integers around ``2^45 z`` for the Gaussian z of each word, none where one is open."""
    from hockeystick.kernels.inverse_transform import integers

    steps, undecided = np.empty((2, len(words)), dtype=np.int64)
    if integers(words, 2.0**_FINE, 0.5, *_table(laws.HALF_NORMAL), steps, undecided):
        return []
    return [(2 * k - 1, 2 * k + 1) for k in steps.tolist()]


def _refined(scale: Fraction, words: np.ndarray, bits: Bits) -> list[int]:
    """Return the rounded coordinates from words and as many further bits as it takes."""
    one, unit = Fraction(1), 1 << _FINER
    numbers = [NoisyNumber(Fraction(0), RealNoise.GAUSSIAN, one, int(w), bits) for w in words]
    half = len(words) // 2 + 1
    while True:
        ends = [
            (math.floor(low * unit), math.ceil(high * unit))
            for low, high in (number.bounds() for number in numbers)
        ]
        found = _rounded(scale, ends[:half], ends[half:], _FINER)
        if found is not None:
            return found
        for number in numbers:
            number.refine()


def _rounded(scale: Fraction, head: Ends, tail: Ends, bits: int) -> list[int] | None:
    """Return ``floor(b |H| G_i + 1/2)`` of all i, or None where the ends leave one open."""
    squares = [0 if low <= 0 <= high else min(low * low, high * high) for low, high in head]
    low = math.isqrt(sum(squares))
    high = math.isqrt(sum(max(abs(one) for one in ends) ** 2 for ends in head)) + 1
    top, unit = scale.numerator, scale.denominator << (2 * bits)
    rounded: list[int] = []
    for below, above in tail:
        least = below * (low if below > 0 else high) * top
        most = above * (high if above > 0 else low) * top
        first, last = (2 * least + unit) // (2 * unit), (2 * most + unit) // (2 * unit)
        if first != last:
            return None
        rounded.append(first)
    return rounded
