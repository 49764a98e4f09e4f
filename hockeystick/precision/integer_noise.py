"""Symmetric noise on the integers: the loss of shifting it, and its profile, to any precision.

With ``P = p(k)`` and ``Q = p(k + D)`` the loss ``ln p(k)/p(k+D)`` increases in k where p is
log-concave, so that with the tails ``T(k) = p(k) + p(k+1) + ...``

    delta(epsilon) = T(k0) - e^epsilon T(k0 + D),

k0 the least k whose loss exceeds epsilon (Canonne, Kamath and Steinke 2020, theorem 7). As p is
symmetric, exchanging P and Q changes nothing. Long sums are made in integers over a power of two.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from hockeystick.numerics.multiprecision import mp, mpf, working_bits
from hockeystick.precision.profiles import exact, uncancelled

# Guard bits of long recurrences; norms and tables are made for multiples of this number of bits.
_GUARD = 64
_BUCKET = 320
# The sigma below which the norm is a sum.
_FEW = 4
# The range of a table in sigma, and the bits that terms lose within it.
_REACH = 24
_FALLEN = 420
# From this sigma on sums are made by their integrals, up to k = sigma^2 over the bits of a number,
# or over this many: then the terms of the expansion fall below its last bit.
_WIDE = 10_000
_WIDEST = 200
# Tails of Skellam noise below exp of minus this are taken as 0.
_NOTHING = 2000


def _bucket() -> int:
    """Return the current precision, rounded up so that tables serve several precisions."""
    return -(-int(mp.prec) // _BUCKET) * _BUCKET


def discrete_laplace_delta(epsilon: mpf, scale: Fraction, shift: int) -> mpf:
    """Return the profile of discrete Laplace noise, ``P[y] = (1 - t)/(1 + t) t^|y|``."""

    def first(value: mpf) -> int | None:
        # |k + D| - |k| = 2k + D between -D and 0, and D from there on.
        steps = value * exact(scale)
        return int(mp.floor((steps - shift) / 2)) + 1 if steps < shift else None

    return delta_of_shift(epsilon, shift, lambda k: discrete_laplace_tail(scale, k), first)


def discrete_laplace_nodes(
    scale: Fraction, shift: int, first: int, count: int
) -> tuple[list[mpf], list[mpf]]:
    """Return the losses ``(2j - D)/scale``, ``j = first ..``, with their probabilities."""
    unit = 1 / exact(scale)
    t = mp.exp(-unit)
    loss, mass = [], []
    for j in range(first, first + count):
        loss.append((2 * j - shift) * unit)
        ends = j in (0, shift)
        mass.append(t ** (shift - j) * (1 if ends else 1 - t) / (1 + t))
    return loss, mass


def discrete_gaussian_delta(epsilon: mpf, sigma: Fraction, shift: int) -> mpf:
    """Return the profile of discrete Gaussian noise, ``P[y] ~ exp(-y^2 / (2 sigma^2))``."""

    def first(value: mpf) -> int:
        return int(mp.floor(value * exact(sigma * sigma / shift) - mp.mpf(shift) / 2)) + 1

    return delta_of_shift(epsilon, shift, lambda k: discrete_gaussian_tail(sigma, k), first)


def discrete_gaussian_nodes(
    sigma: Fraction, shift: int, first: int, count: int
) -> tuple[list[mpf], list[mpf]]:
    """Return the losses ``(2k + D) D / (2 sigma^2)``, ``k = first ..``, with probabilities."""
    half = exact(1 / (2 * sigma * sigma))
    norm = _gaussian_norm(sigma, _bucket())
    where = range(first, first + count)
    loss = [(2 * k + shift) * shift * half for k in where]
    return loss, [mp.exp(-k * k * half) / norm for k in where]


def discrete_laplace_tail(scale: Fraction, k: int) -> mpf:
    """Return ``P[y >= k]`` of discrete Laplace noise."""
    t = mp.exp(-1 / exact(scale))
    return t**k / (1 + t) if k > 0 else 1 - t ** (1 - k) / (1 + t)


def discrete_gaussian_tail(sigma: Fraction, k: int) -> mpf:
    """Return ``P[y >= k]`` of discrete Gaussian noise."""
    if k <= 0:
        return 1 - discrete_gaussian_tail(sigma, 1 - k)
    norm = _gaussian_norm(sigma, _bucket())
    if _WIDE < sigma and max(k, sigma) * max(_WIDEST, mp.prec) < sigma * sigma:
        return _smooth_sum(sigma, k) / norm
    if k >= _REACH * sigma:
        return _gaussian_sum(sigma, k) / norm
    sums, bits = _gaussian_table(sigma, _bucket())
    return mp.ldexp(mp.mpf(sums[k]), -bits) / norm


def delta_of_shift(
    epsilon: mpf, shift: int, tail: Callable[[int], mpf], first: Callable[[mpf], int | None]
) -> mpf:
    """Return ``T(k0) - e^eps T(k0 + D)``; below 0 from ``1 - e^eps + e^eps delta(-eps)``.

    ``first`` returns k0, or None where delta is 0; both are asked at more than one precision.
    """
    if epsilon < 0:
        return 1 - mp.exp(epsilon) + mp.exp(epsilon) * delta_of_shift(-epsilon, shift, tail, first)

    def difference() -> tuple[mpf, mpf]:
        least = first(epsilon)
        if least is None:
            return mp.zero, mp.zero
        own = tail(least)
        return own, own - mp.exp(epsilon) * tail(least + shift)

    return uncancelled(difference)


@lru_cache(maxsize=16)
def _gaussian_norm(sigma: Fraction, precision: int) -> mpf:
    """Return ``sum over all k of exp(-k^2 / (2 sigma^2))``, for a large sigma by Poisson's sum."""
    with working_bits(precision + _GUARD):
        if sigma < _FEW:
            return 1 + 2 * _gaussian_sum(sigma, 1)
        width = 2 * exact(sigma * sigma) * mp.pi
        dual, k = mp.one, 1
        while mp.exp(-k * k * mp.pi * width) > mp.eps:
            dual += 2 * mp.exp(-k * k * mp.pi * width)
            k += 1
        return mp.sqrt(width) * dual


