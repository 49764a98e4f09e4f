"""The Gaussian mechanism's loss: itself Gaussian, with all that is asked of it in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from hockeystick.mechanisms import Gaussian, JointGaussian, PrivateCovariance
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import ULP, Ball, decimal
from hockeystick.numerics.multiprecision import mpc, mpf
from hockeystick.precision.lines import gaussian_line
from hockeystick.precision.profiles import (
    displaced_gaussian_delta,
    exact,
    gaussian_delta,
    reciprocal,
)
from hockeystick.privacy_loss.bounds.moments import (
    Cumulants,
    FourCumulants,
    LawBounds,
    MomentBounds,
    sixth_moment_of_normal,
)
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    Array,
    Atoms,
    CGFEstimate,
    ContourValues,
    DominatingPair,
    Masses,
    ProfiledLoss,
    both,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss, UnboundedLoss
from hockeystick.privacy_loss.core.composition import (
    GaussianNoiseLoss,
    NoiselessLoss,
    edge_pair,
    log_complement,
    log_mixed,
)
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    DensityLoss,
    UncertainEdges,
    edges_at,
    gaussian_edges,
    log_masses,
    log_mixture,
    no_atoms,
    sampled_masses,
)


@final
@dataclass(frozen=True, slots=True)
class GaussianLoss(GaussianNoiseLoss, UnboundedLoss, DensityLoss, AnalyticLoss, ProfiledLoss):
    """``L ~ N(mu^2/2, mu^2)``, the loss of N(mu, 1) against N(0, 1), the same in both directions.

    ``K(z) = mu^2 z (z + 1) / 2``; ``mu`` is the reciprocal of the noise multiplier, which
    is a fraction where mu itself was given.
    """

    noise_multiplier: float | Fraction

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
        return self.mu * self.mu

    def cumulants(self) -> Cumulants:
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

    same_both_ways = True

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        """Return the masses of cells of the output, at ``l/mu + mu/2`` where the loss is l."""
        return Masses.of(*(log_masses(gaussian_edges(edges, self.mu, s)) for s in (1.0, -1.0)))

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        return gaussian_delta(epsilon, reciprocal(self.noise_multiplier) * (1 + perturbation * ULP))

    def quadrature_available(self, c: float) -> bool:
        return True

    def decay(self, c: float) -> GaussianLoss:
        return self

    def exponent(self, y: float) -> float:
        """Return ``mu^2 y^2 / 2``, rounded down; of a large one, what is as good as infinite."""
        return 0.5 * min(self.mu * y, 1e100) ** 2 * (1.0 - 16.0 * ULP)

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> GaussianLoss:
        return self

    nodes = 1

    def line(self, c: float, step: float, count: int) -> ContourValues:
        y = step * np.arange(count, dtype=np.float64)
        half = 0.5 * self.mu * self.mu
        real = half * (c * (c + 1.0) - y * y)
        imag = half * y * (2.0 * c + 1.0)
        error = 16.0 * ULP * half * (c * (c + 1.0) + y * y + y * (2.0 * c + 1.0))
        return ContourValues(real, imag, error)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        return gaussian_line(reciprocal(self.noise_multiplier), c, step, count)


@dominating_pair.register
def _(mechanism: Gaussian) -> DominatingPair:
    return gaussian_noise_pair(mechanism.noise_multiplier)


def gaussian_noise_pair(noise_multiplier: float) -> DominatingPair:
    """Return the losses of Gaussian noise, edge cases included."""
    return edge_pair(noise_multiplier) or both(GaussianLoss(noise_multiplier))


@dominating_pair.register
def _(mechanism: JointGaussian) -> DominatingPair:
    noises = mechanism.noise_multipliers
    if 0.0 in noises:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    known = [1 / decimal(noise) ** 2 for noise in noises if noise < math.inf]
    return gaussian_of_square(sum(known, Fraction(0)))


def gaussian_of_square(square: Fraction) -> DominatingPair:
    """Return the losses of a Gaussian by ``mu^2``; the root has far more digits than a float."""
    if square == 0:
        return DominatingPair(None, None)
    return both(GaussianLoss(1 / square_root(square)))


@dominating_pair.register
def _(mechanism: PrivateCovariance) -> DominatingPair:
    noise, square = mechanism.noise_multiplier, mechanism.squared_sensitivity
    return edge_pair(noise) or gaussian_of_square(square / decimal(noise) ** 2)


@final
@dataclass(frozen=True, slots=True)
class DisplacedGaussianLoss(GaussianNoiseLoss, CellLoss, ProfiledLoss):
    """The loss of ``(1-q) N(-mu, 1) + q N(mu, 1)`` against ``(1-q) N(-mu, 1) + q N(0, 1)``.

    With ``k = (1-q)/q exp(-mu^2)`` it is l at the outputs x with

        mu x = mu^2/2 + l + ln((1 +- sqrt(D))/2),    D = 1 + 4 k e^-l (1 - e^-l):

    one for ``l >= 0``, two for l between the least loss, where D = 0, and 0. On the right of the
    least loss it rises, from there to the left it goes up to 0 again.
    """

    rate: float | Fraction
    noise_multiplier: float | Fraction

    @property
    def is_within_reach(self) -> bool:
        """Whether the distance and the rate are in the reach of floats."""
        return 1.0 / 1e15 < self.mu <= 20.0 and abs(self._log_k) <= 600.0

    @property
    def _log_k(self) -> float:
        log_rate = math.log(self.rate) if self.rate > 0 else -math.inf
        return log_complement(self.rate) - log_rate - self.mu * self.mu

    supremum: ClassVar[float] = math.inf

    @property
    def infimum(self) -> float:
        """The least loss, ``-ln((1 + sqrt(1 + 1/k))/2)``, rounded down."""
        odds = math.exp(-self._log_k)
        least = math.log1p(0.5 * odds / (1.0 + math.sqrt(1.0 + odds)))
        return -least * (1.0 + ULP * (16.0 + 8.0 * self._sizes))

    @property
    def _sizes(self) -> float:
        """Return the sum of the sizes of what ``ln k`` is made of."""
        return abs(log_complement(self.rate)) + abs(math.log(self.rate)) + self.mu * self.mu

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 - q + q exp(c (c+1) mu^2/2))``, rounded up: powers are convex."""
        exponent = 0.5 * c * (c + 1.0) * self.mu * self.mu * (1.0 + 16.0 * ULP)
        return log_mixed(exponent, float(self.rate))

    def atoms(self) -> Atoms:
        return no_atoms()

    def cells(self, edges: Array) -> Masses:
        edges = np.asarray(edges, dtype=np.float64)
        with np.errstate(all="ignore"):
            right, left = self._outputs(edges)
            means = -self.mu, self.mu, 0.0
            found = sampled_masses(right, self.rate, means)
            if left.at.size < 2:
                return found
            other = sampled_masses(left, self.rate, means)
            below = left.at.size - 1
            (*logs, error), (*others, other_error) = found, other
            sums = [
                log_mixture((mine[:below], error[:below]), 1.0, (log[::-1], other_error[::-1]), 1.0)
                for mine, log in zip(logs, others, strict=True)
            ]
            for mine, (log, _) in zip(logs, sums, strict=True):
                mine[:below] = log
            error[:below] = np.maximum(sums[0][1], sums[1][1])
            error[edges[1:] <= self.infimum] = 0.0
        return found

    def _outputs(self, edges: Array) -> tuple[UncertainEdges, UncertainEdges]:
        """Return the outputs at edges of the loss, on the right and on the left of the least loss.

        Edges below the least loss are at the output that has it, which parts the two: where
        exactly does not matter, as a cell across it is the sum of both sides'.
        """
        half, least = 0.5 * self.mu * self.mu, self.infimum
        lowest = edges <= least
        loss = np.where(lowest, least, edges)
        growth = -np.expm1(-loss) * np.exp(-loss)
        bend = np.where(lowest, -1.0, 4.0 * math.exp(self._log_k) * growth)
        root = np.sqrt(np.maximum(1.0 + bend, 0.0))
        grown = np.log1p(0.5 * bend / (1.0 + root))
        # What is not known of D, and of its root.
        relative = ULP * (8.0 * self._sizes + 16.0)
        unsure = np.abs(bend) * relative + ULP
        unsure_root = np.minimum(unsure / np.maximum(root, 1e-300), np.sqrt(unsure))
        sizes = half + np.abs(loss) + np.abs(grown)
        right = np.where(np.isposinf(edges), math.inf, half + loss + grown)
        error = unsure_root / (1.0 + root) + ULP * (6.0 * sizes + 4.0)
        product = np.log(np.abs(growth)) + self._log_k
        left = np.where(lowest, right, half + loss + product - grown)
        left_error = error + relative + ULP * 4.0 * np.abs(product)
        sure = lowest | np.isposinf(edges)
        error, left_error = np.where(sure, 0.0, error), np.where(sure, 0.0, left_error)
        # So far all is of ``mu x``.
        negative = int(np.searchsorted(edges, 0.0))
        at, at_error = left[:negative] / self.mu, left_error[:negative] / self.mu
        if negative < edges.size:
            at, at_error = np.append(at, -math.inf), np.append(at_error, 0.0)
        return edges_at(right / self.mu, error / self.mu), edges_at(at[::-1], at_error[::-1])

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``P[x > t] - e^eps Q[x > t]`` at the output t where the loss is ``eps >= 0``."""
        worse = 1 + perturbation * ULP
        return displaced_gaussian_delta(
            epsilon, min(exact(self.rate) * worse, 1), reciprocal(self.noise_multiplier) * worse
        )
