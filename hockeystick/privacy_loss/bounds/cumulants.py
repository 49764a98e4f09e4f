"""The first four cumulants of a loss, under P and under Q, for Edgeworth expansions.

Fast and unproven; ``moment_bounds`` has enclosures. The mean of a small loss is of second order in
it, so it is never a difference: with ``L = ln dP/dQ`` and ``k(y) = e^-y - 1 + y``,
``l(y) = e^-y (e^y - 1 - y)``, both >= 0 for ``y >= 0``,

     E_P[L] = E_P[k(L); L > 0] + E_Q[l(-L); L < 0],
    -E_Q[L] = E_P[l(L); L > 0] + E_Q[k(-L); L < 0].

These are ``E_P[e^-L - 1 + L]`` and ``E_Q[e^L - 1 - L]``, as ``E_P[e^-L] = 1 = E_Q[e^L]``, with the
measure changed where an exponential would grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array


class FourCumulants(NamedTuple):
    """Mean, variance, and the third and fourth cumulants."""

    mean: float
    variance: float
    third: float
    fourth: float


class Cumulants(NamedTuple):
    """The cumulants of a loss under each of its two distributions."""

    under_p: FourCumulants
    under_q: FourCumulants


class SignedPart(NamedTuple):
    """The part of one sign of a discretised loss: ``|L|``, and the weights under P and Q."""

    size: Array
    p: Array
    q: Array


def of_signed_parts(above: SignedPart, below: SignedPart, zero_mass: float = 0.0) -> Cumulants:
    """Return the cumulants given the positive losses, the negative ones and the mass at 0."""
    near, far = mean_integrands(above.size), mean_integrands(below.size)
    mean_p = float((above.p * near[0]).sum() + (below.q * far[1]).sum())
    mean_q = float((above.p * near[1]).sum() + (below.q * far[0]).sum())
    under_p = _cumulants((above.size, above.p), (below.size, below.p), zero_mass, mean_p)
    under_q = _cumulants((above.size, above.q), (below.size, below.q), zero_mass, -mean_q)
    return Cumulants(under_p, under_q)


def mean_integrands(size: Array) -> tuple[Array, Array]:
    """Return ``k`` and ``l`` of the module's text, to full relative precision, for y >= 0.

    They increase with y; beyond 0.5 nothing cancels, and below it the series of e^y does not.
    """
    small = np.minimum(size, 0.5)
    plus, minus = np.ones_like(small), np.ones_like(small)
    for order in range(20, 2, -1):
        plus, minus = 1.0 + small / order * plus, 1.0 - small / order * minus
    square = 0.5 * small * small
    is_small = size <= 0.5
    k = np.where(is_small, square * minus, np.expm1(-size) + size)
    rest = -np.expm1(-size) - size * np.exp(-size)
    return k, np.where(is_small, np.exp(-small) * square * plus, rest)


def _cumulants(
    above: tuple[Array, Array], below: tuple[Array, Array], zero_mass: float, mean: float
) -> FourCumulants:
    """Return the cumulants of a discretised loss, given its mean."""
    up, down = above[0] - mean, -below[0] - mean
    second, third, fourth = (
        float((above[1] * up**k).sum() + (below[1] * down**k).sum()) + zero_mass * (-mean) ** k
        for k in (2, 3, 4)
    )
    return FourCumulants(mean, second, third, fourth - 3.0 * second * second)
