"""Symmetric noise on the integers: the loss of shifting it, and its profile, to any precision.

With ``P = p(k)`` and ``Q = p(k + D)`` the loss ``ln p(k)/p(k+D)`` increases in k where p is
log-concave, so that with the tails ``T(k) = p(k) + p(k+1) + ...``

    delta(epsilon) = T(k0) - e^epsilon T(k0 + D),

k0 the least k whose loss exceeds epsilon (Canonne, Kamath and Steinke 2020, theorem 7). As p is
symmetric, exchanging P and Q changes nothing. Parameters are fractions; long sums are made in
integers over a power of two.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.numerics.working_precision import working_bits
from hockeystick.precision.profiles import exact, uncancelled

# Guard bits of long recurrences; tables are made for multiples of this number of bits.
GUARD = 64
_BUCKET = 320
# The range of a table in sigma, the bits that terms lose within it, and the size that needs none.
_REACH = 24
_FALLEN = 420
_FEW = 4
# From this sigma on sums are made by their integrals, up to k = sigma^2 over the bits of a number,
# or over this many: then the terms of the expansion fall below its last bit.
_WIDE = 10_000
_WIDEST = 200


def bucket() -> int:
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

    return delta_of_shift(epsilon, shift, lambda k: _gaussian_tail(sigma, k), first)


def discrete_gaussian_nodes(
    sigma: Fraction, shift: int, first: int, count: int
) -> tuple[list[mpf], list[mpf]]:
    """Return the losses ``(2k + D) D / (2 sigma^2)``, ``k = first ..``, with probabilities."""
    half = exact(1 / (2 * sigma * sigma))
    norm = _gaussian_norm(sigma, bucket())
    where = range(first, first + count)
    loss = [(2 * k + shift) * shift * half for k in where]
    return loss, [mp.exp(-k * k * half) / norm for k in where]


def discrete_laplace_tail(scale: Fraction, k: int) -> mpf:
    """Return ``P[y >= k]`` of discrete Laplace noise."""
    t = mp.exp(-1 / exact(scale))
    return t**k / (1 + t) if k > 0 else 1 - t ** (1 - k) / (1 + t)


def discrete_gaussian_tail(sigma: Fraction, k: int) -> mpf:
    """Return ``P[y >= k]`` of discrete Gaussian noise, by a sum without a table."""
    if k <= 0:
        return 1 - discrete_gaussian_tail(sigma, 1 - k)
    return _gaussian_sum(sigma, k) / _gaussian_norm(sigma, bucket())


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


def _gaussian_tail(sigma: Fraction, k: int) -> mpf:
    """Return ``P[y >= k]`` of the discrete Gaussian."""
    if k <= 0:
        return 1 - _gaussian_tail(sigma, 1 - k)
    norm = _gaussian_norm(sigma, bucket())
    if _WIDE < sigma and max(k, sigma) * max(_WIDEST, mp.prec) < sigma * sigma:
        return _smooth_sum(sigma, k) / norm
    if sigma < _FEW or k >= _REACH * sigma:
        return _gaussian_sum(sigma, k) / norm
    sums, bits = _gaussian_table(sigma, bucket())
    return mp.ldexp(mp.mpf(sums[k]), -bits) / norm


@lru_cache(maxsize=16)
def _gaussian_norm(sigma: Fraction, precision: int) -> mpf:
    """Return ``sum over all k of exp(-k^2 / (2 sigma^2))``, for a large sigma by Poisson's sum."""
    with working_bits(precision + GUARD):
        if sigma < _FEW:
            return 1 + 2 * _gaussian_sum(sigma, 1)
        width = 2 * exact(sigma * sigma) * mp.pi
        dual, k = mp.one, 1
        while mp.exp(-k * k * mp.pi * width) > mp.eps:
            dual += 2 * mp.exp(-k * k * mp.pi * width)
            k += 1
        return mp.sqrt(width) * dual


def _gaussian_sum(sigma: Fraction, k: int) -> mpf:
    """Return ``sum over j >= k of exp(-j^2 / (2 sigma^2))``, for ``k >= 1``.

    In units of the first term the n-th is a product of ratios that themselves have a ratio; what is
    below the last unit is a geometric series of fewer than ``sigma^2`` units.
    """
    bits = mp.prec + GUARD + int(sigma * sigma).bit_length()
    with working_bits(bits + GUARD):
        half = exact(1 / (2 * sigma * sigma))
        first = mp.exp(-k * k * half)
        ratio, fall = (int(mp.ldexp(mp.exp(-n * half), bits)) for n in (2 * k + 1, 2))
        total, term = 0, 1 << bits
        while term:
            total += term
            term, ratio = term * ratio >> bits, ratio * fall >> bits
        value = mp.ldexp(first * total, -bits)
    return +value


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
    with mp.extraprec(GUARD):
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


@lru_cache(maxsize=4)
def _gaussian_table(sigma: Fraction, precision: int) -> tuple[list[int], int]:
    """Return ``sum over j >= k of exp(-j^2 / (2 sigma^2))`` for k up to 24 sigma, times 2^bits.

    The same recurrence: n steps lose less than ``n^2`` units.
    """
    last = int(_REACH * sigma) + 1
    bits = precision + _FALLEN + GUARD
    with working_bits(bits + GUARD):
        rest = int(mp.ldexp(_gaussian_sum(sigma, last), bits))
        half = exact(1 / (2 * sigma * sigma))
        term, ratio, fall = (int(mp.ldexp(mp.exp(-n * half), bits)) for n in (0, 1, 2))
    terms = []
    for _ in range(last):
        terms.append(term)
        term, ratio = term * ratio >> bits, ratio * fall >> bits
    return list(accumulate(reversed(terms), initial=rest))[:0:-1], bits
