"""Gaussian and Laplace noise rounded to integers, and geometric noise: one inverse transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.numerics.working_precision import working_bits
from hockeystick.precision import inverse_transform as laws
from hockeystick.release.samplers.bits import (
    DRAWS,
    Bits,
    Integers,
    Uniform,
    Words,
    checked_words,
    secret_bits,
)
from hockeystick.release.samplers.comparisons import NoisyNumber, RealNoise

# Above 2^44 a float next to the largest draw, some 2^6 scales, would have no bit for the round-off.
SCALE: Final = Domain(
    symbol="s", low=0, high=2.0**44, low_open=True, typical=(1, 2.0**24), whole=False
)
_DIMENSION: Final = whole_numbers("n", 1, (2, 1000))
# Words that are transformed at once: half a megabyte, which stays in a processor's cache.
_BLOCK: Final = 1 << 16
_POSITION_BITS: Final = 63
# Gaussians of a radial draw are known to half of 2^-44 at first, in blocks of one call each.
_FINE: Final = 44
_RADIAL_BLOCK: Final = 1 << 15
# Bits of the ends of a Gaussian whose words were refined.
_FINER: Final = 1024

Ends = Sequence[tuple[int, int]]


def rounded_gaussian(scale: float, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw ``round(N(0, s^2))`` for a float s as it is, in (0, 2^44], in units of the grid.

    (Devroye, "Non-Uniform Random Variate Generation", 1986, II.2 (inversion); Karney, "Sampling
    Exactly from the Normal Distribution", 2016 (the idea of bits on demand).)

    Guarantees:
        Exact: the number k has probability ``Phi((k + 1/2)/s) - Phi((k - 1/2)/s)``, tails included.
        A draw is ``+- floor(s Q(u) + 1/2)`` for u uniform on (0, 1), a fair sign, and Q the inverse
        of ``S(x) = erfc(x / sqrt 2)``. It is computed from 63 bits of u in floating point with a
        bound on the error; wherever that bound reaches the boundary between two integers, further
        bits of the same u are drawn and compared with S at the boundary in interval arithmetic
        until they decide.

        For integers S, ``S + round(Z) = round(S + Z)``: an integer sum with this noise is a
        function of the sum with real Gaussian noise, and as private, and so is what is scaled
        afterwards.
    """
    return _draw(laws.HALF_NORMAL, scale, 0.5, size, bits)


