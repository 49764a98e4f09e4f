"""Twin of ``kernels.series``: the moment generating function over quadrature nodes."""

from __future__ import annotations

from collections.abc import Sequence

from mpmath import mp, mpc, mpf


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
