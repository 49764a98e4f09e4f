"""What compiled kernels are held against, in mpmath: quantities by their definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hockeystick.numerics.multiprecision import mp, mpc, mpf
from hockeystick.precision.profiles import exact, reciprocal


def e2(x: mpf) -> mpf:
    """Return ``exp(x) - 1 - x``, with the digits that it cancels made up for."""
    with mp.extraprec(1200):
        value = mp.expm1(x) - x
    return +value


def cumulant_sums(
    loss: Sequence[float], log_weight: Sequence[float], c: float
) -> tuple[mpf, mpf, mpf]:
    """Return ``M(c) - 1``, ``M'(c)`` and ``M''(c)``: ``E[e2(c L) + c e2(-L)]`` and derivatives."""
    value = first = second = mp.zero
    for one, log_mass in zip(loss, log_weight, strict=True):
        x, mass = mp.mpf(one), mp.exp(mp.mpf(log_mass))
        value += mass * (e2(c * x) + c * e2(-x))
        first += mass * (x * mp.expm1(c * x) + e2(-x))
        second += mass * x * x * mp.exp(c * x)
    return value, first, second


def mgf_line(
    loss: Sequence[mpf], weight: Sequence[mpf], c: float, step: float, count: int
) -> list[mpc]:
    """Return ``M(c + i k step) - 1 = E[e2(z L) + z e2(-L)]`` for ``k < count``."""
    points = [mp.mpc(c, mp.mpf(step) * k) for k in range(count)]
    pairs = list(zip(loss, weight, strict=True))
    return [mp.fsum(w * (mp.expm1(z * x) - z * x + z * e2(-x)) for x, w in pairs) for z in points]


def worst_share(found: tuple[Any, Any, Any], truth: list[Any]) -> float:
    """Return the largest true error of a line over the claimed one."""
    shares = [
        abs(mp.mpc(float(re), float(im)) - value) / mp.mpf(float(error))
        for re, im, error, value in zip(*found, truth, strict=True)
    ]
    return float(max(shares))


def bulk_part(
    loss: Sequence[mpf], weight: Sequence[mpf], large: Sequence[mpf], small: Sequence[mpf], c: float
) -> mpf:
    """Return ``A(c) - 1 = E[(1 - W) (exp(c L) - 1)] - E[W]``."""
    terms = zip(loss, weight, large, small, strict=True)
    return mp.fsum(
        mass * (mp.exp(kept) * mp.expm1(c * x) - mp.exp(lost)) for x, mass, lost, kept in terms
    )


def sampled_gaussian_cumulant(rate: float | Fraction, noise: float, order: int) -> mpf:
    """Return ``K(order - 1)`` of removing: the sum over how many ratios are the record's."""
    with mp.workdps(60 + 2 * order):
        p, mu = exact(rate), reciprocal(noise)
        terms = (
            mp.binomial(order, k)
            * ((1 - p) ** (order - k) * p**k)
            * mp.expm1(k * (k - 1) * mu**2 / 2)
            for k in range(2, order + 1)
        )
        return mp.log1p(mp.fsum(terms))


def responses_delta(epsilon: float, runs: int, level: float) -> mpf:
    own, at = mp.mpf(repr(epsilon)), mp.mpf(level)
    likely = 1 / (1 + mp.exp(-own))
    return mp.fsum(
        mp.binomial(runs, k)
        * likely**k
        * (1 - likely) ** (runs - k)
        * max(-mp.expm1(at - (2 * k - runs) * own), 0)
        for k in range(runs + 1)
    )


def total_exponent(
    width: Sequence[mpf], mass: Sequence[mpf], ends: Sequence[int], runs: Sequence[mpf], y: mpf
) -> mpf:
    """Return the sum over groups of uniform densities of ``-runs ln(1 - E[1 - sinc(y s/2)])``.

    Up to ``y s/2 = 3``, where the largest ``|sinc|`` from there on is that one.
    """
    groups = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    left = [
        1 - mp.fsum(m * (1 - mp.sinc(y * s / 2)) for s, m in zip(width[k], mass[k], strict=True))
        for k in groups
    ]
    return -mp.fdot(runs, map(mp.log, left))


