"""Sources of random bits that tests know, and what the tests of exact noise share."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import stats

from hockeystick.numerics.multiprecision import mp


def replay(words: Iterable[int]) -> Any:
    """Return a source of the words given, in order."""
    given = iter(words)

    def bits(count: Any) -> Any:
        return np.array([next(given) for _ in range(count)], dtype=np.uint64)

    return bits


def seeded(seed: int) -> Any:
    """Return a source of pseudo-random words."""
    generator = np.random.default_rng(seed)

    def bits(count: Any) -> Any:
        return generator.integers(2**64, size=count, dtype=np.uint64)

    return bits


def none_left(count: Any) -> Any:
    """Refuse: no bits were to be asked for."""
    raise AssertionError("no more bits were to be asked for")


def exact(noise: str, word: Any) -> Any:
    """Return the noise of the middle of a word's uniform numbers, to many digits."""
    with mp.workprec(300):
        u = mp.ldexp(2 * (word >> 1) + 1, -64)
        sign = -1 if word & 1 else 1
        if noise == "gaussian":
            return sign * mp.sqrt(2) * mp.erfinv(1 - u)
        if noise == "gumbel":
            return -mp.log(-mp.log(u))
        return -mp.log(u) * (sign if noise == "laplace" else 1)


def chi_square(drawn: Any, probability: Any) -> Any:
    """Return the p-value of draws against the probabilities of integers."""
    low, high = int(drawn.min()), int(drawn.max())
    counts = np.bincount(drawn - low)
    expected = np.array([probability(k) for k in range(low, high + 1)]) * len(drawn)
    often = expected >= 10
    rest = len(drawn) - expected[often].sum()
    seen = np.append(counts[often], len(drawn) - counts[often].sum())
    return stats.chisquare(seen, np.append(expected[often], rest)).pvalue
