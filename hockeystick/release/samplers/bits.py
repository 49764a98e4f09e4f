"""Random bits, and what is drawn from them alone: coins, uniform integers, orders."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import ParameterError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]
Bits = Callable[[int], Words]
"""What returns a number of independent, uniform 64-bit words, a fresh array at each call."""

WORD: Final = 64
COUNT: Final = whole_numbers("m", 0, (1, 10**7))
POSITIVE: Final = whole_numbers("n", 1, (1, 10**6))
_BELOW: Final = Domain(symbol="n", low=1, high=2**63, typical=(2, 10**6), whole=True)
_STUCK: Final = "the source of random bits repeats itself"
# Ideal words are refused so often in a row with a probability below 2^-900.
_ROUNDS: Final = 1000
# Ideal bits leave a question open for this long with a probability of some 2^-900.
_MOST: Final = 960


def secret_bits(count: int) -> Words:
    """Return 64-bit words from the operating system's cryptographic generator.

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.secret_bits(4).dtype
        dtype('uint64')
    """
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def words_from(bits: Bits, count: int) -> Words:
    """Return a number of words, or raise where a source returns something else."""
    words: Any = bits(count)
    if isinstance(words, np.ndarray) and words.dtype == np.uint64 and words.shape == (count,):
        return words
    got = f"{getattr(words, 'dtype', type(words).__name__)} {getattr(words, 'shape', '')}"
    raise ParameterError("bits", got, f"a source of {count} words of uint64, one array")


class Uniform:
    """A uniform number u of which some bits are known: ``value 2^-length <= u <= (value + 1) ..``.

    Each bit is drawn once, when a question needs it: all answers are those of one ideal number.
    """

    __slots__ = ("_bits", "length", "value")

    def __init__(self, value: int, length: int, bits: Bits) -> None:
        self.value: int = value
        self.length: int = length
        self._bits = bits

    def below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """Return whether u < x; bounds gives integers around ``2^n x``, near as n grows."""
        while True:
            low, high = bounds(self.length)
            if self.value + 1 <= low:
                return True
            if self.value >= high:
                return False
            self.refine()

    def refine(self) -> None:
        """Draw a word more, or raise where so many left the question open."""
        if self.length >= _MOST:
            raise OSError(_STUCK)
        self.value = (self.value << WORD) | int(words_from(self._bits, 1)[0])
        self.length += WORD


def bernoulli(probability: float | Fraction, size: int, *, bits: Bits = secret_bits) -> Bools:
    """Draw coins that are true with exactly the probability p given, a number from 0 to 1.

    A uniform u is compared with p, 64 bits at a time until they differ (Canonne et al. 2020).

    Example:
        >>> from hockeystick.release import samplers
        >>> samplers.bernoulli(0.3, size=5).dtype
        dtype('bool')
    """
    p = Fraction(_validate.probability("probability", probability))
    count = _validate.count("size", size, COUNT)
    if p == 1:
        return np.ones(count, dtype=np.bool_)

    def around(fine: int) -> tuple[int, int]:
        whole, rest = divmod(p.numerator << fine, p.denominator)
        return whole, whole + bool(rest)

    return coins(around, count, bits)


def coins(bounds: Callable[[int], tuple[int, int]], count: int, bits: Bits) -> Bools:
    """Return coins of a probability p < 1; bounds gives integers around ``2^n p``, by n."""
    words = words_from(bits, count)
    least, most = bounds(WORD)
    drawn = words < np.uint64(least)
    if most == least:
        return drawn
    for place in np.flatnonzero(~drawn & (words <= np.uint64(min(most, 1 << WORD) - 1))):
        drawn[place] = Uniform(int(words[place]), WORD, bits).below(bounds)
    return drawn


def uniform_integers(below: int, size: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw integers from 0 to n - 1, n from 1 to 2^63, each with probability 1/n exactly.

    Example:
        >>> from hockeystick.release import samplers
        >>> set(samplers.uniform_integers(3, size=1000).tolist()) <= {0, 1, 2}
        True
    """
    n = _validate.count("below", below, _BELOW)
    count = _validate.count("size", size, COUNT)
    words = words_from(bits, count).copy()
    # Words that are not below the largest multiple of n are drawn again.
    last = (1 << WORD) - (1 << WORD) % n - 1
    again = np.flatnonzero(words > np.uint64(last))
    for _ in range(_ROUNDS):
        if len(again) == 0:
            return (words % np.uint64(n)).astype(np.int64)
        words[again] = words_from(bits, len(again))
        again = again[words[again] > np.uint64(last)]
    raise OSError(_STUCK)


def permutation(length: int, *, bits: Bits = secret_bits) -> Integers:
    """Draw an order of 0 to n - 1, each of the n! with the same probability, exactly.

    Example:
        >>> from hockeystick.release import samplers
        >>> sorted(samplers.permutation(5).tolist())
        [0, 1, 2, 3, 4]
    """
    count = _validate.count("length", length, COUNT)
    # The order of independent words, all of which are drawn again if two are equal.
    for _ in range(_ROUNDS):
        words = words_from(bits, count)
        order = np.argsort(words, kind="stable")
        ranked = words[order]
        if not bool((ranked[1:] == ranked[:-1]).any()):
            return order.astype(np.int64)
    raise OSError(_STUCK)
