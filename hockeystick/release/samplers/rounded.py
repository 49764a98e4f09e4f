"""Gaussian and Laplace noise rounded to integers, and geometric noise: one inverse transform."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.numerics.working_precision import working_bits
from hockeystick.precision import inverse_transform as laws
from hockeystick.release.samplers._refined import Uniform
from hockeystick.release.samplers.bits import Bits, checked_words, secret_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Above 2^44 a float next to the largest draw, some 2^6 scales, would have no bit for the round-off.
SCALE: Final = Domain(
    symbol="s", low=0, high=2.0**44, low_open=True, typical=(1, 2.0**24), whole=False
)
DRAWS: Final = whole_numbers("m", 0, (1, 10**7))
# Words that are transformed at once: half a megabyte, which stays in a processor's cache.
_BLOCK: Final = 1 << 16
_POSITION_BITS: Final = 63


def rounded_gaussian(scale: float, size: int, *, bits: Bits = secret_bits) -> NDArray[np.int64]:
    """Draw ``round(N(0, s^2))``, with exactly that distribution if the bits are ideal.

    Guarantees:
        Exact: the number k has probability ``Phi((k + 1/2)/s) - Phi((k - 1/2)/s)``, tails included,
        for the float s as it is. A draw is ``+- floor(s Q(u) + 1/2)`` for u uniform on (0, 1), a
        fair sign, and Q the inverse of ``S(x) = erfc(x / sqrt 2)``. It is computed from 63 bits
        of u in floating point with a bound on the error; wherever that bound reaches the boundary
        between two integers, further bits of the same u are drawn and compared with S at the
        boundary in interval arithmetic until they decide. So the integer is a function of u, and
        of nothing else, computed without error.

        **Integer sums stay Gaussian mechanisms.** For integers S, ``S + round(Z) = round(S + Z)``:
        an integer sum with this noise is a function of the sum with real Gaussian noise. By
        post-processing it is as private as the Gaussian mechanism, whose account holds unchanged;
        no discrete analysis is needed. Scaling by a constant afterwards is post-processing too.

    Edge cases:
        Size 0 gives an empty array.

    Args:
        scale: The standard deviation s in units of the grid, a number > 0 of at most 2^44.
        size: The number of independent draws, an integer >= 0.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of 64-bit integers.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Devroye, "Non-Uniform Random Variate Generation", 1986, II.2 (inversion); Karney, "Sampling
        Exactly from the Normal Distribution", 2016 (the idea of bits on demand).

    Example:
        >>> from hockeystick.release.samplers import rounded_gaussian
        >>> rounded_gaussian(2.0**22, 3).dtype
        dtype('int64')
    """
    return _draw(laws.HALF_NORMAL, scale, 0.5, size, bits)


def rounded_laplace(scale: float, size: int, *, bits: Bits = secret_bits) -> NDArray[np.int64]:
    """Draw ``round(Laplace(b))``, with exactly that distribution if the bits are ideal.

    Guarantees:
        Exact: ``P(|k| >= n) = exp(-(n - 1/2)/b)`` for n >= 1, with a fair sign. Computed as
        ``rounded_gaussian`` is, with ``S(x) = exp(-x)``; ``S + round(Z) = round(S + Z)`` makes an
        integer sum with this noise a function of the Laplace mechanism's output.

    Edge cases:
        Size 0 gives an empty array.

    Args:
        scale: The scale b in units of the grid, a number > 0 of at most 2^44.
        size: The number of independent draws, an integer >= 0.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of 64-bit integers.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Devroye, "Non-Uniform Random Variate Generation", 1986, II.2.

    Example:
        >>> from hockeystick.release.samplers import rounded_laplace
        >>> rounded_laplace(1000.0, 3).shape
        (3,)
    """
    return _draw(laws.EXPONENTIAL, scale, 0.5, size, bits)


def discrete_laplace(scale: float, size: int, *, bits: Bits = secret_bits) -> NDArray[np.int64]:
    """Draw integers with probability proportional to ``exp(-|k|/b)``, exactly.

    Guarantees:
        Exact if the bits are ideal: ``floor(b E)`` of an exponential E is geometric, with
        ``P(n) = (1 - r) r^n`` and ``r = exp(-1/b)``, and the difference of two independent ones
        has ``P(k) = (1 - r)/(1 + r) r^|k|``. Each is computed as ``rounded_gaussian`` is.

    Edge cases:
        Size 0 gives an empty array.

    Args:
        scale: The scale b, a number > 0 of at most 2^44.
        size: The number of independent draws, an integer >= 0.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of 64-bit integers.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms",
        SIAM J. Comput. 2012 (two-sided geometric noise).

    Example:
        >>> from hockeystick.release.samplers import discrete_laplace
        >>> discrete_laplace(2.5, 4).shape
        (4,)
    """
    first = np.abs(_draw(laws.EXPONENTIAL, scale, 0.0, size, bits))
    return first - np.abs(_draw(laws.EXPONENTIAL, scale, 0.0, size, bits))


def _draw(law: laws.Law, scale: float, shift: float, size: int, bits: Bits) -> NDArray[np.int64]:
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

    A candidate comes from the middle of what is known of u; it is right when all of that lies
    between S at the candidate's own boundaries, ``S((n + 1 - shift)/s)`` and ``S((n - shift)/s)``.
    """
    position = Uniform(word >> 1, _POSITION_BITS, bits)
    while True:
        size = _candidate(law, scale, shift, position)
        below = laws.enclosure(law, _boundary(scale, shift, size + 1), position.length)[1]
        above = laws.enclosure(law, _boundary(scale, shift, size), position.length)[0]
        if below <= position.value and position.value + 1 <= above:
            return -size if word & 1 else size
        position.refine()


def _candidate(law: laws.Law, scale: float, shift: float, position: Uniform) -> int:
    """Return the integer that the middle of an interval of u would give, or one next to it."""
    with working_bits(position.length + 64):
        from hockeystick.numerics.multiprecision import mp

        middle = mp.ldexp(2 * position.value + 1, -position.length - 1)
        return int(mp.floor(law.inverse(middle) * mp.mpf(scale) + mp.mpf(shift)))


def _boundary(scale: float, shift: float, size: int) -> Fraction:
    """Return where ``s x + shift`` is an integer."""
    return (size - Fraction(shift)) / Fraction(scale)


@lru_cache(maxsize=4)
def _table(law: laws.Law) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the polynomials of a law's inverse with their bounds."""
    from hockeystick.kernels.inverse_transform import CELL_BITS, LOWEST

    return laws.table(law, LOWEST, CELL_BITS)
