"""Twin of ``_kernels.fixed_size_gaussian``: its quadrature rule, and M over the same nodes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from mpmath import mp, mpc, mpf

from hockeystick._reference.profiles import exact


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


def log_mgf_line(
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

    ``M - 1`` sums ``phi(u) (e^((1+z) a) - 1) (1 - e^(-z a))``, two exponentials per node; their
    cancelled digits are made up for by precision.
    """
    p = exact(rate)
    extra = 40 + 2 * max(0, -mp.mag(p * mu)) + count.bit_length()
    with mp.extraprec(min(extra, 400)):
        offsets, weights = gauss_legendre(order)
        totals = [mp.mpc(0)] * count
        for start, half in panels:
            for offset, weight in zip(offsets, weights, strict=True):
                x = start + half * offset
                a = mp.log1p(p * mp.expm1(mu * x))
                mass = half * weight * mp.npdf(x + mu / 2)
                forth, back, turn = mp.exp((1 + c) * a), mp.exp(-c * a), mp.expj(step * a)
                for k in range(count):
                    totals[k] += mass * (forth - 1) * (1 - back)
                    forth *= turn
                    back /= turn
        values = [mp.log1p(one) for one in totals]
    return [+value for value in values]
