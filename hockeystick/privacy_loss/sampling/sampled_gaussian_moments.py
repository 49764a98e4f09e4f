"""Cumulants and moment bounds of sampled Gaussian noise: of ``(1-p) N(0, 1) + p N(mu, 1)``.

Cumulants are by quadrature over the output u. Enclosures are from cells of it, of which the masses
carry a bound on their error that covers 32 ulp in scipy's ``ndtr``, the rounding of its arguments
and every reading of the parameters within one unit in the last place; so do the losses, as in the
kernels. Beyond ``v = u - nu >= 20`` standard deviations of either normal, the loss is below
``t = mu u - mu^2/2 <= mu^2/2 + mu v`` and, with ``a = mu^2/2 + |c|``,

    Int (a + mu v)^k phi(v) dv <= (a + 20 mu)^k Int phi(v) e^(k (v-20)/20) dv < 1e-88 (a + 20 mu)^k

for k <= 3: ``phi(20) / (20 - 3/20) < 2.8e-89``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.moments import (
    OUTWARD,
    Cumulants,
    MomentBounds,
    Range,
    SignedCells,
    SignedPart,
    TailBound,
    of_signed_cells,
    of_signed_parts,
)
from hockeystick.privacy_loss.core.base import CGFEstimate

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Standard deviations beyond which nothing counts in cumulants, and nodes on each panel.
_REACH: Final = 14.0
_NODES: Final = 20
# Where cells end, in standard deviations, and where they get wide; how many of both there are.
_END: Final = 21.0
_WIDE: Final = 9.0
_NARROW_CELLS: Final = 60_000
_WIDE_CELLS: Final = 2_000
# What is left beyond the last cell.
_REST: Final = 1e-88


def sampled_cumulants(p: float, mu: float, removing: bool) -> Cumulants:
    """Return those of the mixture against N(0, 1) (removing), or the other way round."""
    left, right = _half_below(p, mu), _half_above(p, mu)
    if removing:
        return of_signed_parts(right, left)
    return of_signed_parts(_swapped(left), _swapped(right))


def symmetric_cumulants(p: float, mu: float, atom: float) -> Cumulants:
    """Return those of the loss of removing where it is positive, mirrored, with an atom at 0."""
    right = _half_above(p, mu)
    return of_signed_parts(right, _swapped(right), atom)


def sampled_moment_bounds(p: float, mu: float, removing: bool) -> MomentBounds:
    """Return those of the mixture against N(0, 1) (removing), or the other way round."""
    left, right = _cells_below(p, mu), _cells_above(p, mu)
    if removing:
        return of_signed_cells(right, left, _of_normals(mu))
    return of_signed_cells(left.swapped(), right.swapped(), _of_normals(mu))


def symmetric_moment_bounds(p: float, mu: float, atom: float) -> MomentBounds:
    """Return those of the loss of removing where it is positive, mirrored, with an atom at 0."""
    right = _cells_above(p, mu)
    # Readings of the rate move 1 - p by an ulp of p.
    slack = OUTWARD * atom + 2.0 * ULP
    none = max(atom - slack, 0.0), atom + slack
    return of_signed_cells(right, right.swapped(), _of_normals(mu), none)


def log_ratio(p: float, mu: float, u: Array) -> Array:
    """Return ``ln(1 - p + p exp(mu u - mu^2/2))``."""
    t = mu * u - 0.5 * mu * mu
    small = np.log1p(p * np.expm1(np.minimum(t, 30.0)))
    large = t + np.log(p + (1.0 - p) * np.exp(-np.maximum(t, 30.0)))
    return np.where(t > 30.0, large, small)


def _half_above(p: float, mu: float) -> SignedPart:
    """Return the outputs at which the mixture is the more likely one; P is the mixture."""
    # The fourth power of a loss below 1 tilts the density by 5 mu; larger losses do not tilt it.
    furthest = max(mu, min(5.0 * mu, 0.5 * mu - math.log(p) / mu))
    return _half(p, mu, 0.5 * mu, furthest + _REACH, 1.0)


def _half_below(p: float, mu: float) -> SignedPart:
    """Return the outputs at which the mixture is the less likely one; P is the mixture."""
    return _half(p, mu, -_REACH, 0.5 * mu, -1.0)


def _half(p: float, mu: float, low: float, high: float, sign: float) -> SignedPart:
    """Return Gauss-Legendre nodes between two outputs on panels that resolve ``ln r``."""
    panels = math.ceil((high - low) * max(mu, 1.0))
    edges = np.linspace(low, high, panels + 1)
    x, w = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 * np.diff(edges)[:, None]
    u = (edges[:-1, None] + half * (1.0 + x)).ravel()
    weight = (half * w).ravel() / math.sqrt(2.0 * math.pi)
    bare, shifted = weight * np.exp(-0.5 * u * u), weight * np.exp(-0.5 * (u - mu) ** 2)
    size = np.maximum(sign * log_ratio(p, mu, u), 0.0)
    return SignedPart(size, (1.0 - p) * bare + p * shifted, bare)


def _swapped(half: SignedPart) -> SignedPart:
    """Return the same with P and Q exchanged."""
    return SignedPart(half.size, half.q, half.p)


def _of_normals(mu: float) -> TailBound:
    """Return what lies beyond the cells of the output."""
    return lambda power, offset: float(
        4.0 * _REST * (1.0 + 0.5 * mu * mu + offset + 20.0 * mu) ** power
    )


def _cells_above(p: float, mu: float) -> SignedCells:
    """Return the outputs at which the mixture is the more likely one; P is the mixture."""
    return _cells(p, mu, [0.5 * mu, mu + _WIDE, mu + _END], 1.0)


def _cells_below(p: float, mu: float) -> SignedCells:
    """Return the outputs at which the mixture is the less likely one; P is the mixture."""
    return _cells(p, mu, [0.5 * mu, -_WIDE, -_END, -math.inf], -1.0)


def _cells(p: float, mu: float, ends: list[float], sign: float) -> SignedCells:
    """Return cells that walk away from ``u = mu/2``, where the loss is 0, through the ends."""
    u = np.concatenate(
        [
            np.linspace(ends[0], ends[1], _NARROW_CELLS + 1),
            np.linspace(ends[1], ends[2], _WIDE_CELLS + 1)[1:],
            ends[3:],
        ]
    )
    size, error = _sizes(p, mu, u, sign)
    # The cells begin where the loss is 0, exactly; it grows from there.
    size[0] = error[0] = 0.0
    sizes = Range(np.maximum(size - error, 0.0)[:-1], (size + error)[1:])
    bare, shifted = _masses(u, 0.0, mu, sign), _masses(u, mu, mu, sign)
    ulps = 4.0 * ULP
    mixture = Range(
        max(1.0 - p - ulps, 0.0) * bare.low + p * (1.0 - ulps) * shifted.low,
        (1.0 - p + ulps) * bare.high + p * (1.0 + ulps) * shifted.high,
    )
    return SignedCells(sizes, mixture, bare)


def _sizes(p: float, mu: float, u: Array, sign: float) -> tuple[Array, Array]:
    """Return ``|ln r|`` and a bound on its error over every reading of the parameters.

    ``d ln r / d t = s``, the odds of having been sampled, and ``d ln r / d ln p = 1 - 1/r``.
    """
    v = np.maximum(u, -1e3)
    size = np.where(np.isinf(u), -math.log1p(-p), sign * log_ratio(p, mu, v))
    ratio = sign * size
    odds = np.where(np.isinf(u), 0.0, np.exp(math.log(p) + mu * v - 0.5 * mu * mu - ratio))
    pull = np.abs(np.expm1(-ratio))
    reach = mu * np.abs(v) + mu * mu + abs(math.log(p)) * (ratio > 0.0)
    return size, ULP * (16.0 * odds * reach + 16.0 * pull + 16.0 * np.abs(size))


def _masses(u: Array, shift: float, mu: float, sign: float) -> Range:
    """Return bounds of the masses of N(shift, 1) between neighbouring points.

    A density is at most ``1 + |v|`` times the smaller tail, which covers arguments that move: those
    of the first point, by ulps of mu, and all of a shifted normal.
    """
    from scipy.special import ndtr

    v = u - shift
    first, last = (v[:-1], v[1:]) if sign > 0.0 else (v[1:], v[:-1])
    flip = np.where(first + last > 0.0, -1.0, 1.0)
    tails = ndtr(flip * first), ndtr(flip * last)
    size = np.where(np.isinf(v), 0.0, np.abs(v))
    errors = ULP * (64.0 + 4.0 * (1.0 + size) * (size + abs(shift) + mu))
    error = np.maximum(errors[:-1], errors[1:]) * (tails[0] + tails[1])
    mass = flip * (tails[1] - tails[0])
    return Range(np.maximum(mass - error, 0.0), np.maximum(mass, 0.0) + error)


def convex_bound(p: float, mu: float, c: float) -> CGFEstimate:
    """Return ``ln(1 - p + p exp(c (c+1) mu^2/2))``, an upper bound of K, and derivatives.

    ``r^w <= 1 - p + p exp(w t)`` where ``r = 1 - p + p exp(t)``, for w outside (0, 1).
    """
    square = mu * mu
    inner = 0.5 * c * (c + 1.0) * square
    slope = (c + 0.5) * square
    grown = inner + math.log(p)
    if inner > 500.0 and grown > 40.0:
        return CGFEstimate(grown + math.log1p(math.exp(-grown)), slope, square)
    if inner > 500.0:
        share = math.exp(grown) / (1.0 + math.exp(grown))
        return CGFEstimate(math.log1p(math.exp(grown)), share * slope, square + slope * slope)
    share = p * math.exp(inner) / (1.0 + p * math.expm1(inner))
    curvature = share * (square + (1.0 - share) * slope * slope)
    return CGFEstimate(math.log1p(p * math.expm1(inner)), share * slope, curvature)
