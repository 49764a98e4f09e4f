"""Moment generating functions along the lines ``z = c + i k step``, ``k < count``, in mpmath."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from hockeystick.numerics.multiprecision import mp, mpc, mpf
from hockeystick.precision.profiles import exact


def gaussian_line(mu: mpf, c: float, step: float, count: int) -> list[mpc]:
    """Return ``K(z) = mu^2 z (z+1) / 2``, of Gaussian noise."""
    points = [mp.mpc(c, mp.mpf(step) * k) for k in range(count)]
    return [mu * mu * z * (z + 1) / 2 for z in points]


def laplace_line(end: mpf, c: float, step: float, count: int) -> list[mpc]:
    """Return ``ln(((1+z) e^(z e) + z e^(-(1+z) e)) / (1 + 2z))``, of Laplace noise.

    Near 1 the moment loses what ``e^2`` is below 1, which precision makes up for.
    """
    with mp.extraprec(40 + 2 * max(0, -int(mp.mag(end)))):
        points = [mp.mpc(c, mp.mpf(step) * k) for k in range(count)]
        terms = [(1 + z) * mp.exp(z * end) + z * mp.exp(-(1 + z) * end) for z in points]
        values = [mp.log(term / (1 + 2 * z)) for term, z in zip(terms, points, strict=True)]
    return [+value for value in values]


def cgf_line(
    loss: Sequence[mpf], weight: Sequence[mpf], c: float, step: float, count: int
) -> list[mpc]:
    """Return ``ln M`` of losses with weights.

    ``M - 1 = E[e2(z L) + z e2(-L)]`` is summed as ``E[e^(zL) - 1 + z (e^-L - 1)]``: the cancelled
    digits are made up for by precision.
    """
    extra = 40 + 2 * max(0, -min(mp.mag(x) for x in loss if x)) if any(loss) else 40
    with mp.extraprec(min(extra, 400) + count.bit_length()):
        mass = mp.fsum(weight)
        slope = mp.fsum(one * mp.expm1(-x) for x, one in zip(loss, weight, strict=True))
        sums = tilted_line(loss, weight, c, step, count)
        points = [mp.mpc(c, mp.mpf(step) * k) for k in range(count)]
        values = [mp.log(1 + m - mass + z * slope) for m, z in zip(sums, points, strict=True)]
    return [+value for value in values]


def tilted_line(
    loss: Sequence[mpf], weight: Sequence[mpf], c: float, step: float, count: int
) -> list[mpc]:
    """Return ``E[exp(z L)]`` of losses with weights."""
    sizes = [mass * mp.exp(c * x) for x, mass in zip(loss, weight, strict=True)]
    return turned_sums(sizes, [step * x for x in loss], count)


def turned_sums(sizes: Sequence[mpf], angles: Sequence[mpf], count: int) -> list[mpc]:
    """Return ``sum_j sizes[j] e^(i k angles[j])`` for ``k < count``.

    One exponential per node; the rest are its powers, as whole multiples of one unit: so small that
    all roundings together stay below ``mp.eps`` of the largest size.
    """
    guard = 8 + count.bit_length() + len(sizes).bit_length()
    bits = mp.prec + guard
    unit = max((mp.mag(size) for size in sizes if size), default=0) - bits
    with mp.extraprec(guard + 8):
        real = [int(mp.ldexp(size, -unit)) for size in sizes]
        imag = [0] * len(real)
        turns = [tuple(int(mp.ldexp(x, bits)) for x in mp.cos_sin(angle)) for angle in angles]
    sums = []
    for _ in range(count):
        sums.append(mp.mpc(mp.ldexp(sum(real), unit), mp.ldexp(sum(imag), unit)))
        pairs = list(zip(real, imag, turns, strict=True))
        real = [(x * cos - y * sin) >> bits for x, y, (cos, sin) in pairs]
        imag = [(x * sin + y * cos) >> bits for x, y, (cos, sin) in pairs]
    return sums


def log_ratio(p: mpf, mu: mpf, u: mpf) -> mpf:
    """Return ``a(u) = ln(1 - p + p exp(mu u - mu^2/2))``, the loss of the sampled Gaussian."""
    return mp.log1p(p * mp.expm1(mu * u - mu * mu / 2))


def sampled_gaussian_nodes(
    rate: float | Fraction, mu: mpf, removing: bool, first: int, count: int, step: float
) -> tuple[list[mpf], list[mpf]]:
    """Return the loss and its weight at ``u = (first + j) step`` for ``j < count``."""
    p = exact(rate)
    loss, weight = [], []
    for j in range(first, first + count):
        u = j * mp.mpf(step)
        a = log_ratio(p, mu, u)
        density = step * mp.npdf(u)
        loss.append(a if removing else -a)
        weight.append(density * mp.exp(a) if removing else density)
    return loss, weight


def windows(
    first: int, count: int, step: float, edge: float, width: float
) -> tuple[list[mpf], list[mpf]]:
    """Return ``ln W`` and ``ln(1 - W)`` at ``u = (first + j) step`` for ``j < count``.

    ``W = Phi((u - edge) / width)`` separates tail and bulk.
    """
    x = [(j * mp.mpf(step) - edge) / width for j in range(first, first + count)]
    return [log_normal_cdf(one) for one in x], [log_normal_cdf(-one) for one in x]


def log_normal_cdf(x: mpf) -> mpf:
    """Return ``ln Phi(x)`` to full relative precision on either side."""
    far = mp.erfc(abs(x) / mp.sqrt(2)) / 2
    return mp.log1p(-far) if x > 0 else mp.log(far)


def fixed_size_gaussian_line(
    rate: float | Fraction,
    mu: mpf,
    panels: Sequence[tuple[float, float]],
    order: int,
    *,
    c: float,
    step: float,
    count: int,
) -> list[mpc]:
    """Return ``ln M`` of the Gaussian on fixed-size samples, over panels (start, half length).

    ``M - 1`` sums ``phi(u) (e^((1+z) a) - 1) (1 - e^(-z a))``; the cancelled digits are made up for
    by precision.
    """
    p = exact(rate)
    extra = 40 + 2 * max(0, -mp.mag(p * mu)) + count.bit_length()
    with mp.extraprec(min(extra, 400)):
        offsets, weights = gauss_legendre(order, mp.prec)
        mass, sizes, angles = mp.zero, [], []
        for start, half in panels:
            for offset, weight in zip(offsets, weights, strict=True):
                x = start + half * offset
                a = mp.log1p(p * mp.expm1(mu * x))
                density = half * weight * mp.npdf(x + mu / 2)
                mass += density * (1 + mp.exp(a))
                sizes += [density * mp.exp((1 + c) * a), density * mp.exp(-c * a)]
                angles += [step * a, -step * a]
        values = [mp.log(1 + one - mass) for one in turned_sums(sizes, angles, count)]
    return [+value for value in values]


@lru_cache(maxsize=64)
def gauss_legendre(count: int, precision: int) -> tuple[list[mpf], list[mpf]]:
    """Return ``1 + node`` and the weights of Gauss-Legendre on [-1, 1], for an even count."""
    offsets: list[mpf] = []
    weights: list[mpf] = []
    with mp.workprec(precision + 40):
        for k in range(count // 2):
            x, slope = _root(count, mp.cos(mp.pi * (k + mp.mpf(0.75)) / (count + mp.mpf(0.5))))
            offsets += [1 - x, 1 + x]
            weights += [2 / ((1 - x * x) * slope * slope)] * 2
    return [+offset for offset in offsets], [+weight for weight in weights]


def _root(count: int, x: mpf) -> tuple[mpf, mpf]:
    """Return the root of the Legendre polynomial near x, and its derivative there, by Newton."""
    while True:
        value, before = x, mp.one
        for n in range(2, count + 1):
            value, before = ((2 * n - 1) * x * value - (n - 1) * before) / n, value
        slope = count * (before - x * value) / (1 - x * x)
        move = value / slope
        x -= move
        if abs(move) < mp.eps * 2**20:
            return x, slope
