"""Losses whose distribution is known: masses in cells, and atoms."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

from hockeystick.numerics import Ball
from hockeystick.privacy_loss.bounds.cumulants import Cumulants
from hockeystick.privacy_loss.bounds.moment_bounds import MomentBounds
from hockeystick.privacy_loss.bounds.sixth_moments import sixth_power
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, lowest, of_ends, of_gaussian
from hockeystick.privacy_loss.core import interval_masses, interval_moments
from hockeystick.privacy_loss.core.base import Atoms, CGFEstimate, Masses, PrivacyLoss

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array


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
        return interval_moments.cumulants(self)

    def moment_bounds(self) -> MomentBounds | None:
        return interval_moments.moment_bounds(self, self.sixth_moment_upper)

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