def _gaussian_sum(sigma: Fraction, k: int) -> mpf:
    """Return ``sum over j >= k of exp(-j^2 / (2 sigma^2))``, for ``k >= 1``."""
    bits = mp.prec + _GUARD + int(sigma * sigma).bit_length()
    total = sum(_gaussian_terms(sigma, k, bits))
    with working_bits(bits + _GUARD):
        value = mp.ldexp(mp.exp(-k * k * exact(1 / (2 * sigma * sigma))) * total, -bits)
    return +value


@lru_cache(maxsize=4)
def _gaussian_table(sigma: Fraction, precision: int) -> tuple[list[int], int]:
    """Return the same sums for all k up to 24 sigma, and a few more, times 2^bits."""
    bits = precision + _FALLEN + _GUARD
    terms = list(_gaussian_terms(sigma, 0, bits))
    return list(accumulate(reversed(terms)))[::-1], bits


def _gaussian_terms(sigma: Fraction, k: int, bits: int) -> Iterator[int]:
    """Yield ``exp((k^2 - j^2) / (2 sigma^2))`` for ``j >= k``, in units of ``2^-bits``.

    Each is the one before times a ratio that itself has a ratio; n steps lose less than ``n^2``
    units. What is below the last unit is a geometric series of fewer than ``sigma^2`` units.
    """
    with working_bits(bits + _GUARD):
        half = exact(1 / (2 * sigma * sigma))
        ratio, fall = (int(mp.ldexp(mp.exp(-n * half), bits)) for n in (2 * k + 1, 2))
    term = 1 << bits
    while term:
        yield term
        term, ratio = term * ratio >> bits, ratio * fall >> bits


def _smooth_sum(sigma: Fraction, k: int) -> mpf:
    """Return the same sum for a large sigma, by Euler and Maclaurin's formula.

    With ``f(y) = exp(-y^2 / (2 sigma^2))`` it is ``Int_k^inf f + f(k)/2 - sum over j <= m of
    B_2j / (2j)! f^(2j-1)(k)``, where ``f^(n)(k) = (-1/sigma)^n He_n(k/sigma) f(k)``, but for at
    most ``4 (2 pi)^-2m Int_k^inf |f^(2m)|``. On a circle of radius r around y, f is at most
    ``exp((r^2 - y^2 + 2 r y) / (2 sigma^2))``, so that Cauchy's estimate with ``r = sigma q`` gives

        Int_k^inf |f^(n)| <= n! (sigma q)^-n e^(q^2) sigma Int_(k/sigma)^inf e^(-(x-q)^2 / 2) dx.

    q is the least of 1 and ``sigma / k``. The last integral is at most ``e^2`` times that at q = 0,
    as the hazard rate of a normal distribution at x >= 0 is at most ``x + 1``.
    """
    with mp.extraprec(_GUARD):
        s = exact(sigma)
        x = k / s
        whole = s * mp.sqrt(mp.pi / 2) * mp.erfc(x / mp.sqrt(2))
        own = mp.exp(-x * x / 2)
        ratio = max(x, mp.one) / (2 * mp.pi * s)
        total, m, rest = whole + own / 2, 0, mp.inf
        hermite, last = x, mp.one
        while rest > mp.eps:
            m += 1
            total += mp.bernoulli(2 * m) / mp.factorial(2 * m) * hermite * own / s ** (2 * m - 1)
            for n in (2 * m - 1, 2 * m):
                hermite, last = x * hermite - n * last, hermite
            rest = 4 * mp.e**3 * mp.factorial(2 * m) * ratio ** (2 * m)
    return +total


def bessel_ratios(variance: Fraction, count: int, precision: int) -> tuple[list[int], int]:
    """Return ``2^b r_k`` for ``k < count``, and b: relative errors are below ``2^-precision``.

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
    return found[::-1], bits


def skellam_delta(epsilon: mpf, variance: Fraction, shift: int) -> mpf:
    """Return the profile of Skellam noise, ``P[k] = e^-v I_k(v)``; 0 where it is below e^-2000.

    It is made of the ratios ``r_k = I_(k+1)(v) / I_k(v)``. All are positive, and ``1 / r_(k-1) =
    2k/v + r_k`` taken downward forgets where it started: no Bessel function is evaluated.
    """

    def tail(k: int) -> mpf:
        if k < 0:
            return 1 - tail(1 - k)
        table = _table(variance, _size(k, variance), _bucket())
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
    table = _table(variance, _size(most, variance), _bucket())
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
        ratios, bits = bessel_ratios(variance, longest, precision + _GUARD)
        fallen = math.fsum(bits - math.log2(ratio) for ratio in ratios)
        one = 1 << (precision + _GUARD + math.ceil(fallen))
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
        p = _table(variance, size, _bucket()).mass
        high = size - 1 - shift
        if p(high) > odds * p(high + shift):
            break
        if high * math.asinh(high / v) - high * high / (math.hypot(high, v) + v) > _NOTHING:
            return None
        size = _size(size, variance)
    return low + bisect(range(low, high), False, key=lambda k: p(abs(k)) > odds * p(abs(k + shift)))
