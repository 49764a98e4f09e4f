"""Random bits: from the operating system, or replayed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Bits = Callable[[int], "NDArray[np.uint64]"]
"""What returns a number of independent, uniform 64-bit words, a fresh array at each call."""

STUCK: Final = (
    "the source of random bits repeats itself; ideal bits lead here with a probability below 2^-800"
)


def secret_bits(count: int) -> NDArray[np.uint64]:
    """Return 64-bit words from the operating system's cryptographic generator.

    They are fresh in every process, also after a fork, and cannot be told from uniform ones by
    anyone who cannot break that generator. Where it fails, so does the draw; there is no other.

    Args:
        count: The number of words.

    Raises:
        OSError: If the operating system has no random bits to give.

    Example:
        >>> from hockeystick.release.samplers import secret_bits
        >>> secret_bits(3).shape
        (3,)
    """
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def checked_words(bits: Bits, count: int) -> NDArray[np.uint64]:
    """Return a number of words, or raise where a source returns something else."""
    words: Any = bits(count)
    if isinstance(words, np.ndarray) and words.dtype == np.uint64 and words.shape == (count,):
        return words
    got = f"{getattr(words, 'dtype', type(words).__name__)} {getattr(words, 'shape', '')}"
    raise ParameterError("bits", got, f"a source of {count} words of uint64, one array")
