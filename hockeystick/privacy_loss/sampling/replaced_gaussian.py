"""The loss of the Poisson-subsampled Gaussian where one example is replaced by another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.core.base import Atoms, Masses, ProfiledLoss
from hockeystick.privacy_loss.core.cell_loss import UnboundedLoss
from hockeystick.privacy_loss.core.interval_masses import cgf_bounds
from hockeystick.privacy_loss.core.rates import log_complement, mu_of, mu_squared_upper
from hockeystick.privacy_loss.core.uncertain_endpoints import UncertainEdges, log_mixture, no_atoms
from hockeystick.privacy_loss.noise.normal_masses import log_masses
from hockeystick.privacy_loss.sampling.sampled import log_mixed

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.kernels.series import Array

_LN_2: Final = math.log(2.0)
# Beyond this sinh is half an exponential, and the loss moves as fast as the output.
_STEEP: Final = 300.0
# Beyond this the inverse of sinh is a logarithm.
_LOGARITHMIC: Final = 20.0
# Exponentials beyond this are taken as infinite.
_LARGEST_EXPONENT: Final = 700.0


@final
@dataclass(frozen=True, slots=True)
class ReplacedGaussianLoss(UnboundedLoss, ProfiledLoss):
    """The loss of ``(1-p) N(0, 1) + p N(mu, 1)`` against ``(1-p) N(0, 1) + p N(-mu, 1)``.

    Poisson sampling under replace-one: a sampled example moves the sum by at most mu, one way or
    the other. The same in both directions. The loss l is at the output x with

        mu x = l/2 + asinh(k sinh(l/2)),    k = (1-p)/p exp(mu^2/2).

    No pair of data sets costs more, at any order: for ``eps >= 0`` the profile of examples that
    move the sum by vectors u and v is ``p E (1 - a ((1-b) e^X + b e^Y))_+``, with X and Y Gaussian,
    ``E e^X = E e^Y = 1``, variances ``|u|^2`` and ``|u-v|^2`` and the covariance ``u (u-v)``; by
    Kahane's inequality the mean of a convex function of such a sum rises with each of the three,
    and ``v = -u`` of length mu has the largest of all. For ``eps < 0`` exchange the two data sets.

    References:
        Kahane, "Sur le chaos multiplicatif", Ann. Sci. Math. Quebec 1985; Balle, Barthe and
        Gaboardi, NeurIPS 2018, theorem 2, for the form of the profile.
    """

    rate: float | Fraction
    noise_multiplier: float | Fraction

    @property
    def mu(self) -> float:
        """How far a sampled example moves the sum, in units of the noise."""
        return mu_of(self.noise_multiplier)

    @property
    def clt_mu_squared(self) -> float:
        """``2 p^2 (e^(mu^2) - e^(-mu^2))``, the square of the difference over N(0, 1)."""
        square = self.mu * self.mu
        if square > _LARGEST_EXPONENT:
            return math.inf
        return 4.0 * float(self.rate) ** 2 * math.sinh(square)

    @property
    def dominating_mu_squared(self) -> Fraction:
        """That of twice the distance: a sampled example moves the sum from one side to another."""
        return 4 * mu_squared_upper(self.noise_multiplier)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K from cells, and where these leave it open no more than its convex bound."""
        return cgf_bounds(self, c, self.cgf_upper)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 - p + p exp(2 c (c+1) mu^2))``, rounded up: powers are convex."""
        exponent = 2.0 * c * (c + 1.0) * self.mu * self.mu * (1.0 + 16.0 * ULP)
        return log_mixed(exponent, float(self.rate))

    def atoms(self) -> Atoms:
        """Return none: the loss has a density."""
        return no_atoms()

    def cells(self, edges: Array) -> Masses:
        """Return the masses of cells of the output, of both mixtures."""
        with np.errstate(all="ignore"):
            at = self._outputs(np.asarray(edges, dtype=np.float64))
        rest, rate = math.exp(log_complement(self.rate)), float(self.rate)
        middle, right, left = (log_masses(_moved(at, side * self.mu)) for side in (0.0, -1.0, 1.0))
        log_p, error_p = log_mixture(middle, rest, right, rate)
        log_q, error_q = log_mixture(middle, rest, left, rate)
        return Masses(log_p, log_q, np.maximum(error_p, error_q) + 16.0 * ULP)

    def _outputs(self, edges: Array) -> UncertainEdges:
        """Return the outputs x at edges of the loss.

        Widths come from ``asinh B - asinh A = ln(1 + (B - A) (1 + (A+B)/(A'+B')) / (A + A'))`` with
        ``A' = sqrt(1 + A^2)``, in which nothing cancels where ``0 <= A <= B``.
        """
        mu, half = self.mu, 0.5 * edges
        log_k = log_complement(self.rate) - math.log(self.rate) + 0.5 * mu * mu
        size = np.abs(half)
        log_sinh = np.where(size > _STEEP, size - _LN_2, np.log(np.sinh(np.minimum(size, _STEEP))))
        exponent = log_k + log_sinh
        bend = np.where(
            exponent > _LOGARITHMIC,
            exponent + _LN_2,
            np.arcsinh(np.exp(np.minimum(exponent, _LOGARITHMIC))),
        )
        at = half + np.copysign(bend, half)
        logs = abs(log_k) + mu * mu + np.where(np.isfinite(log_sinh), np.abs(log_sinh), 0.0)
        error = ULP * (np.minimum(bend, 1.0) * (8.0 * logs + 32.0) + 8.0 * np.abs(at))
        error = np.where(np.isfinite(at), error, 0.0)
        wide = np.diff(at)
        width = np.where(_far_apart(half), wide, 0.5 * np.diff(edges) + _bends(half, log_k))
        lost = (error[1:] + error[:-1]) / width
        width_error = np.where(_far_apart(half), lost, ULP * (16.0 * (logs[1:] + logs[:-1]) + 96.0))
        ends = np.isinf(at[1:]) | np.isinf(at[:-1])
        return UncertainEdges(
            at / mu,
            error / mu + 2.0 * ULP * np.where(np.isfinite(at), np.abs(at), 0.0) / mu,
            np.where(ends, math.inf, width / mu),
            np.where(ends, 0.0, width_error),
        )

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``P[x > t] - e^eps Q[x > t]`` at the output t where the loss is eps."""
        from hockeystick.precision.profiles import exact, reciprocal, replaced_gaussian_delta

        worse = 1 + perturbation * ULP
        return replaced_gaussian_delta(
            epsilon, min(exact(self.rate) * worse, 1), reciprocal(self.noise_multiplier) * worse
        )


def _moved(edges: UncertainEdges, distance: float) -> UncertainEdges:
    """Return edges moved, with what rounding makes of them."""
    if distance == 0.0:
        return edges
    at = edges.at + distance
    sizes = np.where(np.isfinite(at), np.abs(edges.at) + 4.0 * abs(distance), 0.0)
    return UncertainEdges(at, edges.error + ULP * sizes, edges.width, edges.width_error)


def _far_apart(half: Array) -> Array:
    """Return where neighbouring points are on both sides of 0, or one is twice the other."""
    near, far = (
        np.minimum(*np.abs((half[1:], half[:-1]))),
        np.maximum(*np.abs((half[1:], half[:-1]))),
    )
    return np.asarray((half[1:] * half[:-1] <= 0.0) | (far > 2.0 * near))


def _bends(half: Array, log_k: float) -> Array:
    """Return ``asinh(k sinh t)`` between neighbouring points t on the same side of 0."""
    first, second = np.abs(half[:-1]), np.abs(half[1:])
    low, high = np.minimum(first, second), np.maximum(first, second)
    gap = np.abs(np.diff(half))
    steep = low > _STEEP
    low, high = np.where(steep, 1.0, low), np.where(steep, 1.0, high)
    root = math.exp(-2.0 * min(max(log_k, -_LARGEST_EXPONENT), _LARGEST_EXPONENT))
    below, above = np.sinh(low), np.sinh(high)
    roots = np.sqrt(root + below**2), np.sqrt(root + above**2)
    difference = 2.0 * np.cosh(0.5 * (low + high)) * np.sinh(0.5 * gap)
    growth = difference * (1.0 + (below + above) / (roots[0] + roots[1])) / (below + roots[0])
    return np.asarray(np.where(steep, gap, np.log1p(growth)))
