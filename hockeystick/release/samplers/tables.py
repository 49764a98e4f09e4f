"""Integers from a table of cumulative probabilities, compared with 64 random bits or more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.release.samplers._refined import Uniform
from hockeystick.release.samplers.bits import Bits, checked_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD: Final = 64


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Integers around ``2^bits P(X <= first + i)``, for i = 0, 1, ..

    Args:
        first: The least integer that is listed.
        below: A number of at least ``2^bits P(X < first)``.
        lows: Numbers of at most ``2^bits P(X <= first + i)``, none above the next.
        highs: Numbers of at least that, likewise.
    """

    first: int
    below: int
    lows: tuple[int, ...]
    highs: tuple[int, ...]

    def around(self, k: int, bits: int) -> tuple[int, int]:
        """Return integers around ``2^bits P(X <= k)`` for any k."""
        place = k - self.first
        if place < 0:
            return 0, self.below
        if place >= len(self.lows):
            return self.lows[-1], 1 << bits
        return self.lows[place], self.highs[place]


class DiscreteLaw(ABC):
    """A law on the integers; hashable, as its tables are kept."""

    __slots__ = ()

    @abstractmethod
    def cumulative(self, bits: int) -> Cumulative:
        """Return its cumulative probabilities, in which all but less than ``2^-bits`` is listed."""


def draw(law: DiscreteLaw, size: int, bits: Bits) -> NDArray[np.int64]:
    """Draw from a law: the integer k with ``P(X < k) <= u < P(X <= k)`` for u uniform on (0, 1).

    64 bits of u decide unless they are next to a cumulative probability; more are drawn then.
    """
    first, lows, highs = _table(law)
    words = checked_words(bits, size)
    places = np.searchsorted(highs, words, side="right")
    unsure = np.flatnonzero(words >= lows[places])
    drawn = places.astype(np.int64) + first
    for place in unsure:
        drawn[place] = _decided(law, int(drawn[place]), Uniform(int(words[place]), _WORD, bits))
    return drawn


def _decided(law: DiscreteLaw, k: int, position: Uniform) -> int:
    """Return the integer of u, looking from k on."""
    while not _at_most(law, k, position):
        k += 1
    while _at_most(law, k - 1, position):
        k -= 1
    return k


def _at_most(law: DiscreteLaw, k: int, position: Uniform) -> bool:
    """Return whether ``u < P(X <= k)``."""
    return position.below(lambda bits: _cumulative(law, bits).around(k, bits))


# Only words next to a boundary ask again, and some are large: 70 MB for Poisson of mean 2^30.
@lru_cache(maxsize=2)
def _cumulative(law: DiscreteLaw, bits: int) -> Cumulative:
    """Return a law's cumulative probabilities."""
    return law.cumulative(bits)


@lru_cache(maxsize=16)
def _table(law: DiscreteLaw) -> tuple[int, NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the first integer and the bounds of the cumulative probabilities that fit a word.

    There is a lower bound more than upper ones: that of the first integer whose upper one is 1.
    """
    table = _cumulative(law, _WORD)
    top = 1 << _WORD
    count = sum(high < top for high in table.highs)
    lows = np.array(table.lows[: count + 1], dtype=np.uint64)
    return table.first, lows, np.array(table.highs[:count], dtype=np.uint64)
