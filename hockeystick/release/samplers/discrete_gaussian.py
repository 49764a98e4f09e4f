"""The discrete Gaussian: from a table where it is narrow, by rejection where it is wide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick.precision import inverse_transform as laws
from hockeystick.release.samplers._refined import Uniform
from hockeystick.release.samplers.bits import Bits, checked_words, secret_bits
from hockeystick.release.samplers.rounded import DRAWS, SCALE, rounded_gaussian
from hockeystick.release.samplers.tables import Cumulative, DiscreteLaw, draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Tables have some 19 entries per unit of the scale; one in 8 s^2 proposals needs exact arithmetic.
_WIDE: Final = 64.0
_WORD: Final = 64
_GUARD: Final = 64


def discrete_gaussian(scale: float, size: int, *, bits: Bits = secret_bits) -> NDArray[np.int64]:
    """Draw integers with probability proportional to ``exp(-k^2 / (2 s^2))``, exactly.

    Guarantees:
        Exact if the bits are ideal, tails included, for the float s as it is. For s < 64, a table
        of cumulative probabilities is compared with 64 bits, and with more where these do not
        decide. From there on, ``k = round(N(0, s^2))`` is proposed, whose probability is

            q(k) = exp(-k^2 / (2 s^2)) I(k) / (s sqrt(2 pi)),
            I(k) = integral of exp(-t^2 / (2 s^2)) cosh(k t / s^2) over |t| <= 1/2,

        and accepted with probability ``I(0) / I(k) <= 1``: what is accepted has the probability
        wanted. As ``cosh(k t / s^2) <= cosh(k / (2 s^2))`` there, the probability to refuse is at
        most ``cosh(k / (2 s^2)) - 1``; only a uniform number within that of 1 is compared with
        ``I(0) / I(k)`` in interval arithmetic.

    Edge cases:
        Size 0 gives an empty array. The variance is below s^2, by much where s is below 1.

    Args:
        scale: The parameter s, a number > 0 of at most 2^44.
        size: The number of independent draws, an integer >= 0.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of 64-bit integers.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020
        (the distribution; their sampler rejects from geometric noise).

    Example:
        >>> from hockeystick.release.samplers import discrete_gaussian
        >>> discrete_gaussian(3.5, 4).shape
        (4,)
    """
    s = _validate.real("scale", scale, SCALE)
    count = _validate.count("size", size, DRAWS)
    if s < _WIDE:
        return draw(NarrowGaussian(s), count, bits)
    found = rounded_gaussian(s, count, bits=bits)
    again = _refused(found, s, bits)
    while len(again):
        proposed = rounded_gaussian(s, len(again), bits=bits)
        found[again] = proposed
        again = again[_refused(proposed, s, bits)]
    return found


@final
@dataclass(frozen=True, slots=True)
class NarrowGaussian(DiscreteLaw):
    """The discrete Gaussian by its cumulative probabilities."""

    scale: float

    def cumulative(self, bits: int) -> Cumulative:
        """Return sums of the weights ``exp(-k^2 / (2 s^2))``, over their sum.

        Beyond K, ``exp(-k^2 / (2 s^2)) <= exp(-K^2 / (2 s^2)) r^(k - K)`` with
        ``r = exp(-K / s^2)``: a geometric series.
        """
        fine = bits + _GUARD
        variance = Fraction(self.scale) ** 2
        last = math.ceil(self.scale * math.sqrt(2 * math.log(2) * (fine + 2))) + 1
        half = [
            laws.enclosure(laws.EXPONENTIAL, k * k / (2 * variance), fine) for k in range(last + 1)
        ]
        ratio = laws.enclosure(laws.EXPONENTIAL, last / variance, fine)[1]
        tail = half[-1][1] * ratio // ((1 << fine) - ratio) + 1
        weights = [*half[:0:-1], *half]
        lows = list(accumulate(low for low, _ in weights))
        highs = list(accumulate((high for _, high in weights), initial=tail))[1:]
        least, most = lows[-1], highs[-1] + tail
        return Cumulative(
            -last,
            -((-tail << bits) // least),
            tuple((low << bits) // most for low in lows),
            tuple(min(-((-high << bits) // least), 1 << bits) for high in highs),
        )


def _refused(proposed: NDArray[np.int64], s: float, bits: Bits) -> NDArray[np.intp]:
    """Return the places of the proposals that are refused."""
    words = checked_words(bits, len(proposed))
    # cosh(x) - 1 <= 0.51 x^2 for |x| <= 0.3. Here x = k / (2 s^2) is less, as s >= 64, and
    # |k| < 38 s as no u below 2^-1024 is told from 0.
    gap = (proposed / (2 * s * s)) ** 2 * 0.52 + 2.0**-52
    near = np.flatnonzero(words.astype(np.float64) * 2.0**-_WORD >= 1.0 - gap)
    return np.array(
        [i for i in near if not _accepted(int(proposed[i]), s, int(words[i]), bits)], int
    )


def _accepted(k: int, s: float, word: int, bits: Bits) -> bool:
    """Return whether a uniform number is below ``I(0) / I(k)``."""
    return Uniform(word, _WORD, bits).below(lambda count: _ratio(abs(k), s, count))


def _ratio(k: int, s: float, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits I(0) / I(k)``.

    With the mass ``m(k) = S((k - 1/2)/s) - S((k + 1/2)/s)`` of one side, S the half normal's
    survival function, ``I(k)`` is m(k) exp(k^2 / (2 s^2)) up to a factor, and ``I(0)`` twice the
    mass of [0, 1/2], ``1 - S(1/(2 s))``, up to the same.
    """
    if k == 0:
        return 1 << bits, 1 << bits
    exact = Fraction(s)
    fine = bits + _GUARD + 2 * int(k * k / (s * s)) + 2 * math.ceil(math.log2(s))
    low, high = (_survival((2 * k + sign) / (2 * exact), fine) for sign in (-1, 1))
    none = _survival(1 / (2 * exact), fine)
    weight = laws.enclosure(laws.EXPONENTIAL, k * k / (2 * exact**2), fine)
    top = ((1 << fine) - none[1], (1 << fine) - none[0])
    below = (low[0] - high[1], low[1] - high[0])
    return (
        2 * top[0] * weight[0] // below[1] << bits >> fine,
        -(-(-(-2 * top[1] * weight[1] // below[0]) << bits) >> fine),
    )


def _survival(at: Fraction, bits: int) -> tuple[int, int]:
    """Return integers around ``2^bits erfc(x / sqrt 2)``."""
    return laws.enclosure(laws.HALF_NORMAL, at, bits)
