"""Symmetric noise on the integers: the loss of shifting it, and its profile, to any precision.

With ``P = p(k)`` and ``Q = p(k + D)`` the loss ``ln p(k)/p(k+D)`` increases in k where p is
log-concave, so that with the tails ``T(k) = p(k) + p(k+1) + ...``

    delta(epsilon) = T(k0) - e^epsilon T(k0 + D),

k0 the least k whose loss exceeds epsilon (Canonne, Kamath and Steinke 2020, theorem 7). As p is
symmetric, exchanging P and Q changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from mpmath import mp, mpf

from hockeystick._reference.profiles import _uncancelled

# Bits against the round-off of long recurrences, and what counts as nothing beyond the precision.
_GUARD = 64
# Tails of the Skellam distribution below exp of minus this are taken as 0.
_NOTHING = 2000


def discrete_laplace_delta(epsilon: mpf, scale: mpf, shift: int) -> mpf:
    """Return the profile of discrete Laplace noise, ``P[y] = (1 - t)/(1 + t) t^|y|``."""

    def tail(k: int) -> mpf:
        t = mp.exp(-1 / scale)
        return t**k / (1 + t) if k > 0 else 1 - t ** (1 - k) / (1 + t)

    def first(value: mpf) -> int | None:
        # |k + D| - |k| = 2k + D between -D and 0, and D from there on.
        return int(mp.floor((value * scale - shift) / 2)) + 1 if value * scale < shift else None

    return _delta(epsilon, shift, tail, first)


def discrete_laplace_nodes(
    scale: mpf, shift: int, first: int, count: int
) -> tuple[list[mpf], list[mpf]]:
    """Return the losses ``(2j - D)/scale``, ``j = first ..``, with their probabilities."""
    t = mp.exp(-1 / scale)
    loss, mass = [], []
    for j in range(first, first + count):
        loss.append((2 * j - shift) / scale)
        ends = j in (0, shift)
        mass.append(t ** (shift - j) * (1 if ends else 1 - t) / (1 + t))
    return loss, mass


def discrete_gaussian_delta(epsilon: mpf, sigma: mpf, shift: int) -> mpf:
    """Return the profile of discrete Gaussian noise, ``P[y] ~ exp(-y^2 / (2 sigma^2))``."""

    def first(value: mpf) -> int:
        return int(mp.floor(value * sigma * sigma / shift - mp.mpf(shift) / 2)) + 1

    return _delta(epsilon, shift, lambda k: _gaussian_tail(sigma, k), first)


def discrete_gaussian_nodes(
    sigma: mpf, shift: int, first: int, count: int
) -> tuple[list[mpf], list[mpf]]:
    """Return the losses ``(2k + D) D / (2 sigma^2)``, ``k = first ..``, with probabilities."""
    half = 1 / (2 * sigma * sigma)
    norm = 1 + 2 * _gaussian_sums(sigma, mp.prec)[1]
    where = range(first, first + count)
    loss = [(2 * k + shift) * shift * half for k in where]
    return loss, [mp.exp(-k * k * half) / norm for k in where]


def skellam_delta(epsilon: mpf, variance: mpf, shift: int) -> mpf:
    """Return the profile of Skellam noise, ``P[k] = e^-v I_k(v)``; 0 where it is below e^-2000."""

    def tail(k: int) -> mpf:
        table = _skellam_table(variance, _size(abs(k) + 1, variance), mp.prec)
        return table.tail[k] if k >= 0 else 1 - table.tail[1 - k]

    def first(value: mpf) -> int | None:
        return _first_skellam(value, variance, shift)

    return _delta(epsilon, shift, tail, first)


def skellam_nodes(
    variance: mpf, shift: int, first: int, count: int
) -> tuple[list[mpf], list[mpf]]:
    """Return the losses ``ln p(k)/p(k+D)``, ``k = first ..``, with the probabilities."""
    where = range(first, first + count)
    most = max(abs(first), abs(first + count - 1 + shift))
    p = _skellam_table(variance, _size(most, variance), mp.prec).mass
    loss = [mp.log(p[abs(k)] / p[abs(k + shift)]) for k in where]
    return loss, [p[abs(k)] for k in where]


def _delta(
    epsilon: mpf,
    shift: int,
    tail: Callable[[int], mpf],
    first: Callable[[mpf], int | None],
) -> mpf:
    """Return ``T(k0) - e^eps T(k0 + D)``; below 0 from ``1 - e^eps + e^eps delta(-eps)``."""
    if epsilon < 0:
        return 1 - mp.exp(epsilon) + mp.exp(epsilon) * _delta(-epsilon, shift, tail, first)

    def difference() -> tuple[mpf, mpf]:
        least = first(epsilon)
        if least is None:
            return mp.zero, mp.zero
        own = tail(least)
        return own, own - mp.exp(epsilon) * tail(least + shift)

    return _uncancelled(difference)


def _gaussian_tail(sigma: mpf, k: int) -> mpf:
    """Return ``P[y >= k]`` of the discrete Gaussian."""
    sums = _gaussian_sums(sigma, mp.prec)
    norm = 1 + 2 * sums[1]
    if k <= 0:
        return 1 - _gaussian_tail(sigma, 1 - k)
    return (sums[k] if k < len(sums) else _far_sum(sigma, k)) / norm


@lru_cache(maxsize=4)
def _gaussian_sums(sigma: mpf, precision: int) -> list[mpf]:
    """Return ``sum over j >= k of exp(-j^2 / (2 sigma^2))`` for k up to 14 sigma."""
    last = int(14 * sigma) + 2
    with mp.workprec(precision + _GUARD):
        terms = _gaussian_terms(sigma, 0)
        shown = [next(terms) for _ in range(last)]
        sums = accumulate(reversed(shown), initial=_far_sum(sigma, last))
        return list(sums)[:0:-1]


def _far_sum(sigma: mpf, k: int) -> mpf:
    """Return ``sum over j >= k``, ended where the rest is below the precision.

    The ratio of neighbouring terms falls, so that the rest is below that of a geometric series.
    """
    with mp.extraprec(_GUARD):
        total, former = mp.zero, mp.inf
        for term in _gaussian_terms(sigma, k):
            total += term
            if term < former and term * former < mp.eps * total * (former - term):
                return total
            former = term
    raise AssertionError("the terms never end")


def _gaussian_terms(sigma: mpf, k: int) -> Iterator[mpf]:
    """Yield ``exp(-j^2 / (2 sigma^2))`` from j = k on, by ratios that themselves have a ratio."""
    half = 1 / (2 * sigma * sigma)
    term, ratio, fall = mp.exp(-k * k * half), mp.exp(-(2 * k + 1) * half), mp.exp(-2 * half)
    while True:
        yield term
        term, ratio = term * ratio, ratio * fall


class _Table(NamedTuple):
    """``p(k)`` and ``P[y >= k]`` for k = 0, 1, ..."""

    mass: list[mpf]
    tail: list[mpf]


def _size(most: int, variance: mpf) -> int:
    """Return how long a table serves the k asked for, so that few sizes are in use."""
    return 1 << max(most, int(14 * mp.sqrt(variance)), 32).bit_length()


@lru_cache(maxsize=4)
def _skellam_table(variance: mpf, size: int, precision: int) -> _Table:
    """Return the Skellam distribution for ``k < size``, each number to the precision."""
    with mp.workprec(precision + _GUARD + size.bit_length()):
        longest = size
        while True:
            longest += size // 2
            ratios = _bessel_ratios(variance, longest)
            terms = list(accumulate(ratios, lambda term, ratio: term * ratio, initial=mp.one))
            # What is left after the last term is below a geometric series of the last ratio.
            rest = terms[-1] * ratios[-1] / (1 - ratios[-1])
            if rest < mp.eps * terms[size]:
                break
        sums = list(accumulate(reversed(terms)))[::-1]
        norm = 2 * sums[0] - 1
        return _Table([term / norm for term in terms[:size]], [one / norm for one in sums[:size]])


def _bessel_ratios(x: mpf, count: int) -> list[mpf]:
    """Return ``I_(k+1)(x) / I_k(x)`` for ``k < count``, by ``1 / r_(k-1) = 2k/x + r_k``.

    All ratios lie between 0 and 1; the recurrence starts from both ends so far out that they
    agree where the first ratio is wanted.
    """
    extra = 16
    while True:
        low, high = mp.zero, mp.one
        for k in range(count + extra, count - 1, -1):
            low, high = 1 / (2 * k / x + high), 1 / (2 * k / x + low)
        if high - low <= mp.eps * low:
            break
        extra *= 2
    ratios = [low]
    for k in range(count - 1, 0, -1):
        ratios.append(1 / (2 * k / x + ratios[-1]))
    return ratios[::-1]


def _first_skellam(epsilon: mpf, variance: mpf, shift: int) -> int | None:
    """Return the least k whose loss exceeds epsilon >= 0; None where hardly any noise is so large.

    ``P[y >= k] <= exp(-(k asinh(k/v) - sqrt(k^2 + v^2) + v))``, by Chernoff.
    """
    odds = mp.exp(epsilon)
    low, size = -(shift // 2) - 1, _size(shift + 1, variance)
    while True:
        p = _skellam_table(variance, size, mp.prec).mass
        high = size - 1 - shift
        if p[high] > odds * p[high + shift]:
            break
        k = mp.mpf(high)
        if k * mp.asinh(k / variance) - k * k / (mp.hypot(k, variance) + variance) > _NOTHING:
            return None
        size *= 2
    while high - low > 1:
        middle = (low + high) // 2
        exceeds = p[abs(middle)] > odds * p[abs(middle + shift)]
        low, high = (low, middle) if exceeds else (middle, high)
    return high
