"""The loss of the Gaussian on a fixed-size sample without replacement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.numerics import ULP, Ball, decimal
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.bounds.moments import Cumulants, MomentBounds
from hockeystick.privacy_loss.core.atomic import log_values
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    CGFEstimate,
    ContourValues,
    ProfiledLoss,
)
from hockeystick.privacy_loss.core.composition import (
    LESS,
    MORE,
    DominatingPair,
    dominating_pair_of_tradeoff,
    mu_squared_upper,
)
from hockeystick.privacy_loss.guarantees import gaussian_pair
from hockeystick.privacy_loss.sampling.sampled_gaussian_moments import (
    convex_bound,
    symmetric_cumulants,
    symmetric_moment_bounds,
)
from hockeystick.tradeoffs import (
    GaussianProfile,
    IntervalProfile,
    Profile,
    SampledGaussianTradeOff,
    SampledProfile,
)

if TYPE_CHECKING:
    from mpmath import mpc, mpf

    from hockeystick.kernels.series import Array

# Exponents up to this size are left unscaled.
_COMFORTABLE: Final = 200.0
# Nodes of a panel: an even number, about the best throughout.
_ORDER: Final = 24
# Beyond this c, or this range of x, only the convex bound of M is used.
_LARGEST_ORDER: Final = 1e8
_LONGEST: Final = 2000.0
# Relative accuracy of the unproven cumulants, as a logarithm.
_ROUGH: Final = -36.0
# Relative accuracy of the proven ones: where digits count, and where a part in a million is enough.
_SHARP: Final = -38.0
_SURE: Final = -14.0


@cache
def _gauss_legendre(order: int) -> tuple[Array, Array]:
    """Return ``1 + node`` and the weights, each rounded from more digits."""
    from hockeystick.precision import fixed_size_gaussian

    with working_digits(20):
        offset, weight = fixed_size_gaussian.gauss_legendre(order)
    return np.array(offset, dtype=np.float64), np.array(weight, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True)
class FixedSizeGaussianLoss(AnalyticLoss, ProfiledLoss):
    """The loss of the symmetric pair with the trade-off function ``C_p(G_mu)``, mu = 1/noise.

    With ``r(u) = 1 - p + p exp(mu u - mu^2/2)`` over ``u >= mu/2``, the loss is ``ln r(u)`` with
    mass ``r(u) phi(u) du`` and ``-ln r(u)`` with mass ``phi(u) du``; the rest is an atom at 0, of
    mass ``(1-p) (1 - 2 Phi(-mu/2))``. The same in both directions.

    References:
        Dong, Roth and Su 2022, theorem 4.2: ``C_p(f) = min(f_p, f_p^-1)**`` holds for a mechanism
        that is f-DP on a sample of fixed size, under replace-one adjacency.
    """

    rate: float | Fraction
    noise_multiplier: float

    @property
    def out_of_range(self) -> bool:
        return not (1e-3 <= self.mu <= 25.0 and 1e-10 <= float(self.rate) <= 1.0 - 1e-7)

    @property
    def mu(self) -> float:
        """The distance of the means in units of the noise."""
        return 1.0 / self.noise_multiplier

    @property
    def atom(self) -> float:
        """The mass of the outcomes without any loss, to a few units in the last place."""
        return (1.0 - float(self.rate)) * math.erf(self.mu / math.sqrt(8.0))

    @property
    def clt_mu_squared(self) -> float:
        """What one run adds to ``mu^2`` in the central limit theorem, an approximation.

        ``2 p^2 (e^(mu^2) Phi(3 mu/2) + 3 Phi(-mu/2) - 2)``, which is ``2 p^2`` times the integral
        of ``(e^(mu u - mu^2/2) - 1)^2`` over ``u >= mu/2`` under N(0, 1).

        References:
            Dong, Roth and Su 2022, corollary 5.4.
        """
        square = self.mu * self.mu
        if square > _COMFORTABLE:
            return math.inf
        near, far = math.erf(self.mu / math.sqrt(8.0)), math.erf(self.mu * math.sqrt(1.125))
        return float(self.rate) ** 2 * ((1.0 + far) * math.expm1(square) + far - 3.0 * near)

    @property
    def dominating_mu_squared(self) -> Fraction:
        return mu_squared_upper(self.noise_multiplier)

    def cumulants(self) -> Cumulants | None:
        if self.out_of_range:
            return None
        return symmetric_cumulants(float(self.rate), self.mu, self.atom)

    def moment_bounds(self) -> MomentBounds | None:
        if self.out_of_range:
            return None
        return symmetric_moment_bounds(float(self.rate), self.mu, self.atom)

    @property
    def supremum(self) -> float:
        """Infinite: the loss is unbounded."""
        return math.inf

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``p delta_G(ln(1 + (e^eps - 1)/p))``, for epsilon >= 0."""
        from hockeystick.precision.profiles import exact, reciprocal, sampled_gaussian_delta

        worse = 1 + perturbation * ULP
        rate = min(exact(self.rate) * worse, 1)
        mu = reciprocal(self.noise_multiplier) * worse
        return sampled_gaussian_delta(epsilon, rate, mu, removing=True)

    def proven_profile(self) -> Profile:
        """Return that of the sample of a Gaussian, between all readings of mu and the rate."""
        rate = float(self.rate)
        low, high = (
            SampledProfile(GaussianProfile(self.mu * factor), min(rate * factor, 1.0))
            for factor in (LESS, MORE)
        )
        return IntervalProfile(low, high)

    def _reach(self, c: float, log_tolerance: float) -> float:
        """Return where the integral may end."""
        from hockeystick.kernels import fixed_size_gaussian

        return float(fixed_size_gaussian.reach(float(self.rate), self.mu, c, log_tolerance))

    @property
    def _rough(self) -> float:
        """The accuracy of the unproven cumulants, relative to M - 1, which is of order p^2."""
        return _ROUGH + 2.0 * math.log(float(self.rate) * min(self.mu, 1.0))

    def _rough_reach(self, c: float) -> float:
        """Return where the unproven sums end: relative to M, whose integrand peaks by (1+c) mu."""
        from hockeystick.kernels import fixed_size_gaussian

        u = (1.0 + c) * self.mu
        ratio = fixed_size_gaussian.log_ratio(float(self.rate), self.mu, u - 0.5 * self.mu)
        return self._reach(c, self._rough + max((1.0 + c) * ratio - 0.5 * u * u, 0.0))

    def quadrature_available(self, c: float) -> bool:
        """Return whether a quadrature of M at c takes no more than a few thousand nodes."""
        return not self.out_of_range and c <= _LARGEST_ORDER and self._rough_reach(c) < _LONGEST

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives by Gauss-Legendre on coarse panels."""
        if not self.quadrature_available(c):
            return convex_bound(float(self.rate), self.mu, c)
        from hockeystick.kernels import fixed_size_gaussian

        p, longest = float(self.rate), self._rough_reach(c)
        rule = _gauss_legendre(_ORDER)
        sums = fixed_size_gaussian.cumulant_sums(p, self.mu, c, longest, *rule)
        shift, value, slope, curvature = sums
        total = math.exp(-shift) + value
        slope /= total
        k = math.log1p(value) if shift == 0.0 else shift + math.log(total)
        return CGFEstimate(k, slope, max(curvature / total - slope * slope, 0.0))

    def cgf_bounds(self, c: float) -> Ball:
        """Return K with the proven error of its quadrature, or within its convex bound."""
        return self._cgf_bounds_within(c, _SHARP)

    def _cgf_bounds_within(self, c: float, log_accuracy: float) -> Ball:
        """Return K by a quadrature of that relative accuracy, or within its convex bound."""
        value = self.cgf_estimate(c).value if self.quadrature_available(c) else 0.0
        rule = None
        if value > 0.0:
            # An error of M counts relative to M, and then relative to a K below 1.
            rule = self.rule(c, 0.0, value + min(math.log(value), 0.0) + log_accuracy)
        if rule is not None:
            real, _, error = rule.line(c, 0.0, 1)
            if math.isfinite(float(real[0] + error[0])):
                return Ball(float(real[0]), float(error[0]))
        inner = 0.5 * c * (c + 1.0) * self.mu * self.mu
        upper = (
            convex_bound(float(self.rate), self.mu, c).value * (1.0 + 64.0 * ULP)
            + 16.0 * ULP * inner
        )
        return Ball(0.5 * upper, 0.5 * upper)

    def decay(self, c: float) -> AtomDecay:
        """Return the decay by the atom and a uniform minorant of the tilted density."""
        from hockeystick.kernels import uniform_minorant

        norm = self._cgf_bounds_within(c, _SURE)
        upper, error = norm.midpoint + norm.radius, 2.0 * norm.radius
        p = float(self.rate)
        width, mass, variation = uniform_minorant.level_sets(p, self.mu, c, True, upper, error)
        share = (self.atom + 4.0 * ULP) * math.exp(error - upper) * (1.0 + 1e-9)
        return AtomDecay(width, mass, float(variation), min(share, 1.0))

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> PanelRule | None:
        """Return Gauss-Legendre on panels with its proven error; None where none is fine enough."""
        from hockeystick.kernels import fixed_size_gaussian

        longest = self._reach(c_high, log_tolerance - 1.0)
        if not longest < _LONGEST:
            return None
        longest = math.ceil(64.0 * longest) / 64.0
        starts, halves, log_error = fixed_size_gaussian.panels(
            float(self.rate), self.mu, c_high, y_high, longest, _ORDER, log_tolerance
        )
        if not log_error < math.inf:
            return None
        # The tail beyond the panels is below exp(-1) of the tolerance.
        log_error = max(log_error, log_tolerance - 1.0) + 0.7
        return PanelRule(self, starts, halves, log_error)


@final
@dataclass(frozen=True, slots=True)
class AtomDecay:
    """An atom's share, a uniform minorant (widths, masses) of the rest, and its variation."""

    width: Array
    mass: Array
    variation: float
    atom: float

    def exponent(self, y: float) -> float:
        """Return a lower bound of ``-ln|M(c + i v)| / M(c)`` for all ``v >= y``.

        The atom and what is above the minorant do not decay; and the part without the atom is at
        most its total variation over v.
        """
        from hockeystick.kernels import uniform_minorant

        by_minorant = uniform_minorant.minorant_exponent(self.width, self.mass, math.inf, y)
        left = self.atom + self.variation / y
        return max(float(by_minorant), -math.log(left) if left < 1.0 else 0.0)


