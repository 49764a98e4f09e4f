"""Poisson numbers, and Skellam noise as the difference of two."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.numerics.working_precision import integers_around, interval_bits
from hockeystick.release.samplers.bits import Bits, secret_bits
from hockeystick.release.samplers.rounded import DRAWS
from hockeystick.release.samplers.tables import Cumulative, DiscreteLaw, draw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A table has some 20 sqrt(mean) entries, of some microseconds each.
MEAN: Final = Domain(symbol="lambda", low=0, high=2.0**30, low_open=True, typical=(1, 10**6))
# Of a smaller float the half need not be a float.
VARIANCE: Final = Domain(symbol="mu", low=2.0**-1021, high=2.0**31, typical=(1, 10**6))
_GUARD: Final = 64
# From here on Stirling's series gains more than ten bits with every term.
_STIRLING: Final = 1000


def poisson(mean: float, size: int, *, bits: Bits = secret_bits) -> NDArray[np.int64]:
    """Draw Poisson numbers, ``P(k) = exp(-lambda) lambda^k / k!``, exactly.

    Guarantees:
        Exact if the bits are ideal, tails included, for the float lambda as it is: 64 bits are
        compared with a table of cumulative probabilities that were rounded down and up, and more
        bits with finer tables where these do not decide.

    Edge cases:
        Size 0 gives an empty array. The first draw of a mean makes its table.

    Args:
        mean: The mean lambda, a number > 0 of at most 2^30. Sums of draws have sums of means.
        size: The number of independent draws, an integer >= 0.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of 64-bit integers.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Devroye, "Non-Uniform Random Variate Generation", 1986, III.2 (inversion).

    Example:
        >>> from hockeystick.release.samplers import poisson
        >>> poisson(10.0, 4).shape
        (4,)
    """
    known = _validate.real("mean", mean, MEAN)
    return draw(Poisson(known), _validate.count("size", size, DRAWS), bits)


def skellam(variance: float, size: int, *, bits: Bits = secret_bits) -> NDArray[np.int64]:
    """Draw the difference of two independent Poisson numbers of mean ``variance / 2``, exactly.

    Guarantees:
        Exact if the bits are ideal, as each Poisson number is; half of a float is a float.

    Edge cases:
        Size 0 gives an empty array.

    Args:
        variance: The variance mu, a number from 2^-1021 to 2^31.
        size: The number of independent draws, an integer >= 0.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of 64-bit integers.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Agarwal, Kairouz and Liu, "The Skellam Mechanism for Differentially Private Federated
        Learning", NeurIPS 2021 (the noise).

    Example:
        >>> from hockeystick.release.samplers import skellam
        >>> skellam(20.0, 4).shape
        (4,)
    """
    mean = _validate.real("variance", variance, VARIANCE) / 2
    return poisson(mean, size, bits=bits) - poisson(mean, size, bits=bits)


@final
@dataclass(frozen=True, slots=True)
class Poisson(DiscreteLaw):
    """A Poisson law by its cumulative probabilities."""

    mean: float

    def cumulative(self, bits: int) -> Cumulative:
        """Return sums of probabilities, from the mode by ``P(k + 1) = P(k) lambda / (k + 1)``.

        Each step rounds the lower bounds down and the upper ones up. What is beyond the least and
        the largest number listed is bounded by a geometric series.
        """
        fine = bits + _GUARD
        top, bottom = self.mean.as_integer_ratio()
        mode = int(self.mean)
        start = point_mass(self.mean, mode, fine)
        upper, _ = _run(start, lambda i: (top, bottom * (mode + i)), mode, down=False)
        lower, below = _run(start, lambda i: (bottom * (mode + 1 - i), top), mode, down=True)
        terms = [*reversed(lower), start, *upper]
        lows = accumulate(low for low, _ in terms)
        highs = list(accumulate((high for _, high in terms), initial=below))[1:]
        return Cumulative(
            mode - len(lower),
            -(-below >> _GUARD),
            tuple(low >> _GUARD for low in lows),
            tuple(min(-(-high >> _GUARD), 1 << bits) for high in highs),
        )


def _run(
    start: tuple[int, int], ratio: Callable[[int], tuple[int, int]], mode: int, *, down: bool
) -> tuple[list[tuple[int, int]], int]:
    """Return bounds of the terms on one side of the mode, and of the sum of those not listed.

    The i-th term is the one before times ``ratio(i)``, which falls with i. Downward there are as
    many as the mode.
    """
    terms: list[tuple[int, int]] = []
    low, high = start
    while not (down and len(terms) == mode):
        top, bottom = ratio(len(terms) + 1)
        if high >> (_GUARD // 2) == 0 and top < bottom:
            return terms, -(-high * top // (bottom - top))
        low, high = low * top // bottom, -(-high * top // bottom)
        terms.append((low, high))
    return terms, 0


def point_mass(mean: float, k: int, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits exp(-lambda) lambda^k / k!``, in interval arithmetic."""
    from hockeystick.numerics.multiprecision import iv

    with interval_bits(bits + _GUARD + 2 * max(k, 2).bit_length() + 64):
        log_factorial = _log_factorial(k, bits + _GUARD)
        log_mass = k * iv.log(iv.mpf(mean)) - iv.mpf(mean) - log_factorial
        return integers_around(iv.exp(log_mass) * iv.mpf(2) ** bits)


def _log_factorial(k: int, bits: int) -> Any:
    """Return an interval around ``ln k!``, by Stirling's series where k is large.

    The series envelops: what is left out is between 0 and the first term left out.
    """
    from hockeystick.numerics.multiprecision import iv, mp

    if k < _STIRLING:
        return iv.log(iv.mpf(math.factorial(k)))
    total = (k + iv.mpf(0.5)) * iv.log(k) - k + iv.log(2 * iv.pi) / 2
    for j in count(1):
        top, bottom = mp.bernfrac(2 * j)
        term = iv.mpf(int(top)) / (int(bottom) * 2 * j * (2 * j - 1) * k ** (2 * j - 1))
        if abs(term).b < iv.mpf(2) ** -bits:
            return total + term * iv.mpf([0, 1])
        total += term
    raise AssertionError
