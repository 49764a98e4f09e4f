"""Poisson subsampling of a loss: an increasing map of its values, and mixtures of its masses.

Removing, ``P' = (1-p) Q + p P`` against Q, the loss is ``f(l) = ln(1 - p + p e^l)``; adding,
``P`` against ``(1-p) P + p Q``, it is ``-f(-l)``. Cells map to cells and atoms to atoms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick.numerics import ULP, decimal
from hockeystick.privacy_loss.core.base import Atoms, Masses
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.rates import complement_bounds
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    UncertainEdges,
    log_mixture,
    masses_between,
    mirrored,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hockeystick.kernels.series import Array

    Indices = NDArray[np.signedinteger[Any]]

# Likelihood ratios beyond this are handled as logarithms.
_LARGE: Final = 1e3
# The largest relative error of a likelihood ratio.
_LARGEST_ERROR: Final = 0.05
# Where a loss has only an upper bound it is taken as this, with an error up to the bound.
_LOWEST: Final = -1e9


@final
@dataclass(frozen=True, slots=True)
class SubsamplingMap:
    """The map of losses by Poisson sampling at a rate in (0, 1), in one direction."""

    rate: float | Fraction
    removing: bool

    @property
    def chance(self) -> float:
        """The rate p to within half a unit in the last place."""
        return float(self.rate)

    @property
    def complement(self) -> float:
        """``1 - p``, to within half a unit in the last place of itself."""
        rate = self.rate
        return float(1 - (decimal(rate)))

    def supremum(self, inner: float) -> float:
        """Return an upper bound of the image of losses up to ``inner``."""
        return (
            self._image_upper(inner)
            if self.removing
            else -SubsamplingMap(self.rate, True)._image_lower(-inner)
        )

    def infimum(self, inner: float) -> float:
        """Return a lower bound of the image of losses down to ``inner``."""
        return (
            self._image_lower(inner)
            if self.removing
            else -SubsamplingMap(self.rate, True)._image_upper(-inner)
        )

    def _image_upper(self, loss: float) -> float:
        """Return ``f(l)``, rounded up."""
        if math.isinf(loss):
            return loss if loss > 0.0 else complement_bounds(self.rate)[1]
        value, error = self._forward(np.array([loss]))
        return float(value[0] + error[0]) * (1.0 + math.copysign(ULP, float(value[0])))

    def _image_lower(self, loss: float) -> float:
        """Return ``f(l)``, rounded down."""
        if math.isinf(loss):
            return loss if loss > 0.0 else complement_bounds(self.rate)[0]
        value, error = self._forward(np.array([loss]))
        return float(value[0] - error[0]) * (1.0 - math.copysign(ULP, float(value[0])))

    def atoms(self, inner: Atoms) -> Atoms:
        """Return the images of atoms; the error covers that of the loss as well."""
        if self.removing:
            loss, excess_error = self._forward(inner.loss)
            log_p = inner.log_p - inner.loss + loss
            excess_error = excess_error + 4.0 * ULP * np.abs(inner.loss)
        else:
            minus, excess_error = self._forward(-inner.loss)
            loss, log_p = -minus, inner.log_p
        sizes = np.abs(inner.log_p) + np.abs(inner.loss) + np.abs(loss)
        return Atoms(loss, log_p, inner.error + excess_error + ULP * sizes)

    def masses(self, inner: CellLoss, edges: UncertainEdges) -> Masses:
        """Return the masses between edges of the sampled loss, of the part without atoms."""
        own = masses_between(inner, self.inner_edges(edges))
        log_p, log_q = (own.log_p, own.error), (own.log_q, own.error)
        if self.removing:
            log_p = log_mixture(log_q, self.complement, log_p, self.chance)
        else:
            log_q = log_mixture(log_p, self.complement, log_q, self.chance)
        return Masses(log_p[0], log_q[0], np.maximum(log_p[1], log_q[1]))

    def inner_edges(self, edges: UncertainEdges) -> UncertainEdges:
        """Return the preimages of edges, rounding included."""
        with np.errstate(all="ignore"):
            if self.removing:
                return self._backward(edges)
            return mirrored(self._backward(mirrored(edges)))

    def _forward(self, loss: Array) -> tuple[Array, Array]:
        """Return ``f(l)`` of losses known to 4 ulp, and the error."""
        p, complement = self.chance, self.complement
        with np.errstate(all="ignore"):
            grown = p * np.expm1(np.minimum(loss, 600.0))
            ratio = 1.0 + grown
            middle = np.log1p(grown)
            low = np.log(complement + p * np.exp(np.minimum(loss, 0.0)))
            far = loss + math.log(p) + np.log1p(complement * np.exp(-np.maximum(loss, 600.0)) / p)
            value = np.where(loss > 600.0, far, np.where(grown > -0.5, middle, low))
            share = np.where(loss > 600.0, 1.0, p * np.exp(np.minimum(loss, 600.0)) / ratio)
            cancelled = np.where(grown > -0.5, np.abs(grown) / ratio, 1.0)
            cancelled = np.where(loss > 600.0, np.abs(loss) + abs(math.log(p)), cancelled)
        error = 4.0 * ULP * np.abs(loss) * np.minimum(1.01 * share, 1.0)
        return value, error + ULP * (7.0 * cancelled + 4.0 * np.abs(value))

    def _backward(self, edges: UncertainEdges) -> UncertainEdges:
        """Return ``ln(1 + (e^l' - 1)/p)`` of edges, and of widths ``ln(1 + g (e^w' - 1))``.

        ``g = e^l' / (p e^l)`` at the lower edge. Large likelihood ratios u are logarithms.
        """
        p, given = self.chance, edges.at
        excess = np.expm1(given) / p
        excess_error = (1.0 + p * excess) * edges.error / p + 10.0 * ULP * np.abs(excess)
        relative = excess_error / (1.0 + excess)
        less = -np.expm1(-given)
        log_excess = given + np.log(less) - math.log(p)
        large = excess > _LARGE
        at = np.where(large, log_excess + np.log1p(np.exp(-log_excess)), np.log1p(excess))
        sizes = np.abs(given) + np.abs(np.log(less)) + abs(math.log(p))
        far = edges.error / less + ULP * (4.0 * sizes + 8.0)
        relative = np.where(large, far, relative)
        known = (excess > -1.0) & (relative < _LARGEST_ERROR)
        error = 1.1 * relative + 4.0 * ULP * np.abs(at)
        most = np.log(np.maximum(1.0 + excess, 0.0) + 1.1 * excess_error) + 1e-6
        error = np.where(known, error, most - _LOWEST)
        at = np.where(known, at, _LOWEST)
        below = given + edges.error <= complement_bounds(self.rate)[0]
        at = np.where(below, -math.inf, np.where(given == math.inf, math.inf, at))
        error = np.where(np.isinf(at), 0.0, error)
        growth = np.where(
            large, 1.0 / (less * (1.0 + np.exp(-log_excess))), (1.0 / p + excess) / (1.0 + excess)
        )[:-1]
        width = np.log1p(growth * np.expm1(edges.width))
        ends = np.isinf(at[:-1]) | np.isinf(at[1:])
        merged = np.isinf(at[1:]) & (at[1:] < 0.0)
        width_error = (1.0 + edges.width) * edges.width_error + 2.2 * relative[:-1] + 16.0 * ULP
        return UncertainEdges(
            at,
            error,
            np.where(merged, 0.0, np.where(ends, math.inf, width)),
            np.where(ends, 0.0, np.where(known[:-1], width_error, math.inf)),
        )