def rounded_laplace(scale: float, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw ``round(Laplace(b))``, b in (0, 2^44] in units of the grid.

    Exact, as ``rounded_gaussian`` is, with ``S(x) = exp(-x)``: ``P(|k| >= n)`` is
    ``exp(-(n - 1/2)/b)`` for n >= 1, with a fair sign.
    """
    return _draw(laws.EXPONENTIAL, scale, 0.5, size, bits)


def discrete_laplace(scale: float, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw integers with probability proportional to ``exp(-|k|/b)``, b in (0, 2^44], exactly.

    ``floor(b E)`` of an exponential E is geometric, ``P(n) = (1 - r) r^n`` with ``r = exp(-1/b)``;
    the difference of two independent ones has ``P(k) = (1 - r)/(1 + r) r^|k|`` (Ghosh, Roughgarden
    and Sundararajan, SIAM J. Comput. 2012 (two-sided geometric noise)).
    """
    first = np.abs(_draw(laws.EXPONENTIAL, scale, 0.0, size, bits))
    return first - np.abs(_draw(laws.EXPONENTIAL, scale, 0.0, size, bits))


def _draw(law: laws.Law, scale: float, shift: float, size: int, bits: Bits) -> Integers:
    """Return ``+- floor(s Q(u) + shift)``."""
    from hockeystick.kernels.inverse_transform import integers

    s = _validate.real("scale", scale, SCALE)
    count = _validate.count("size", size, DRAWS)
    cells, errors, slopes = _table(law)
    drawn = np.empty(count, dtype=np.int64)
    undecided = np.empty(min(count, _BLOCK), dtype=np.int64)
    for start in range(0, count, _BLOCK):
        block = drawn[start : start + _BLOCK]
        words = checked_words(bits, len(block))
        left = integers(words, s, shift, cells, errors, slopes, block, undecided)
        for place in undecided[:left]:
            block[place] = decided(law, s, shift, int(words[place]), bits)
    return drawn


def decided(law: laws.Law, scale: float, shift: float, word: int, bits: Bits) -> int:
    """Return ``+- floor(s Q(u) + shift)`` for a word, with as many further bits of u as it takes.

    A candidate is right when all that is known of u lies between ``S((n + 1 - shift)/s)`` and
    ``S((n - shift)/s)``.
    """
    position = Uniform(word >> 1, _POSITION_BITS, bits)

    def survival(size: int) -> tuple[int, int]:
        boundary = (size - Fraction(shift)) / Fraction(scale)
        return laws.enclosure(law, boundary, position.length)

    while True:
        size = _candidate(law, scale, shift, position)
        if survival(size + 1)[1] <= position.value and position.value + 1 <= survival(size)[0]:
            return -size if word & 1 else size
        position.refine()


def _candidate(law: laws.Law, scale: float, shift: float, position: Uniform) -> int:
    """Return the integer that the middle of an interval of u would give, or one next to it."""
    with working_bits(position.length + 64):
        from hockeystick.numerics.multiprecision import mp

        middle = mp.ldexp(2 * position.value + 1, -position.length - 1)
        return int(mp.floor(law.inverse(middle) * mp.mpf(scale) + mp.mpf(shift)))


@lru_cache(maxsize=4)
def _table(law: laws.Law) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the polynomials of a law's inverse with their bounds."""
    from hockeystick.kernels.inverse_transform import CELL_BITS, LOWEST

    return laws.table(law, LOWEST, CELL_BITS)


class _MoreBitsError(Exception):
    """More bits were asked for than the words of a block."""


def rounded_multivariate_laplace(
    scale: float, dimension: int, *, bits: Bits = secret_bits
) -> Integers:
    """Draw ``round(Z)``, each coordinate, for Z of the density ``~ exp(-|z|/b)`` on R^n.

    ``Z = b |H| G`` with independent standard Gaussian vectors H of n + 1 and G of n coordinates; b
    is in units of the grid, in (0, 2^44]. It returns n integers (Andrews and Mallows, "Scale
    Mixtures of Normal Distributions", JRSS B 1974 (the mixture)).

    Guarantees:
        Exact, tails included. Given ``v = b^2 |H|^2``, Z is Gaussian with variance v, and v / b^2
        has a chi-squared distribution of n + 1 degrees of freedom, with density
        ``~ v^((n-1)/2) exp(-v / (2 b^2))``; the mixture of ``v^(-n/2) exp(-r^2 / (2 v))`` over it
        is

            int v^(-1/2) exp(-r^2/(2v) - v/(2b^2)) dv  ~  exp(-r / b).

        Each Gaussian is a function of one uniform number. Bounds of all of them give bounds of each
        coordinate, in integers; where these leave open how a coordinate is rounded, more bits of
        the same uniform numbers are drawn until they decide.
    """
    exact = Fraction(_validate.real("scale", scale, SCALE))
    count = _validate.count("dimension", dimension, _DIMENSION)
    words = checked_words(bits, 2 * count + 1)
    try:
        ends = _coarse(words)
    except _MoreBitsError:
        found = None
    else:
        found = _rounded(exact, ends[: count + 1], ends[count + 1 :], _FINE + 1)
    if found is None:
        found = _refined(exact, words, bits)
    return np.array(found, dtype=np.int64)


def _coarse(words: Words) -> Ends:
    """Return integers around ``2^45 z`` for the Gaussian z of each word, or raise."""
    found: list[tuple[int, int]] = []
    for start in range(0, len(words), _RADIAL_BLOCK):
        block = words[start : start + _RADIAL_BLOCK]
        steps = rounded_gaussian(2.0**_FINE, len(block), bits=_only(block))
        found += [(2 * k - 1, 2 * k + 1) for k in steps.tolist()]
    return found


def _only(words: Words) -> Bits:
    """Return a source of these words, all at once, and of no more."""
    left = [words]

    def given(count: int) -> Words:
        if not left:
            raise _MoreBitsError
        return left.pop()

    return given


def _refined(scale: Fraction, words: Words, bits: Bits) -> list[int]:
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
