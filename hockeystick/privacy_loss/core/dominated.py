"""Losses of which only a bound is known: a dominating loss, and the loss of a concrete case."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from hockeystick.numerics import Ball
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine
from hockeystick.privacy_loss.core.base import Atoms, CGFEstimate, Masses, PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array


@final
@dataclass(frozen=True, slots=True)
class DominatedLoss(CellLoss):
    """A loss that ``above`` dominates, while some data and queries reach ``below``.

    Everything but ``attained`` is that of the dominating loss; None stands for no case at all.
    """

    above: CellLoss
    below: PrivacyLoss | None

    @property
    def attained(self) -> PrivacyLoss | None:
        """The loss of the concrete case."""
        return self.below

    @property
    def closed_form_dominating_loss(self) -> PrivacyLoss:
        """The dominating loss, or the one with a closed form that dominates it."""
        return self.above.closed_form_dominating_loss

    @property
    def infimum(self) -> float:
        """That of the dominating loss."""
        return self.above.infimum

    @property
    def supremum(self) -> float:
        """That of the dominating loss."""
        return self.above.supremum

    @property
    def displacement(self) -> float:
        """That of the dominating loss."""
        return self.above.displacement

    @property
    def clt_mu_squared(self) -> float:
        """That of the dominating loss."""
        return self.above.clt_mu_squared

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        """That of the dominating loss."""
        return self.above.dominating_mu_squared

    def atoms(self) -> Atoms:
        """Return those of the dominating loss."""
        return self.above.atoms()

    def cells(self, edges: Array) -> Masses:
        """Return those of the dominating loss."""
        return self.above.cells(edges)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return those of the dominating loss."""
        return self.above.cgf_estimate(c)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K of the dominating loss."""
        return self.above.cgf_bounds(c)

    def zcdp_line(self) -> ZCDPLine | None:
        """Return that of the dominating loss."""
        return self.above.zcdp_line()

    @property
    def sixth_moment_upper(self) -> float:
        """That of the dominating loss."""
        return self.above.sixth_moment_upper
