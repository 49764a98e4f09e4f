"""The loss of the worst pair where neighbours may be exchanged: one side, mirrored."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, lowest
from hockeystick.privacy_loss.core.base import (
    Atoms,
    CGFEstimate,
    ClosedFormProfile,
    Masses,
    PrivacyLoss,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.interval_masses import cgf_bounds
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Exponentials beyond this are taken as infinite.
_LARGEST_EXPONENT: Final = 700.0


@final
@dataclass(frozen=True, slots=True)
class SymmetrizedLoss(CellLoss):
    """Above 0 the loss of ``one``, below 0 its mirror image, and the rest an atom at 0.

    Where neighbours may be exchanged, a profile H that bounds them for ``eps >= 0`` bounds them for
    ``eps < 0`` by ``1 - e^eps + e^eps H(-eps)``. If H is the profile of ``one`` for ``eps >= 0``,
    this is the loss with that profile: above 0 as ``one`` has it, and at -l it has the mass that
    ``one`` has at l under Q. That pair dominates every pair of neighbours at every order.

    ``P(l > 0) + Q(l > 0)`` of ``one`` must be at most 1. A single run is exact where ``one`` is
    attained, which ``profiled`` says: its profile, if in closed form, is then that of this loss. Of
    many runs, each of which has the worst of both directions here, ``attained_loss`` is what a pair
    of data sets attains.
    """

    one: CellLoss
    attained_loss: PrivacyLoss | None = None
    known: PrivacyLoss | None = None
    profiled: bool = True

    @property
    def attained(self) -> PrivacyLoss | None:
        """What some pair of data sets attains in each of many runs, one direction throughout."""
        return self.attained_loss

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        """That of the loss that is mirrored, for epsilon >= 0, where it is exact."""
        return self.one.closed_form_profile if self.profiled else None

    @property
    def closed_form_dominating_loss(self) -> SymmetrizedLoss:
        """The loss that has the profile of the one mirrored, exact or not, where there is one."""
        if self.profiled or self.one.closed_form_profile is None:
            return self
        return SymmetrizedLoss(self.one)

    @property
    def supremum(self) -> float:
        """The largest loss."""
        return max(self.one.supremum, 0.0)

    @property
    def infimum(self) -> float:
        """Minus the largest loss."""
        return -self.supremum

    @property
    def displacement(self) -> float:
        """That of the loss that is mirrored."""
        return self.one.displacement

    @property
    def clt_mu_squared(self) -> float:
        """That of the same loss where it is known otherwise; twice that of the one mirrored."""
        return self.known.clt_mu_squared if self.known else 2.0 * self.one.clt_mu_squared

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        """That of the loss that is mirrored: ``G_mu`` is its own mirror image."""
        return self.one.dominating_mu_squared

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives: of the same loss where it is known otherwise, or cells."""
        return self.known.cgf_estimate(c) if self.known else CellLoss.cgf_estimate(self, c)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K from cells, and where these leave it open no more than its convex bound."""
        if self.known:
            return self.known.cgf_bounds(c)
        return cgf_bounds(self, c, self.cgf_upper)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 + M)`` with M of the loss that is mirrored: what is mirrored adds up to 1.

        Below 0 the moments are of ``exp(-c l)``, and so at most the mass.
        """
        known = self.one.cgf_bounds(c)
        exponent = known.midpoint + known.radius
        if exponent > _LARGEST_EXPONENT:
            return exponent * (1.0 + 4.0 * ULP)
        return math.log1p(math.exp(exponent)) * (1.0 + 16.0 * ULP)

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the line by the ends, or of all the data, of which a sample costs no more."""
        # The losses of all the data are the same in both directions.
        whole = self.one.unsampled
        return lowest((CellLoss.zcdp_line(self), whole.zcdp_line() if whole else None))

    def atoms(self) -> Atoms:
        """Return the positive atoms, their mirror images, and all that is left at 0."""
        own = self.one.atoms()
        above = own.loss > 0.0
        loss, log_p, error = own.loss[above], own.log_p[above], own.error[above]
        log_q, unsure = log_p - loss, error + ULP * (4.0 * loss + np.abs(log_p))
        rest, relative = self._rest(np.concatenate((log_p, log_q)), np.concatenate((error, unsure)))
        return Atoms(
            np.concatenate((-loss[::-1], [0.0], loss)),
            np.concatenate((log_q[::-1], [rest], log_p)),
            np.concatenate((unsure[::-1], [relative], error)),
        )

    def _rest(self, logs: Array, errors: Array) -> tuple[float, float]:
        """Return ``ln`` of what is left beside atoms and density, and its error."""
        beyond = self.one.cells(np.array([0.0, math.inf]))
        logs = np.concatenate((logs, beyond.log_p, beyond.log_q))
        errors = np.concatenate((errors, beyond.error, beyond.error))
        masses = np.exp(logs)
        rest = 1.0 - float(masses.sum())
        unsure = float((masses * np.expm1(np.minimum(errors, 1.0))).sum()) + 8.0 * ULP
        if rest <= 2.0 * unsure:
            return math.log(max(rest, 0.0) + 2.0 * unsure), math.inf
        return math.log(rest), 2.0 * unsure / rest + 2.0 * ULP * abs(math.log(rest))

    def cells(self, edges: Array) -> Masses:
        """Return the masses above 0 as they are, those below by their mirror images."""
        edges = np.asarray(edges, dtype=np.float64)
        below, above = edges[edges < 0.0], edges[edges > 0.0]
        log_p, log_q = (np.full(edges.size - 1, -math.inf) for _ in range(2))
        error = np.zeros(edges.size - 1)
        if above.size:
            found = self.one.cells(np.concatenate(([0.0], above)))
            # The first of them starts at 0, which may lie before all edges.
            first = edges.size - above.size - 1
            for own, part in zip((log_p, log_q, error), found, strict=True):
                own[max(first, 0) :] = part[max(-first, 0) :]
        if below.size:
            found = self.one.cells(np.concatenate(([0.0], -below[::-1])))
            last = min(below.size, edges.size - 1)
            mirrored = [part[::-1][:last] for part in (found.log_q, found.log_p, found.error)]
            log_p[:last] = np.logaddexp(log_p[:last], mirrored[0])
            log_q[:last] = np.logaddexp(log_q[:last], mirrored[1])
            sizes = np.where(log_p[:last] > -math.inf, np.abs(log_p[:last]), 0.0)
            error[:last] = np.maximum(error[:last], mirrored[2]) + ULP * (4.0 * sizes + 4.0)
        return Masses(log_p, log_q, error)


def symmetrized(
    one: CellLoss, attained_loss: PrivacyLoss | None, *, profiled: bool = True
) -> CellLoss:
    """Return the symmetrized loss, with a quadrature of its moments where there is one."""
    return SymmetrizedLoss(one, attained_loss, one.symmetrized_quadrature, profiled)


def exchanged_pair(worst: PrivacyLoss, *attained: PrivacyLoss | None) -> DominatingPair:
    """Return the losses where neighbours may be exchanged.

    For ``eps >= 0`` no pair costs more than ``worst``; the others are what some data sets reach.
    """
    if not isinstance(worst, CellLoss):
        raise NoAnalysisError("its privacy loss has no distribution that is known cell by cell")
    # A profile in closed form is taken for exact: only that of what some data reach is.
    exact = attained[0] is worst
    return DominatingPair(*(symmetrized(worst, loss, profiled=exact) for loss in attained))
