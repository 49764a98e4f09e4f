"""Skellam noise, ``P[k] = e^-v I_k(v)``, by the ratios ``r_k = I_(k+1)(v) / I_k(v)`` in integers.

All ratios are positive, and ``1 / r_(k-1) = 2k/v + r_k`` taken downward forgets where it started:
no Bessel function is evaluated, and every error is bounded.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision.integer_noise import GUARD, bucket, delta_of_shift

# Tails below exp of minus this are taken as 0.
_NOTHING = 2000
_REACH = 24


class Fixed(NamedTuple):
    """Numbers as integers over a power of two."""

    values: list[int]
    bits: int


def bessel_ratios(variance: Fraction, count: int, precision: int) -> Fixed:
    """Return ``r_k`` for ``k < count``, each with a relative error below ``2^-precision``.

    The recurrence runs from both ends of [0, 1] until they agree, then on. A step shrinks what was
    wrong before it and adds less than k + 2 units; and ``r_k >= v / (2k + 2 + v)``.
    """
    smallest = int(2 * (count + 1) / variance).bit_length() + 1
    bits = precision + 2 * smallest + 3 * count.bit_length() + 8
    one = 1 << (2 * bits)
    slope = (2 * variance.denominator << bits) // variance.numerator
    extra = 16 + count // 8
    while True:
        low, high = 0, 1 << bits
        for k in range(count + extra, count - 1, -1):
            low, high = one // (slope * k + high), one // (slope * k + low)
        if high - low <= 4 * (count + extra) ** 2:
            break
        extra *= 2
    found = [low]
    for k in range(count - 1, 0, -1):
        low = one // (slope * k + low)
        found.append(low)
    return Fixed(found[::-1], bits)


def skellam_delta(epsilon: mpf, variance: Fraction, shift: int) -> mpf:
    """Return the profile of Skellam noise; 0 where it is below e^-2000."""

    def tail(k: int) -> mpf:
        if k < 0:
            return 1 - tail(1 - k)
        table = _table(variance, _size(k, variance), bucket())
        return mp.mpf(table.tail[k]) / table.norm

    def first(value: mpf) -> int | None:
        return _first(value, variance, shift)

    return delta_of_shift(epsilon, shift, tail, first)


def skellam_nodes(
    variance: Fraction, shift: int, first: int, count: int
) -> tuple[list[mpf], list[mpf]]:
    """Return the losses ``ln p(k)/p(k+D)``, ``k = first ..``, with the probabilities."""
    where = range(first, first + count)
    most = max(abs(first), abs(first + count - 1 + shift))
    table = _table(variance, _size(most, variance), bucket())
    mass = [mp.mpf(table.mass(k)) for k in range(most + 1)]
    loss = [mp.log(mass[abs(k)] / mass[abs(k + shift)]) for k in where]
    return loss, [mass[abs(k)] / table.norm for k in where]


class _Table(NamedTuple):
    """Multiples of ``P[y >= k]`` for k = 0, 1, ..., and of 1."""

    tail: list[int]
    norm: int

    def mass(self, k: int) -> int:
        """Return the multiple of ``p(k)``."""
        return self.tail[k] - self.tail[k + 1]


def _size(most: int, variance: Fraction) -> int:
    """Return the length of the table for the k asked for, one of few sizes."""
    size = _REACH * math.isqrt(int(variance)) + 64
    while size <= most:
        size += size // 2
    return size


@lru_cache(maxsize=4)
def _table(variance: Fraction, size: int, precision: int) -> _Table:
    """Return the distribution for ``k < size``, each number to the precision.

    A product of n ratios loses n units of as many bits as the whole product falls, and more.
    """
    longest = size + 64 + size // 4
    while True:
        ratios, bits = bessel_ratios(variance, longest, precision + GUARD)
        fallen = math.fsum(bits - math.log2(ratio) for ratio in ratios)
        one = 1 << (precision + GUARD + math.ceil(fallen))
        terms = [one]
        for ratio in ratios:
            terms.append(terms[-1] * ratio >> bits)
        # What is left after the last term is below a geometric series of the last ratio.
        rest = terms[-1] * ratios[-1] // ((1 << bits) - ratios[-1]) + 1
        if rest << precision <= terms[size]:
            break
        longest += size // 2
    sums = list(accumulate(reversed(terms)))[::-1]
    return _Table(sums[: size + 1], 2 * sums[0] - one)


def _first(epsilon: mpf, variance: Fraction, shift: int) -> int | None:
    """Return the least k whose loss exceeds epsilon >= 0; None where hardly any noise is so large.

    ``P[y >= k] <= exp(-(k asinh(k/v) - sqrt(k^2 + v^2) + v))``, by Chernoff.
    """
    odds, v = mp.exp(epsilon), float(variance)
    low, size = -(shift // 2) - 1, _size(2 * shift + 2, variance)
    while True:
        p = _table(variance, size, bucket()).mass
        high = size - 1 - shift
        if p(high) > odds * p(high + shift):
            break
        if high * math.asinh(high / v) - high * high / (math.hypot(high, v) + v) > _NOTHING:
            return None
        size = _size(size, variance)
    while high - low > 1:
        middle = (low + high) // 2
        exceeds = p(abs(middle)) > odds * p(abs(middle + shift))
        low, high = (low, middle) if exceeds else (middle, high)
    return high
