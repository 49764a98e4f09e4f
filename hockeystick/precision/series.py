"""Twin of ``kernels.series``: the moment generating function over quadrature nodes."""

from __future__ import annotations

from collections.abc import Sequence

from hockeystick.numerics.multiprecision import mp, mpc, mpf


def cgf_line(
    loss: Sequence[mpf], weight: Sequence[mpf], c: float, step: float, count: int
) -> list[mpc]:
    """Return ``ln M(c + i k step)`` for ``k < count``.

    ``M - 1 = E[e2(z L) + z e2(-L)]`` is summed as ``E[e^(zL) - 1 + z (e^-L - 1)]``: the cancelled
    digits are made up for by precision.
    """
    extra = 40 + 2 * max(0, -min(mp.mag(x) for x in loss if x)) if any(loss) else 40
    with mp.extraprec(min(extra, 400) + count.bit_length()):
        mass = mp.fsum(weight)
        slope = mp.fsum(one * mp.expm1(-x) for x, one in zip(loss, weight, strict=True))
        sizes = [one * mp.exp(c * x) for x, one in zip(loss, weight, strict=True)]
        sums = turned_sums(sizes, [step * x for x in loss], count)
        points = [mp.mpc(c, mp.mpf(step) * k) for k in range(count)]
        values = [mp.log(1 + m - mass + z * slope) for m, z in zip(sums, points, strict=True)]
    return [+value for value in values]


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


def cgf_estimates(
    loss: Sequence[float], log_weight: Sequence[float], orders: Sequence[float]
) -> list[mpf]:
    """Return ``ln M(c)`` at several orders."""
    return [mp.log1p(cumulant_sums(loss, log_weight, c)[0]) for c in orders]


def mgf_line(
    loss: Sequence[mpf], weight: Sequence[mpf], c: float, step: float, count: int
) -> list[mpc]:
    """Return ``M(c + i k step) - 1 = E[e2(z L) + z e2(-L)]`` for ``k < count``."""
    points = [mp.mpc(c, mp.mpf(step) * k) for k in range(count)]
    pairs = list(zip(loss, weight, strict=True))
    return [mp.fsum(w * (mp.expm1(z * x) - z * x + z * e2(-x)) for x, w in pairs) for z in points]


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