@final
@dataclass(frozen=True, slots=True)
class PanelRule:
    """Gauss-Legendre on panels in ``x = u - mu/2``, with a proven quadrature error."""

    loss: FixedSizeGaussianLoss
    starts: Array
    halves: Array
    log_error: float

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.starts.size * _ORDER

    def line(self, c: float, step: float, count: int) -> ContourValues:
        """Return ``ln M`` along the line, with quadrature and round-off error."""
        from hockeystick.kernels import fixed_size_gaussian

        with np.errstate(all="ignore"):
            loss, log_weight, loss_error, weight_error = fixed_size_gaussian.nodes(
                float(self.loss.rate),
                self.loss.mu,
                self.starts,
                self.halves,
                *_gauss_legendre(_ORDER),
            )
            peak = (log_weight + (c + 0.5) * loss).max(initial=0.0)
            shift = max(0.0, float(peak) - _COMFORTABLE)
            real, imag, error = fixed_size_gaussian.mgf_line(
                loss, log_weight - shift, loss_error, weight_error, c, step, count
            )
            error += np.exp(self.log_error - shift)
            return log_values(real, imag, error, shift)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        """Return ``ln M`` along the line by mpmath, over the same nodes."""
        from hockeystick.precision import fixed_size_gaussian
        from hockeystick.precision.profiles import reciprocal

        return fixed_size_gaussian.cgf_line(
            self.loss.rate,
            reciprocal(self.loss.noise_multiplier),
            list(zip(self.starts.tolist(), self.halves.tolist(), strict=True)),
            _ORDER,
            c=c,
            step=step,
            count=count,
        )


@dominating_pair_of_tradeoff.register
def _(tradeoff: SampledGaussianTradeOff) -> DominatingPair:
    if tradeoff.rate == 1.0:
        return gaussian_pair(tradeoff.mu)
    if tradeoff.rate == 0.0 or tradeoff.mu == 0.0:
        return DominatingPair(None, None)
    noise = 1.0 / tradeoff.mu
    if decimal(noise) * decimal(tradeoff.mu) > 1:
        noise = math.nextafter(noise, 0.0)
    loss = FixedSizeGaussianLoss(tradeoff.rate, noise)
    return DominatingPair(loss, loss)
