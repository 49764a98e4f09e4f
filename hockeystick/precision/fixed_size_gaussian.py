"""Twin of ``kernels.fixed_size_gaussian``: its quadrature rule, and M over the same nodes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hockeystick.numerics.multiprecision import mp, mpc, mpf
from hockeystick.precision.profiles import exact
from hockeystick.precision.series import turned_sums


def gauss_legendre(count: int) -> tuple[list[mpf], list[mpf]]:
    """Return ``1 + node`` and the weights of Gauss-Legendre on [-1, 1], for an even count."""
    offsets: list[mpf] = []
    weights: list[mpf] = []
    with mp.extraprec(40):
        for k in range(count // 2):
            x, slope = _root(count, mp.cos(mp.pi * (k + mp.mpf(0.75)) / (count + mp.mpf(0.5))))
            weight = 2 / ((1 - x * x) * slope * slope)
            offsets += [1 - x, 1 + x]
            weights += [weight, weight]
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


def cgf_line(
    rate: float | Fraction,
    mu: mpf,
    panels: Sequence[tuple[float, float]],
    order: int,
    *,
    c: float,
    step: float,
    count: int,
) -> list[mpc]:
    """Return ``ln M(c + i k step)`` for ``k < count``, over panels (start, half length).

    ``M - 1`` sums ``phi(u) (e^((1+z) a) - 1) (1 - e^(-z a))``; the cancelled digits are made up for
    by precision.
    """
    p = exact(rate)
    extra = 40 + 2 * max(0, -mp.mag(p * mu)) + count.bit_length()
    with mp.extraprec(min(extra, 400)):
        offsets, weights = gauss_legendre(order)
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
