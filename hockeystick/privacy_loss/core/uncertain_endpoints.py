"""Masses between endpoints that carry errors, as maps of a loss with a density produce them."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.base import Array, Atoms, Masses
from hockeystick.privacy_loss.core.cell_loss import CellLoss

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    unsure = (
        np.where(edge_error <= ENDPOINT_TOLERANCE * end, 0.0, edge_error) / np.maximum(width, _TINY)
        + ULP
    )
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
    return (
        inner.uncertain_cells(edges)
        if isinstance(inner, DensityLoss)
        else _by_exact_masses(inner, edges)
    )


def _by_exact_masses(inner: CellLoss, edges: UncertainEdges) -> Masses:
    """Return masses by exact edges: between the innermost and between the outermost positions."""
    first, last = edges.at - edges.error, edges.at + edges.error
    points = np.unique(np.concatenate((first, last)))
    if points.size == 1 or np.isnan(points).any():
        nothing = np.full(edges.at.size - 1, -math.inf)
        return Masses(nothing, nothing.copy(), np.full(edges.at.size - 1, math.inf))
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