def log_mass(low: Any, high: Any) -> mpf:
    """Return ``ln(Phi(high) - Phi(low))``, also of infinite ends.

    On the side of the tail; the digits that the difference cancels are made up for.
    """
    low, high = mp.mpf(low), mp.mpf(high)
    if low + high < 0:
        low, high = -high, -low
    if not low < high:
        return -mp.inf
    lost = 4 * max(0, -mp.mag(high - low)) if mp.isfinite(high) else 0
    with mp.extraprec(40 + lost):
        mass = (mp.erfc(low / mp.sqrt(2)) - mp.erfc(high / mp.sqrt(2))) / 2
        value = mp.log(mass)
    return +value


def narrow(centre: mpf, half: mpf) -> mpf:
    """Return ``ln(Phi(m + a) - Phi(m - a))`` for centre m and half width a."""
    with mp.extraprec(4 * mp.prec):
        low, high = centre - half, centre + half
    return log_mass(low, high)


def low_moments(square: mpf, half: mpf) -> mpf:
    """Return ``E[exp(-t^2/2)] - 1`` for t on (-a, a) with a density as ``cosh(b t/a)``, by b^2."""
    b = mp.sqrt(square)
    moment = mp.quad(lambda s: mp.expm1(-((half * s) ** 2) / 2) * mp.cosh(b * s), [0, 1])
    return moment / power_series(square, 0)


def power_series(square: mpf, n: int) -> mpf:
    """Return ``Int_0^1 s^n cosh(b s) ds`` by b^2."""
    b = mp.sqrt(square)
    return mp.quad(lambda s: s**n * mp.cosh(b * s), [0, 1])


def run_excess(
    gain: Sequence[Sequence[mpf]],
    spans: Sequence[tuple[int, int, int, int]],
    weights: Sequence[tuple[mpf, mpf]],
    comparisons: int,
) -> list[mpf]:
    """Return Z at each point after so many comparisons, from 0; beyond the ends it is as there."""
    last = len(gain[0]) - 1
    excess = [mp.zero] * (last + 1)
    for _ in range(comparisons):
        new = list(excess)
        for (k, start, stop, offset), (low, high) in zip(spans, weights, strict=True):
            for j in range(start, stop):
                first, second = (min(max(j + offset + one, 0), last) for one in (0, 1))
                value = gain[k][j] + low * excess[first] + high * excess[second]
                new[j] = max(new[j], value)
        excess = new
    return excess


def binomial(trials: int, odds: mpf) -> list[mpf]:
    rate = odds / (1 + odds)
    return [
        mp.binomial(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(trials + 1)
    ]


def clones_delta(local: mpf, users: int, epsilon: mpf, overlap: mpf | None = None) -> mpf:
    """Return delta of ``(A + D, C - A + 1 - D)`` against ``(A + 1 - D, C - A + D)``.

    C is the number of n - 1 others that are clones, each with probability ``overlap``, by default
    ``2 / (e^local + 1)``; A of them are of the first kind, and so is D with probability
    ``e^local / (e^local + 1)``.
    """
    odds, factor = mp.exp(local), mp.exp(epsilon)
    overlap = 2 / (odds + 1) if overlap is None else overlap
    gain, loss = odds - factor, factor * odds - 1
    total = mp.zero
    for clones, mass in enumerate(binomial(users - 1, overlap / (1 - overlap))):
        excess = mp.zero
        # P is above Q only where more than half of the reports are of the first kind.
        for x in range(clones // 2 + 1, clones + 2):
            first, second = math.comb(clones, x - 1), math.comb(clones, x)
            excess += max(gain * first - loss * second, 0)
        total += mass * excess / (odds + 1) / mp.mpf(2) ** clones
    return total
