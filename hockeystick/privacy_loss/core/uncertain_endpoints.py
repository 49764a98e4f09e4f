"""Masses between endpoints that carry errors, as maps of a loss with a density produce them."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hockeystick.kernels import normal_masses
from hockeystick.kernels.jumps import log_normal_cdf
from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.base import Array, Atoms, FarMasses, Masses
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import log_complement

Indices = NDArray[np.signedinteger[Any]]
_TINY: Final = 1e-300
# The largest move of an edge next to the end of a loss, relative to the end.
ENDPOINT_TOLERANCE: Final = 16.0 * ULP


class UncertainEdges(NamedTuple):
    """Ascending edges with a bound on each one's error, and the widths between them.

    Differences of neighbouring edges cancel, so that the widths are stored, with a bound on the
    relative error of each. The error of infinite edges is 0.
    """

    at: Array
    error: Array
    width: Array
    width_error: Array


class DensityLoss(CellLoss):
    """A loss with a density, whose masses are known between uncertain edges."""

    __slots__ = ()

    def atoms(self) -> Atoms:
        return no_atoms()

    @abstractmethod
    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        """Return the masses between the true edges, the uncertainty of the edges included."""

    def cells(self, edges: Array) -> Masses:
        return self.uncertain_cells(exact_edges(edges))


def exact_edges(edges: Array) -> UncertainEdges:
    """Return edges that are exactly these floats."""
    at = np.asarray(edges, dtype=np.float64)
    zero = np.zeros_like(at)
    return UncertainEdges(at, zero, np.diff(at), np.full(at.size - 1, ULP))


def edges_at(at: Array, error: Array) -> UncertainEdges:
    """Return edges whose widths are known no better than their differences."""
    width = np.diff(at)
    lost = np.where(np.isinf(width), 0.0, (error[1:] + error[:-1]) / width + ULP)
    return UncertainEdges(at, error, width, lost)


def cut_edges(edges: UncertainEdges, end: float) -> UncertainEdges:
    """Return edges cut to the range of a loss from -end to end.

    Rounding hides whether an edge lies next to an end or beyond it: an error of at most
    ``ENDPOINT_TOLERANCE`` ends counts as a move of the edge, not as an error of the mass.
    """
    size = np.abs(edges.at)
    beyond = size >= end
    at = np.clip(edges.at, -end, end)
    sure = beyond & ((size - edges.error >= end) | (edges.error <= ENDPOINT_TOLERANCE * end))
    error = np.where(sure, 0.0, np.where(beyond, math.inf, edges.error))
    cut = beyond[:-1] | beyond[1:]
    width = np.where(cut, np.diff(at), edges.width)
    edge_error = error[:-1] + error[1:]
    counted = np.where(edge_error <= ENDPOINT_TOLERANCE * end, 0.0, edge_error)
    unsure = counted / np.maximum(width, _TINY) + ULP
    return UncertainEdges(at, error, width, np.where(cut, unsure, edges.width_error))


def no_atoms() -> Atoms:
    """Return the atoms of a loss without any."""
    return Atoms(np.empty(0), np.empty(0), np.empty(0))


def log_mixture(
    first: tuple[Array, Array], weight: float, second: tuple[Array, Array], other: float
) -> tuple[Array, Array]:
    """Return ``ln(weight m + other m')`` of two masses given as logarithm and error, with error.

    The weights are positive and known to within half a unit in the last place.
    """
    high, low = np.log(weight) + first[0], np.log(other) + second[0]
    value = np.logaddexp(high, low)
    # The error of the smaller summand is weighted by its share.
    share = np.exp(np.minimum(high, low) - np.maximum(value, -1e300))
    larger = np.where(high >= low, first[1], second[1])
    smaller = np.where(high >= low, second[1], first[1])
    with np.errstate(invalid="ignore"):
        counted = np.where(share > 0.0, share * np.expm1(np.minimum(smaller, 700.0)), 0.0)
    size = np.where(np.isfinite(value), np.abs(value), 0.0)
    logs = abs(float(np.log(weight))) + abs(float(np.log(other)))
    round_off = np.where(value > -math.inf, ULP * (4.0 * size + 2.0 * logs + 8.0), 0.0)
    return value, larger + counted + round_off


def mirrored(edges: UncertainEdges) -> UncertainEdges:
    """Return the edges of minus the loss."""
    return UncertainEdges(
        -edges.at[::-1], edges.error[::-1], edges.width[::-1], edges.width_error[::-1]
    )


def masses_between(inner: CellLoss, edges: UncertainEdges) -> Masses:
    """Return the masses of a loss between uncertain edges."""
    if isinstance(inner, DensityLoss):
        return inner.uncertain_cells(edges)
    # By exact edges: between the innermost and between the outermost positions.
    first, last = edges.at - edges.error, edges.at + edges.error
    points = np.unique(np.concatenate((first, last)))
    if points.size == 1 or np.isnan(points).any():
        nothing = np.full(edges.at.size - 1, -math.inf)
        return Masses(nothing, nothing.copy(), -nothing)
    fine = inner.cells(points)
    ends = (np.searchsorted(points, first), np.searchsorted(points, last))
    logs, errors = [], np.zeros(edges.at.size - 1)
    for log in (fine.log_p, fine.log_q):
        most = _log_sums(log, ends[0][:-1], ends[1][1:])
        least = _log_sums(log, ends[1][:-1], ends[0][1:])
        same = most == least
        half = np.where(same, 0.0, 0.5 * (most - np.where(same, 0.0, least)))
        logs.append(np.where(np.isfinite(half), most - half, most))
        errors = np.maximum(errors, half)
    with np.errstate(invalid="ignore"):
        worst = _log_sums(fine.error, ends[0][:-1], ends[1][1:], np.maximum)
    size = np.where(np.isfinite(logs[0]), np.abs(logs[0]), 0.0)
    errors = errors + np.maximum(worst, 0.0) + ULP * (8.0 + 4.0 * size)
    return Masses(logs[0], logs[1], np.where(logs[0] > -math.inf, errors, 0.0))


def _log_sums(logs: Array, start: Indices, end: Indices, joined: np.ufunc | None = None) -> Array:
    """Return ``ln sum e^log`` over ranges; -inf for an empty one."""
    padded = np.append(logs, -math.inf)
    bounds = np.stack((start, np.maximum(end, start)), axis=1).ravel()
    found = (joined or np.logaddexp).reduceat(padded, bounds)[::2]
    return np.asarray(np.where(end > start, found, -math.inf))


# An error function of scipy, its argument's round-off included.
_SPECIAL: Final = 36.0 * ULP
# The tail beyond x >= 0 is at most this multiple of the density there.
_MILLS: Final = 1.26


def log_masses(edges: UncertainEdges) -> tuple[Array, Array]:
    """Return ``ln`` of the mass between neighbouring edges, and a bound on each one's error."""
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
    fall = np.exp(-0.5 * (inner - near) * (inner + near))
    sliver = 0.8 * np.minimum(far_shift, _MILLS) * fall / rest
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
    found = Masses.of(*(log_mixture(middle, rest, one, float(rate)) for one in (own, other)))
    return found._replace(error=found.error + 16.0 * ULP)


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


def far_masses(p: float, mu: float, edge: float, width: float) -> FarMasses:
    """Return those beyond a window: ``u + width N(0, 1)`` is a normal of variance ``1 + width^2``.

    P is ``(1-p) N(0, 1) + p N(mu, 1)`` and Q is N(0, 1). ``J_Q = Phi(-edge/s)`` and
    ``J_P = (1-p) J_Q + p Phi((mu-edge)/s)``, ``s = sqrt(1 + width^2)``.
    """
    deviation = math.sqrt(1.0 + width * width)
    low, high = -edge / deviation, (mu - edge) / deviation
    log_q, log_moved = log_normal_cdf(low), log_normal_cdf(high)
    log_excess = math.log(p) + log_moved + math.log(-math.expm1(min(log_q - log_moved, -1e-300)))
    # d ln Phi / dx is at most 1 + max(-x, 0); the difference of two logs loses digits.
    reach = abs(edge) + mu
    one = ULP * (24.0 + 8.0 * (2.0 + reach) * reach) + (2e-8 if reach > 30.0 else 0.0)
    gap = -math.expm1(min(log_q - log_moved, -1e-300))
    error = 2.0 * one / gap + 8.0 * ULP
    log_p = max(log_q, log_excess)
    log_p += math.log1p(math.exp(min(log_q, log_excess) - log_p))
    return FarMasses(log_p, log_q, log_excess, error)
