"""The dominating loss under replace-one adjacency: that of a one-sided pair, symmetrised."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, lowest
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    Atoms,
    CGFEstimate,
    ClosedFormProfile,
    Masses,
    PrivacyLoss,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import DominatingPair, NoAnalysisError
from hockeystick.privacy_loss.core.interval_masses import cgf_bounds

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


# Exponentials beyond this are taken as infinite.
_LARGEST_EXPONENT: Final = 700.0


@final
@dataclass(frozen=True, slots=True)
class SymmetrizedLoss(CellLoss):
    """Above 0 the loss of ``one_sided``, below 0 its reflection, and the remaining mass at 0.

    Where neighbours may be exchanged, a profile H that bounds them for ``eps >= 0`` bounds them for
    ``eps < 0`` by ``1 - e^eps + e^eps H(-eps)``. If H is the profile of ``one_sided`` for
    ``eps >= 0``, this is the loss with that profile: above 0 as ``one_sided``, and at -l the mass
    that ``one_sided`` has at l under Q. That pair dominates every pair of neighbours
    at every order.

    ``P(l > 0) + Q(l > 0)`` of ``one_sided`` must be at most 1. ``exact`` tells that some pair of
    data sets attains ``one_sided`` in a single run, so that its closed-form profile is that of
    this loss. Here each of many runs has the larger loss of both directions; ``attained_loss`` is
    that of a pair of data sets. ``with_quadrature`` is the same loss with a quadrature of K.
    """

    one_sided: CellLoss
    attained_loss: PrivacyLoss | None = None
    with_quadrature: PrivacyLoss | None = None
    exact: bool = True

    @property
    def attained(self) -> PrivacyLoss | None:
        """The loss that some pair of data sets attains in each of many runs, in one direction."""
        return self.attained_loss

    @property
    def without_attained(self) -> SymmetrizedLoss:
        return replace(self, attained_loss=None)

    @property
    def analytic(self) -> AnalyticLoss | None:
        return self.with_quadrature.analytic if self.with_quadrature else None

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        """That of the one-sided loss, for epsilon >= 0, where it is exact."""
        return self.one_sided.closed_form_profile if self.exact else None

    @property
    def closed_form_dominating_loss(self) -> SymmetrizedLoss:
        """The loss with the profile of the one-sided loss, exact or not, where there is one."""
        if self.exact or self.one_sided.closed_form_profile is None:
            return self
        return SymmetrizedLoss(self.one_sided)

    @property
    def supremum(self) -> float:
        return max(self.one_sided.supremum, 0.0)

    @property
    def infimum(self) -> float:
        return -self.supremum

    @property
    def endpoint_tolerance(self) -> float:
        return self.one_sided.endpoint_tolerance

    @property
    def clt_mu_squared(self) -> float:
        """By quadrature where there is one; else twice that of the one-sided loss."""
        return (
            self.with_quadrature.clt_mu_squared
            if self.with_quadrature
            else 2.0 * self.one_sided.clt_mu_squared
        )

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        """That of the one-sided loss: ``G_mu`` is symmetric."""
        return self.one_sided.dominating_mu_squared

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives, by quadrature where there is one, else from cells."""
        return (
            self.with_quadrature.cgf_estimate(c)
            if self.with_quadrature
            else CellLoss.cgf_estimate(self, c)
        )

    def cgf_bounds(self, c: float) -> Ball:
        """Return K by quadrature where there is one, else from cells and ``cgf_upper``."""
        if self.with_quadrature:
            return self.with_quadrature.cgf_bounds(c)
        return cgf_bounds(self, c, self.cgf_upper)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 + M)`` with M of the one-sided loss: losses <= 0 contribute at most 1."""
        bounds = self.one_sided.cgf_bounds(c)
        return _log_one_more(bounds.midpoint + bounds.radius)

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the line by the ends, or that without sampling, which is an upper bound."""
        # The unsampled losses are the same in both directions.
        unsampled = self.one_sided.unsampled
        return lowest((CellLoss.zcdp_line(self), unsampled.zcdp_line() if unsampled else None))

    def atoms(self) -> Atoms:
        """Return the positive atoms, their reflections, and the remaining mass at 0."""
        return _joined_atoms(self.one_sided, self.one_sided)

    def cells(self, edges: Array) -> Masses:
        """Return the masses above 0, and those below 0 by reflection."""
        return _joined_cells(self.one_sided, self.one_sided, edges)


