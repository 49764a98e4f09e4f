"""Twin of ``_kernels.series``: the moment generating function over quadrature nodes."""

from __future__ import annotations

from collections.abc import Sequence

from mpmath import mp, mpc, mpf


def log_mgf_line(
    loss: Sequence[mpf], weight: Sequence[mpf], c: float, step: float, count: int
) -> list[mpc]:
    """Return ``ln M(c + i k step)`` for ``k < count``.

    ``M - 1 = E[e2(z L) + z e2(-L)]`` is summed as ``E[e^(zL) - 1 + z (e^-L - 1)]``: the cancelled
    digits are made up for by precision. One exponential per node; the rest are its powers.
    """
    extra = 40 + 2 * max(0, -min(mp.mag(x) for x in loss if x)) if any(loss) else 40
    with mp.extraprec(min(extra, 400) + count.bit_length()):
        totals = [mp.mpc(0)] * count
        slope = mp.zero
        for x, mass in zip(loss, weight, strict=True):
            slope += mass * mp.expm1(-x)
            power = mass * mp.exp(c * x)
            turn = mp.expj(step * x)
            for k in range(count):
                totals[k] += power - mass
                power *= turn
        points = [mp.mpc(c, mp.mpf(step) * k) for k in range(count)]
        values = [mp.log(1 + m + z * slope) for m, z in zip(totals, points, strict=True)]
    return [+value for value in values]
