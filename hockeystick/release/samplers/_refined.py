"""A uniform number whose bits are drawn as they are needed."""

from __future__ import annotations

from collections.abc import Callable

from hockeystick.release.samplers.bits import STUCK, Bits, checked_words

_WORD = 64
# Ideal bits leave a question open for this long with a probability of some 2^-900.
_MOST = 960


class Uniform:
    """A uniform number u of which some bits are known: ``value 2^-length <= u <= (value + 1) ..``.

    Every question about u is answered with as many bits as it needs, each drawn once, so that the
    answers are those of one ideal uniform number.
    """

    __slots__ = ("_bits", "length", "value")

    def __init__(self, value: int, length: int, bits: Bits) -> None:
        self.value, self.length, self._bits = value, length, bits

    def below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """Return whether u is below a number.

        Args:
            bounds: Integers around ``2^n x`` for the number x, by n, that come as close as n grows.
        """
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
            raise OSError(STUCK)
        self.value = (self.value << _WORD) | int(checked_words(self._bits, 1)[0])
        self.length += _WORD
