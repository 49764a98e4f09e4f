"""Losses whose distribution is known: masses in cells, and atoms.

Moments of a loss from its atoms and cells: for expansions about the normal, and enclosures.

The cells are geometric, so that the loss has a relative uncertainty of less than 1e-3 in each of
them, from 1e-4 standard deviations on.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.bounds.moments import (
    Cumulants,
    MomentBounds,
    Range,
    SignedCells,
    SignedPart,
    TailBound,
    ZCDPLine,
    lowest,
    of_ends,
    of_gaussian,
    of_signed_cells,
    of_signed_parts,
    sixth_power,
    tail_moment,
)
from hockeystick.privacy_loss.core import interval_masses
from hockeystick.privacy_loss.core.base import (
    Atoms,
    CGFEstimate,
    KnownDistribution,
    Masses,
    PrivacyLoss,
)
from hockeystick.privacy_loss.core.interval_masses import Cells as LossCells
from hockeystick.privacy_loss.core.interval_masses import OuterMasses, cells_of, merged_points

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array


# Geometric cells on either side; where they begin, in standard deviations; the least such share of
# the largest loss.
_GEOMETRIC_CELLS: Final = 2**15
_FIRST_SHARE: Final = 1e-4
_LEAST_SHARE: Final = 2.0**-60
# The largest error of a log mass.
_LARGEST_ERROR: Final = 0.1
# A bound on the log mass of unlisted atoms.
_LOG_UNLISTED_MASS: Final = -800.0


def cumulants(loss: KnownDistribution) -> Cumulants:
    """Return the cumulants, with some 6 digits."""
    return of_signed_parts(*signed_parts(loss))


def signed_parts(loss: KnownDistribution) -> tuple[SignedPart, SignedPart, float]:
    """Return the positive losses, the negative ones and the mass at 0, of the discretised loss."""
    cells, _ = _cells(loss)
    atoms = loss.atoms()
    kept = cells.chosen((cells.log_p > -math.inf) & (cells.log_q > -math.inf))
    mean = np.clip(kept.log_p - kept.log_q, kept.low, kept.high)
    losses = np.concatenate((atoms.loss, mean))
    log_p = np.concatenate((atoms.log_p, kept.log_p))
    log_q = np.concatenate((atoms.log_p - atoms.loss, kept.log_q))
    with np.errstate(under="ignore"):
        p, q = np.exp(log_p), np.exp(log_q)
    above, below = losses > 0.0, losses < 0.0
    return (
        SignedPart(losses[above], p[above], q[above]),
        SignedPart(-losses[below], p[below], q[below]),
        float(p[losses == 0.0].sum()),
    )


def moment_bounds(loss: KnownDistribution, sixth_moment_upper: float) -> MomentBounds | None:
    """Return the enclosures from cells, each contributing the range of its integrand.

    None where the masses in or beyond the cells are not accurate enough.
    """
    if not sixth_moment_upper < math.inf:
        return None
    cells, outer = _cells(loss)
    if not bool((cells.error < _LARGEST_ERROR).all()):
        return None
    atoms = loss.atoms()
    unsure = 4.0 * ULP * abs(atoms.loss)
    zero = atoms.log_p[atoms.loss == 0.0] + atoms.error[atoms.loss == 0.0]
    zero_mass = math.fsum(math.exp(one) for one in zero.tolist())
    slack = 2.0 * float(atoms.error[atoms.loss == 0.0].sum()) + 8.0 * ULP
    widened = LossCells(
        cells.low - loss.endpoint_tolerance,
        cells.high + loss.endpoint_tolerance,
        cells.log_p,
        cells.log_q,
        cells.error,
    )
    atom_cells = LossCells(
        atoms.loss - unsure,
        atoms.loss + unsure,
        atoms.log_p,
        atoms.log_p - atoms.loss,
        atoms.error + unsure + 2.0 * ULP * (abs(atoms.log_p) + abs(atoms.loss)),
    )
    at_zero = (max(zero_mass * (1.0 - slack), 0.0), zero_mass) if zero_mass > 0.0 else (0.0, 0.0)
    above, below = (_side(widened, atom_cells, sign) for sign in (1.0, -1.0))
    return of_signed_cells(
        above, below, _tail_bound(outer, sixth_moment_upper, bool(atoms.loss.size)), at_zero
    )


def _cells(loss: KnownDistribution) -> tuple[LossCells, OuterMasses]:
    """Return cells that begin well below the standard deviation of the loss."""
    losses, log_p = merged_points(loss)
    deviation = math.sqrt(float((np.exp(log_p) * losses * losses).sum()))
    farthest = float(np.abs(losses).max())
    share = _FIRST_SHARE * deviation / farthest if farthest > 0.0 else _FIRST_SHARE
    return cells_of(loss, _GEOMETRIC_CELLS, min(max(share, _LEAST_SHARE), _FIRST_SHARE))


def _tail_bound(outer: OuterMasses, sixth: float, atomic: bool) -> TailBound:
    """Return the bound of moments beyond the cells, under either distribution."""
    logs = (outer.low_p, outer.low_q, outer.high_p, outer.high_q)
    mass = math.fsum(math.exp(one) for one in logs)
    if atomic:
        mass += 2.0 * math.exp(0.5 * _LOG_UNLISTED_MASS) ** 2 + 1e-320
    return lambda power, offset: tail_moment(mass, sixth, power, offset)


def _side(widened: LossCells, atom_cells: LossCells, sign: float) -> SignedCells:
    """Return the cells and the atoms on one side of 0, by their distance from it."""
    inside = widened.low + widened.high > 0.0 if sign > 0.0 else widened.low + widened.high < 0.0
    cells, atoms = widened.chosen(inside), atom_cells.chosen(sign * atom_cells.low > 0.0)
    low, high, log_p, log_q, error = (
        np.concatenate(pair) for pair in zip(cells, atoms, strict=True)
    )
    sizes = (low, high) if sign > 0.0 else (-high, -low)
    size = Range(np.maximum(sizes[0], 0.0), sizes[1])
    return SignedCells(size, _masses(log_p, error), _masses(log_q, error))


def _masses(log_mass: Array, error: Array) -> Range:
    """Return the ends of masses."""
    with np.errstate(under="ignore"):
        return Range(np.exp(log_mass - error), np.exp(log_mass + error))


class CellLoss(PrivacyLoss):
    """A loss whose distribution is known: masses in cells, and atoms.

    The loss is finite with probability 1: infinity mass is split off before.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def infimum(self) -> float:
        """The least value that the loss takes, -inf where it has none."""

    @property
    def endpoint_tolerance(self) -> float:
        """The largest error of the edges that masses are computed between, next to an end."""
        return 0.0

    @property
    def unsampled(self) -> CellLoss | None:
        """The loss without sampling, where this is that of a sample by ``SubsamplingMap``."""
        return None

    @property
    def symmetrized_quadrature(self) -> PrivacyLoss | None:
        """The ``SymmetrizedLoss`` of this one, with a quadrature of K; None where there is none."""
        return None

    @abstractmethod
    def atoms(self) -> Atoms:
        """Return the atoms; the unlisted ones have less than ``exp(-800)`` under P and Q."""

    @abstractmethod
    def cells(self, edges: Array) -> Masses:
        """Return the masses of the part without atoms between neighbouring edges.

        Edges ascend strictly; the first may be -inf and the last inf. A mass of 0 is -inf.
        """

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the line by the ends of the loss, or of a Gaussian that dominates it."""
        by_ends = of_ends(self.infimum, self.supremum)
        return lowest((by_ends, of_gaussian(self.dominating_mu_squared)))

    def cumulants(self) -> Cumulants | None:
        return cumulants(self)

    def moment_bounds(self) -> MomentBounds | None:
        return moment_bounds(self, self.sixth_moment_upper)

    @property
    def sixth_moment_upper(self) -> float:
        """An upper bound of ``E[L^6]`` under P and under Q rounding included; inf for none.

        By the largest size of a loss, unless an unbounded one has a bound of its own.
        """
        return sixth_power(max(-self.infimum, self.supremum))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return interval_masses.cgf_estimate(self, c)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K from cells: Jensen below, connect the dots above."""
        return interval_masses.cgf_bounds(self, c)


class UnboundedLoss(CellLoss):
    """A loss that takes values of any size, of either sign."""

    __slots__ = ()

    @property
    def supremum(self) -> float:
        return math.inf

    @property
    def infimum(self) -> float:
        return -math.inf
