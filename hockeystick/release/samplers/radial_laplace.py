"""Multivariate Laplace noise rounded to integers, as a product of Gaussians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.release.samplers.bits import Bits, checked_words, secret_bits
from hockeystick.release.samplers.comparisons import NoisyNumber, RealNoise
from hockeystick.release.samplers.rounded import SCALE, rounded_gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIMENSION: Final = whole_numbers("n", 1, (2, 1000))
# Gaussians are known to half of 2^-44 at first, in blocks that one call of the sampler draws.
_FINE: Final = 44
_BLOCK: Final = 1 << 15
# Bits of the ends of a Gaussian whose words were refined.
_FINER: Final = 1024

Ends = Sequence[tuple[int, int]]


class _MoreBitsError(Exception):
    """More bits were asked for than the words of a block."""


def rounded_multivariate_laplace(
    scale: float, dimension: int, *, bits: Bits = secret_bits
) -> NDArray[np.int64]:
    """Draw ``round(Z)``, each coordinate, for Z of the density ``~ exp(-|z|/b)`` on R^n.

    ``Z = b |H| G`` with independent standard Gaussian vectors H of n + 1 and G of n coordinates.

    Guarantees:
        Exact, tails included, if the bits are ideal. Given ``v = b^2 |H|^2``, Z is Gaussian with
        variance v, and v / b^2 has a chi-squared distribution of n + 1 degrees of freedom, with
        density ``~ v^((n-1)/2) exp(-v / (2 b^2))``; the mixture of ``v^(-n/2) exp(-r^2 / (2 v))``
        over it is

            int v^(-1/2) exp(-r^2/(2v) - v/(2b^2)) dv  ~  exp(-r / b).

        Each Gaussian is a function of one uniform number. Bounds of all of them give bounds of each
        coordinate, in integers; where these leave open how a coordinate is rounded, more bits of
        the same uniform numbers are drawn until they decide.

        For integers k, ``k + round(Z) = round(k + Z)``: integers with this noise are a function of
        the mechanism's output.

    Args:
        scale: The scale b in units of the grid, a number > 0 of at most 2^44.
        dimension: The number n of coordinates, an integer >= 1.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        An array of n 64-bit integers.

    Raises:
        ParameterError: If an argument is outside its domain.
        OSError: If the operating system has no random bits to give.

    References:
        Andrews and Mallows, "Scale Mixtures of Normal Distributions", JRSS B 1974 (the mixture).

    Example:
        >>> from hockeystick.release.samplers import rounded_multivariate_laplace
        >>> rounded_multivariate_laplace(2.0**20, 3).shape
        (3,)
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


def _coarse(words: NDArray[np.uint64]) -> Ends:
    """Return integers around ``2^45 z`` for the Gaussian z of each word, or raise."""
    found: list[tuple[int, int]] = []
    for start in range(0, len(words), _BLOCK):
        block = words[start : start + _BLOCK]
        steps = rounded_gaussian(2.0**_FINE, len(block), bits=_only(block))
        found += [(2 * k - 1, 2 * k + 1) for k in steps.tolist()]
    return found


def _only(words: NDArray[np.uint64]) -> Bits:
    """Return a source of these words, all at once, and of no more."""
    left = [words]

    def given(count: int) -> NDArray[np.uint64]:
        if not left:
            raise _MoreBitsError
        return left.pop()

    return given


def _refined(scale: Fraction, words: NDArray[np.uint64], bits: Bits) -> list[int]:
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
    low = math.isqrt(sum(_least_square(*ends) for ends in head))
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


def _least_square(low: int, high: int) -> int:
    """Return the least square of a number between two."""
    return 0 if low <= 0 <= high else min(low * low, high * high)
