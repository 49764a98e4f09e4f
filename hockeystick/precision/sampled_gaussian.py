"""Twin of ``kernels.sampled_gaussian``: the loss of the Poisson-subsampled Gaussian at nodes."""

from __future__ import annotations

from fractions import Fraction

from mpmath import mp, mpf

from hockeystick.precision.profiles import exact


def nodes(
    rate: float | Fraction, mu: mpf, removing: bool, first: int, count: int, step: float
) -> tuple[list[mpf], list[mpf]]:
    """Return the loss and its weight at ``u = (first + j) step`` for ``j < count``."""
    p = exact(rate)
    loss, weight = [], []
    for j in range(first, first + count):
        u = j * mp.mpf(step)
        a = mp.log1p(p * mp.expm1(mu * u - mu * mu / 2))
        density = step * mp.npdf(u)
        loss.append(a if removing else -a)
        weight.append(density * mp.exp(a) if removing else density)
    return loss, weight
