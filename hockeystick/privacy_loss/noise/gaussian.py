"""The Gaussian mechanism's loss: itself Gaussian, with every reading in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.mechanisms import Gaussian
from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.bounds.cumulants import Cumulants, FourCumulants
from hockeystick.privacy_loss.bounds.moment_bounds import LawBounds, MomentBounds
from hockeystick.privacy_loss.bounds.sixth_moments import sixth_moment_of_normal
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    CGFEstimate,
    ContourValues,
    Masses,
    ProfiledLoss,
)
from hockeystick.privacy_loss.core.cell_loss import UnboundedLoss
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.rates import mu_of, mu_squared_upper
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.core.uncertain_endpoints import DensityLoss, UncertainEdges
from hockeystick.privacy_loss.noise.normal_masses import gaussian_edges, log_masses

if TYPE_CHECKING:
    from mpmath import mpc, mpf

# Beyond this many standard deviations a bound is as good as any.
_MOST_DEVIATIONS: Final = 1e100


@final
@dataclass(frozen=True, slots=True)
class GaussianLoss(UnboundedLoss, DensityLoss, AnalyticLoss, ProfiledLoss):
    """``L ~ N(mu^2/2, mu^2)``, the loss of N(mu, 1) against N(0, 1), the same in both directions.

    ``K(z) = mu^2 z (z + 1) / 2``; ``mu`` is the reciprocal of the noise multiplier, which
    is a fraction where mu itself was given.
    """

    noise_multiplier: float | Fraction

    @property
    def mu(self) -> float:
        """The distance of the means in units of the noise."""
        return mu_of(self.noise_multiplier)

    @property
    def out_of_range(self) -> bool:
        return not 1e-100 <= self.mu <= 1e100

    def cgf_estimate(self, c: float) -> CGFEstimate:
        half = 0.5 * self.mu * self.mu
        return CGFEstimate(half * c * (c + 1.0), half * (2.0 * c + 1.0), 2.0 * half)

    def cgf_bounds(self, c: float) -> Ball:
        value = self.cgf_estimate(c).value
        return Ball(value, 8.0 * ULP * value)

    @property
    def clt_mu_squared(self) -> float:
        """Return ``mu^2``: the loss is its own limit."""
        return self.mu * self.mu

    @property
    def dominating_mu_squared(self) -> Fraction:
        return mu_squared_upper(self.noise_multiplier)

    def cumulants(self) -> Cumulants:
        """Return those of a normal: none but the mean and the variance."""
        square = self.mu * self.mu
        return Cumulants(
            FourCumulants(0.5 * square, square, 0.0, 0.0),
            FourCumulants(-0.5 * square, square, 0.0, 0.0),
        )

    def moment_bounds(self) -> MomentBounds | None:
        """Return both and no third moment.

        A normal loss is the sum of k equal normal ones, whose third moments vanish as k grows; the
        theorem of Berry and Esseen holds for each k, and so with 0 here.
        """
        if self.out_of_range:
            return None
        square = self.mu * self.mu
        low, high = square * (1.0 - 16.0 * ULP), square * (1.0 + 16.0 * ULP)
        return MomentBounds(
            LawBounds(0.5 * low, 0.5 * high, low, high, 0.0),
            LawBounds(-0.5 * high, -0.5 * low, low, high, 0.0),
        )

    @property
    def sixth_moment_upper(self) -> float:
        return sixth_moment_of_normal(0.5 * self.mu * self.mu, self.mu)

    @property
    def opposite(self) -> GaussianLoss:
        return self

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        """Return the masses of cells of the output, at ``l/mu + mu/2`` where the loss is l."""
        log_p, error_p = log_masses(gaussian_edges(edges, self.mu, 1.0))
        log_q, error_q = log_masses(gaussian_edges(edges, self.mu, -1.0))
        return Masses(log_p, log_q, np.maximum(error_p, error_q))

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        from hockeystick.precision.profiles import gaussian_delta, reciprocal

        return gaussian_delta(epsilon, reciprocal(self.noise_multiplier) * (1 + perturbation * ULP))

    def quadrature_available(self, c: float) -> bool:
        return True

    def decay(self, c: float) -> GaussianLoss:
        """Return the loss itself: the bound is the same on every line."""
        return self

    def exponent(self, y: float) -> float:
        """Return ``mu^2 y^2 / 2``, rounded down."""
        return 0.5 * min(self.mu * y, _MOST_DEVIATIONS) ** 2 * (1.0 - 16.0 * ULP)

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> GaussianLoss:
        """Return the loss itself: the closed form needs no quadrature."""
        return self

    @property
    def nodes(self) -> int:
        """One term, the closed form."""
        return 1

    def line(self, c: float, step: float, count: int) -> ContourValues:
        """Return K along the line."""
        y = step * np.arange(count, dtype=np.float64)
        half = 0.5 * self.mu * self.mu
        real = half * (c * (c + 1.0) - y * y)
        imag = half * y * (2.0 * c + 1.0)
        error = 16.0 * ULP * half * (c * (c + 1.0) + y * y + y * (2.0 * c + 1.0))
        return ContourValues(real, imag, error)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        """Return K along the line by mpmath."""
        from hockeystick.precision.profiles import gaussian_line, reciprocal

        return gaussian_line(reciprocal(self.noise_multiplier), c, step, count)


@dominating_pair.register
def _(mechanism: Gaussian) -> DominatingPair:
    return gaussian_noise_pair(mechanism.noise_multiplier)


def gaussian_noise_pair(noise_multiplier: float) -> DominatingPair:
    """Return the losses of Gaussian noise, edge cases included."""
    if noise_multiplier == math.inf:
        return DominatingPair(None, None)
    if noise_multiplier == 0.0:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    loss = GaussianLoss(noise_multiplier)
    return DominatingPair(loss, loss)