@final
@dataclass(frozen=True, slots=True)
class JoinedLoss(CellLoss):
    """Above 0 the loss of ``above``, below 0 the reflection of ``reverse``, and the rest at 0.

    Neighbours in one order may have the profile of ``above`` for ``eps >= 0`` at most, and in the
    other order that of ``reverse``. Then the profile in the first order is at most
    ``1 - e^eps + e^eps H(-eps)`` for ``eps < 0``, H that of ``reverse``. This is the loss with both
    halves: above 0 as ``above``, and at -l the mass that ``reverse`` has at l under its Q. In the
    other order it is the one with the two exchanged.

    ``P(l > 0)`` of ``above`` and ``Q(l > 0)`` of ``reverse`` must add up to 1 at most, and so must
    those of the other distributions. Some data sets attain ``above`` for ``eps >= 0``, so that its
    closed-form profile is that of this loss; ``attained_loss`` is that of a pair of data sets.
    """

    above: CellLoss
    reverse: CellLoss
    attained_loss: PrivacyLoss | None = None

    @property
    def attained(self) -> PrivacyLoss | None:
        """The loss that some pair of data sets attains in each of many runs, in this order."""
        return self.attained_loss

    @property
    def without_attained(self) -> JoinedLoss:
        return replace(self, attained_loss=None)

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        return self.above.closed_form_profile

    @property
    def supremum(self) -> float:
        return max(self.above.supremum, 0.0)

    @property
    def infimum(self) -> float:
        return min(-self.reverse.supremum, 0.0)

    @property
    def endpoint_tolerance(self) -> float:
        return max(self.above.endpoint_tolerance, self.reverse.endpoint_tolerance)

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        """The larger one of both: ``G_mu`` is symmetric."""
        squares = self.above.dominating_mu_squared, self.reverse.dominating_mu_squared
        return None if None in squares else max(square for square in squares if square is not None)

    def cgf_bounds(self, c: float) -> Ball:
        return cgf_bounds(self, c, self.cgf_upper)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 + M)`` with M of the loss above 0: losses <= 0 contribute at most 1."""
        return _log_one_more(self.above.cgf_upper(c))

    def atoms(self) -> Atoms:
        """Return the atoms of both sides, and the remaining mass at 0."""
        return _joined_atoms(self.above, self.reverse)

    def cells(self, edges: Array) -> Masses:
        """Return the masses above 0, and those below 0 by reflection."""
        return _joined_cells(self.above, self.reverse, edges)


def _log_one_more(exponent: float) -> float:
    """Return an upper bound of ``ln(1 + e^K)``."""
    if exponent > _LARGEST_EXPONENT:
        return exponent * (1.0 + 4.0 * ULP)
    return math.log1p(math.exp(exponent)) * (1.0 + 16.0 * ULP)


def _joined_atoms(above: CellLoss, reverse: CellLoss) -> Atoms:
    """Return one loss's positive atoms, reflections of another's, and the remaining mass at 0."""
    right, left = _positive_atoms(above), _positive_atoms(reverse)
    log_q = left.log_p - left.loss
    unsure = left.error + ULP * (4.0 * left.loss + np.abs(left.log_p))
    rest, relative = _mass_at_zero(
        above, reverse, np.concatenate((right.log_p, log_q)), np.concatenate((right.error, unsure))
    )
    return Atoms(
        np.concatenate((-left.loss[::-1], [0.0], right.loss)),
        np.concatenate((log_q[::-1], [rest], right.log_p)),
        np.concatenate((unsure[::-1], [relative], right.error)),
    )


def _positive_atoms(loss: CellLoss) -> Atoms:
    """Return the atoms above 0."""
    own = loss.atoms()
    return Atoms(*(column[own.loss > 0.0] for column in own))


def _mass_at_zero(
    above: CellLoss, reverse: CellLoss, logs: Array, errors: Array
) -> tuple[float, float]:
    """Return ``ln`` of the remaining mass, that of the atom at 0, and its error."""
    positive = np.array([0.0, math.inf])
    right = above.cells(positive)
    left = right if reverse is above else reverse.cells(positive)
    logs = np.concatenate((logs, right.log_p, left.log_q))
    errors = np.concatenate((errors, right.error, left.error))
    masses = np.exp(logs)
    rest = 1.0 - float(masses.sum())
    unsure = float((masses * np.expm1(np.minimum(errors, 1.0))).sum()) + 8.0 * ULP
    if rest <= 2.0 * unsure:
        return math.log(max(rest, 0.0) + 2.0 * unsure), math.inf
    return math.log(rest), 2.0 * unsure / rest + 2.0 * ULP * abs(math.log(rest))


def _joined_cells(above: CellLoss, reverse: CellLoss, edges: Array) -> Masses:
    """Return one loss's masses above 0, and those below 0 by another's reflection."""
    edges = np.asarray(edges, dtype=np.float64)
    negative, positive = edges[edges < 0.0], edges[edges > 0.0]
    log_p, log_q = (np.full(edges.size - 1, -math.inf) for _ in range(2))
    error = np.zeros(edges.size - 1)
    if positive.size:
        found = above.cells(np.concatenate(([0.0], positive)))
        # The first of them starts at 0, which may lie before all edges.
        first = edges.size - positive.size - 1
        for own, part in zip((log_p, log_q, error), found, strict=True):
            own[max(first, 0) :] = part[max(-first, 0) :]
    if negative.size:
        found = reverse.cells(np.concatenate(([0.0], -negative[::-1])))
        last = min(negative.size, edges.size - 1)
        mirrored = [part[::-1][:last] for part in (found.log_q, found.log_p, found.error)]
        log_p[:last] = np.logaddexp(log_p[:last], mirrored[0])
        log_q[:last] = np.logaddexp(log_q[:last], mirrored[1])
        sizes = np.where(log_p[:last] > -math.inf, np.abs(log_p[:last]), 0.0)
        error[:last] = np.maximum(error[:last], mirrored[2]) + ULP * (4.0 * sizes + 4.0)
    return Masses(log_p, log_q, error)


def symmetrized(
    one_sided: CellLoss, attained_loss: PrivacyLoss | None, *, exact: bool = True
) -> CellLoss:
    """Return the symmetrized loss, with a quadrature of its moments where there is one."""
    return SymmetrizedLoss(one_sided, attained_loss, one_sided.symmetrized_quadrature, exact)


def exchanged_pair(worst: PrivacyLoss, *attained: PrivacyLoss | None) -> DominatingPair:
    """Return the dominating pair under replace-one adjacency.

    ``worst`` dominates all pairs for ``eps >= 0``; ``attained`` are losses of some data sets.
    """
    if not isinstance(worst, CellLoss):
        raise NoAnalysisError("its privacy loss has no distribution that is known cell by cell")
    # A closed-form profile counts as exact: only that of an attained loss is.
    exact = attained[0] is worst
    return DominatingPair(*(symmetrized(worst, loss, exact=exact) for loss in attained))
