"""Losses known by bounds only: a dominating loss, and an attained one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, final

from hockeystick.numerics import Ball
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine
from hockeystick.privacy_loss.core.base import AnalyticLoss, Atoms, CGFEstimate, Masses, PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.registry import DominatingPair

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array


@final
@dataclass(frozen=True, slots=True)
class DominatedLoss(CellLoss):
    """A loss that ``dominating`` dominates; some data and queries have ``attained_case``.

    Everything but ``attained`` is that of the dominating loss; None: no case is known.
    """

    dominating: CellLoss
    attained_case: PrivacyLoss | None
    response: float = 0.0

    @property
    def attained_response(self) -> float:
        """The epsilon of a response that some data have, which need not be those of the case."""
        return self.response

    @property
    def attained(self) -> PrivacyLoss | None:
        return self.attained_case

    @property
    def without_attained(self) -> DominatedLoss:
        return replace(self, attained_case=None, response=0.0)

    @property
    def analytic(self) -> AnalyticLoss | None:
        return self.dominating.analytic

    @property
    def closed_form_dominating_loss(self) -> PrivacyLoss:
        """The dominating loss, or the one with a closed form that dominates it."""
        return self.dominating.closed_form_dominating_loss

    @property
    def infimum(self) -> float:
        return self.dominating.infimum

    @property
    def supremum(self) -> float:
        return self.dominating.supremum

    @property
    def endpoint_tolerance(self) -> float:
        return self.dominating.endpoint_tolerance

    @property
    def clt_mu_squared(self) -> float:
        return self.dominating.clt_mu_squared

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        return self.dominating.dominating_mu_squared

    def atoms(self) -> Atoms:
        return self.dominating.atoms()

    def cells(self, edges: Array) -> Masses:
        return self.dominating.cells(edges)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return self.dominating.cgf_estimate(c)

    def cgf_bounds(self, c: float) -> Ball:
        return self.dominating.cgf_bounds(c)

    def zcdp_line(self) -> ZCDPLine | None:
        return self.dominating.zcdp_line()

    @property
    def sixth_moment_upper(self) -> float:
        return self.dominating.sixth_moment_upper


def dominated_pair(above: CellLoss, below: PrivacyLoss | None) -> DominatingPair:
    """Return the pair of a dominating and an attained loss, the same in both directions."""
    loss = above if above == below else DominatedLoss(above, below)
    return DominatingPair(loss, loss)
