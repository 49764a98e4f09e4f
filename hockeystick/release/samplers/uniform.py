"""Coins of any exact probability, and uniform integers and orders."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.release.samplers._refined import Uniform
from hockeystick.release.samplers.bits import STUCK, Bits, checked_words, secret_bits
from hockeystick.release.samplers.rounded import DRAWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD: Final = 64
# Ideal words are refused so often in a row with a probability below 2^-900.
_ROUNDS: Final = 1000
_BELOW: Final = Domain(symbol="n", low=1, high=2**63, typical=(2, 10**6), whole=True)


def bernoulli(
    probability: float | Fraction, size: int, *, bits: Bits = secret_bits
) -> NDArray[np.bool_]:
    """Draw coins that are true with exactly the probability given.

    Guarantees:
        Exact if the bits are ideal: a uniform u is compared with p, 64 bits at a time until they
        differ. A float is taken as the binary fraction that it is, a ``Fraction`` as itself.

    Edge cases:
        Size 0 gives an empty array; p 0 gives False and p 1 True.

    Args:
        probability: The probability p, a number from 0 to 1.
        size: The number of independent draws, an integer >= 0.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of bools.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS
        2020, section 5 (exact coins as the base of exact noise).

    Example:
        >>> from fractions import Fraction
        >>> from hockeystick.release.samplers import bernoulli
        >>> int(bernoulli(Fraction(1, 3), 1000).sum()) > 200
        True
    """
    p = Fraction(_validate.probability("probability", probability))
    count = _validate.count("size", size, DRAWS)
    if p == 1:
        return np.ones(count, dtype=np.bool_)
    return coins(lambda fine: _around(p, fine), count, bits)


def coins(bounds: Callable[[int], tuple[int, int]], count: int, bits: Bits) -> NDArray[np.bool_]:
    """Return coins that are true with a probability below 1 that is known by its bounds.

    Args:
        bounds: Integers around ``2^n p``, by n, that come as close as n grows.
        count: The number of independent draws.
        bits: The source of random words.
    """
    words = checked_words(bits, count)
    least, most = bounds(_WORD)
    drawn = words < np.uint64(least)
    if most == least:
        return drawn
    for place in np.flatnonzero(~drawn & (words <= np.uint64(min(most, 1 << _WORD) - 1))):
        drawn[place] = Uniform(int(words[place]), _WORD, bits).below(bounds)
    return drawn


def uniform_integers(below: int, size: int, *, bits: Bits = secret_bits) -> NDArray[np.int64]:
    """Draw integers from 0 to n - 1, each with probability 1/n exactly.

    Guarantees:
        Exact if the bits are ideal: words that are not below the largest multiple of n are drawn
        again, and the rest of the division is taken of the others.

    Edge cases:
        Size 0 gives an empty array.

    Args:
        below: The number n of values, an integer from 1 to 2^63.
        size: The number of independent draws, an integer >= 0.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of 64-bit integers.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 2019 (the rejection).

    Example:
        >>> from hockeystick.release.samplers import uniform_integers
        >>> bool((uniform_integers(6, 100) < 6).all())
        True
    """
    n = _validate.count("below", below, _BELOW)
    count = _validate.count("size", size, DRAWS)
    words = checked_words(bits, count).copy()
    last = (1 << _WORD) - (1 << _WORD) % n - 1
    again = np.flatnonzero(words > np.uint64(last))
    for _ in range(_ROUNDS):
        if len(again) == 0:
            return (words % np.uint64(n)).astype(np.int64)
        words[again] = checked_words(bits, len(again))
        again = again[words[again] > np.uint64(last)]
    raise OSError(STUCK)


def permutation(length: int, *, bits: Bits = secret_bits) -> NDArray[np.int64]:
    """Draw an order of 0 to n - 1, each of the n! with the same probability.

    Guarantees:
        Exact if the bits are ideal: the order of independent 64-bit words, all of which are drawn
        again if two are equal.

    Edge cases:
        Length 0 gives an empty array.

    Args:
        length: The number n, an integer >= 0.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of 64-bit integers.

    Raises:
        ParameterError: If the length is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Devroye, "Non-Uniform Random Variate Generation", 1986, XII.2 (orders by sorting).

    Example:
        >>> from hockeystick.release.samplers import permutation
        >>> sorted(permutation(4).tolist())
        [0, 1, 2, 3]
    """
    count = _validate.count("length", length, DRAWS)
    for _ in range(_ROUNDS):
        words = checked_words(bits, count)
        order = np.argsort(words, kind="stable")
        ranked = words[order]
        if not bool((ranked[1:] == ranked[:-1]).any()):
            return order.astype(np.int64)
    raise OSError(STUCK)


def _around(p: Fraction, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits p``."""
    whole, rest = divmod(p.numerator << bits, p.denominator)
    return whole, whole + bool(rest)
