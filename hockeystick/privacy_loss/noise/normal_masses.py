"""Masses of cells under N(0, 1) as logarithms, with proven errors, however narrow or far out.

Narrow cells are a kernel's; a wider one is a difference of scaled complementary error functions on
the side of the tail, or a sum of error functions where it holds 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.base import Array, Masses
from hockeystick.privacy_loss.core.composition import log_complement
from hockeystick.privacy_loss.core.uncertain_endpoints import UncertainEdges, log_mixture

if TYPE_CHECKING:
    from fractions import Fraction

# An error function of scipy, its argument's round-off included.
_SPECIAL: Final = 36.0 * ULP
# The tail beyond x >= 0 is at most this multiple of the density there.
_MILLS: Final = 1.26


def log_masses(edges: UncertainEdges) -> tuple[Array, Array]:
    """Return ``ln`` of the mass between neighbouring edges, and a bound on each one's error."""
    from hockeystick.kernels import normal_masses

    value, error, is_wide = normal_masses.log_masses(*edges)
    wide = np.flatnonzero(is_wide)
    if wide.size:
        ends = (edges.at[wide], edges.at[wide + 1], edges.error[wide], edges.error[wide + 1])
        with np.errstate(all="ignore"):
            value[wide], error[wide] = _wide(*ends)
    error[np.isnan(error)] = math.inf
    return value, error


def _wide(low: Array, high: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return the masses of cells wider than 0.2, and the errors."""
    value, error = np.empty_like(low), np.empty_like(low)
    right, left = low >= 0.0, high <= 0.0
    middle = ~(right | left)
    value[right], error[right] = _tail(low[right], high[right], first[right], second[right])
    value[left], error[left] = _tail(-high[left], -low[left], second[left], first[left])
    value[middle], error[middle] = _around(
        -low[middle], high[middle], first[middle], second[middle]
    )
    return value, error


def _tail(near: Array, far: Array, shift: Array, far_shift: Array) -> tuple[Array, Array]:
    """Return the masses of cells on the positive side.

    Moving the near edge by d changes the logarithm by at most the hazard rate, itself at most
    ``(near + d + 1) / (1 - r)``, times d; r is the share of the tail that lies beyond the far edge.
    """
    from scipy.special import erfcx

    root = math.sqrt(0.5)
    here = erfcx(root * near)
    gap = 0.5 * (far - near) * (far + near)
    beyond = np.where(np.isinf(far), 0.0, erfcx(root * far) * np.exp(-gap))
    rest = here - beyond
    kept = rest / here
    square = 0.5 * near * near
    value = np.log(0.5 * rest) - square
    round_off = 2.0 * _SPECIAL / kept + ULP * (3.0 * square + 2.0 * np.abs(np.log(rest)) + 8.0)
    sure = shift <= 0.1 * np.minimum(1.0, far - near)
    moved = np.where(sure, 1.2 * (near + shift + 1.0) * shift / kept, math.inf)
    inner = np.maximum(far - far_shift, near)
    sliver = (
        0.8 * np.minimum(far_shift, _MILLS) * np.exp(-0.5 * (inner - near) * (inner + near)) / rest
    )
    sliver = np.where(np.isinf(far), 0.0, sliver)
    return value, round_off + moved + _of_share(sliver)


def _around(left: Array, right: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return the masses of cells from -left to right, which hold 0."""
    from scipy.special import erf

    root = math.sqrt(0.5)
    mass = 0.5 * (erf(root * left) + erf(root * right))
    slivers = np.zeros_like(mass)
    for edge, shift in ((left, first), (right, second)):
        inner = np.maximum(edge - shift, 0.0)
        sliver = 0.4 * np.minimum(shift, _MILLS) * np.exp(-0.5 * inner * inner)
        slivers += np.where(np.isinf(edge), 0.0, sliver)
    value = np.log(mass)
    return value, _SPECIAL + 2.0 * ULP * (1.0 + np.abs(value)) + _of_share(slivers / mass)


def _of_share(share: Array) -> Array:
    """Return the error of a logarithm that a change of the mass by this share makes."""
    return np.where(share < 0.5, 1.4 * share, math.inf)


def moved(edges: UncertainEdges, distance: float) -> UncertainEdges:
    """Return edges moved, with what rounding makes of them."""
    if distance == 0.0:
        return edges
    at = edges.at + distance
    sizes = np.where(np.isfinite(at), np.abs(edges.at) + 4.0 * abs(distance), 0.0)
    return UncertainEdges(at, edges.error + ULP * sizes, edges.width, edges.width_error)


def sampled_masses(
    at: UncertainEdges, rate: float | Fraction, means: tuple[float, float, float]
) -> Masses:
    """Return masses of cells of an output at the first mean, or with this rate at another one.

    That is the second mean under P and the third one under Q.
    """
    rest = math.exp(log_complement(rate))
    middle, own, other = (log_masses(moved(at, -mean)) for mean in means)
    log_p, error_p = log_mixture(middle, rest, own, float(rate))
    log_q, error_q = log_mixture(middle, rest, other, float(rate))
    return Masses(log_p, log_q, np.maximum(error_p, error_q) + 16.0 * ULP)


def gaussian_edges(edges: UncertainEdges, mu: float, side: float) -> UncertainEdges:
    """Return edges of the loss of N(mu, 1) against N(0, 1) as distances from one of the means.

    The loss l is at ``l/mu - mu/2`` from mu (``side`` 1) and at ``l/mu + mu/2`` from 0 (-1); mu is
    known to one unit in the last place.
    """
    with np.errstate(all="ignore"):
        at = edges.at / mu - side * 0.5 * mu
        error = edges.error / mu + 3.0 * ULP * (np.abs(edges.at) / mu + 0.5 * mu)
        error = np.where(np.isinf(edges.at), 0.0, error)
        return UncertainEdges(at, error, edges.width / mu, edges.width_error + 2.0 * ULP)
