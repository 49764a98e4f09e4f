"""The loss of the Poisson-subsampled Gaussian mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.bounds.moments import (
    Cumulants,
    MinorantDecay,
    MomentBounds,
    sixth_moment_of_normal,
)
from hockeystick.privacy_loss.core.base import CGFEstimate, Masses, ProfiledLoss
from hockeystick.privacy_loss.core.composition import (
    LESS,
    MORE,
    largest_when_adding,
    mu_squared_upper,
)
from hockeystick.privacy_loss.core.uncertain_endpoints import DensityLoss, UncertainEdges
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import (
    FixedSizeGaussianLoss,
    convex_bound,
    sampled_cumulants,
    sampled_moment_bounds,
)
from hockeystick.privacy_loss.sampling.sampled import SubsamplingMap
from hockeystick.privacy_loss.sampling.sampled_gaussian_tail import (
    NearSampledGaussianLoss,
    SampledGaussian,
    SampledGaussianTailSplit,
    Trapezoid,
    edge_at,
    small_losses,
)
from hockeystick.tradeoffs import (
    GaussianProfile,
    IntervalProfile,
    Profile,
    SampledProfile,
    SwappedSampledProfile,
)

if TYPE_CHECKING:
    from mpmath import mpf

# Exponentials beyond this are taken as infinite.
_LARGEST_EXPONENT: Final = 700.0
# Exponents up to this size are left unscaled.
_COMFORTABLE: Final = 200.0
_NEAR_WINDOW: Final = 0.06
_WIDEST_WINDOW: Final = 0.1
# Beyond this c only the convex bound of M is used.
FARTHEST: Final = 1e8
# Relative accuracy of the proven cumulants, as a logarithm: where digits count, and where a part in
# a million is enough.
_SHARP: Final = -38.0
_SURE: Final = -14.0


@final
@dataclass(frozen=True, slots=True)
class SampledGaussianLoss(SampledGaussian, DensityLoss, ProfiledLoss):
    """The loss of ``(1-p) N(0, 1) + p N(mu, 1)`` against ``N(0, 1)``, or the other way round.

    With ``r(u) = 1 - p + p exp(mu u - mu^2/2)`` the loss of removing is ``ln r(U)`` under the
    mixture and that of adding ``-ln r(U)`` under N(0, 1), so that ``M(z) = E[r(U)^w]`` over
    N(0, 1), with ``w = 1 + z`` (removing) or ``w = -z`` (adding).

    References:
        Zhu, Dong and Wang, AISTATS 2022, theorem 11: the two pairs dominate Poisson sampling under
        add-remove adjacency, and a data set attains them.
    """

    # A float means the decimal that it prints as: it is no fraction that equals it.
    is_fraction: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        SampledGaussian.__post_init__(self)
        object.__setattr__(self, "is_fraction", isinstance(self.rate, Fraction))

    @property
    def out_of_range(self) -> bool:
        return not (1e-6 <= self.mu <= 25.0 and 1e-10 <= self.p <= 1.0 - 1e-7)

    def quadrature_available(self, c: float) -> bool:
        if self.out_of_range or c > FARTHEST:
            return False
        from hockeystick.kernels import sampled_gaussian

        return sampled_gaussian.within_reach(self.p, self.mu, self.removing, c)

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if self.out_of_range or c > FARTHEST:
            return convex_bound(self.p, self.mu, c)
        from hockeystick.kernels import sampled_gaussian

        found = sampled_gaussian.cgf_estimate(self.p, self.mu, self.removing, c)
        return convex_bound(self.p, self.mu, c) if math.isnan(found[0]) else CGFEstimate(*found)

    def cgf_bounds(self, c: float) -> Ball:
        return self._cgf_bounds_within(c, _SHARP)

    def _cgf_bounds_within(self, c: float, log_accuracy: float) -> Ball:
        """Return K by a quadrature of that relative accuracy, or within its convex bound."""
        value = self.cgf_estimate(c).value if self.quadrature_available(c) else 0.0
        known = self.cgf_by_rule(c, value, log_accuracy, of_transform=False)
        return known or self._between_bounds(c)

    def _between_bounds(self, c: float) -> Ball:
        """Return K between bounds without quadrature: 0, convexity, the largest loss, the norm."""
        inner = 0.5 * c * (c + 1.0) * self.mu * self.mu
        upper = convex_bound(self.p, self.mu, c).value * (1.0 + 64.0 * ULP) + 16.0 * ULP * inner
        lower, upper = 0.0, min(upper, c * self.supremum)
        if upper == math.inf:
            return Ball(math.inf, 0.0)
        if self.removing:
            least, most = self._norm_bounds(c)
            lower, upper = max(least, lower), min(most, upper)
        half = 0.5 * (upper - lower)
        return Ball(lower + half, half + 2.0 * ULP * upper)

    def _norm_bounds(self, c: float) -> tuple[float, float]:
        """Return ends of K for removing; ``r = 1 - p + p e^t``, ``w = 1 + c`` and ``x = c mu^2/2``.

        ``(1-p)^w + (p e^x)^w <= E[r^w]``, as ``(a + b)^w >= a^w + b^w``, and by Minkowski's
        inequality ``E[r^w]^(1/w) <= 1 - p + p e^x``. The two meet where the sampled part decides.
        """
        p, w, x = self.p, 1.0 + c, 0.5 * c * self.mu * self.mu
        log_p = math.log(p)
        if x > _LARGEST_EXPONENT:
            one, share = x + log_p + math.log1p((1.0 - p) * math.exp(-x - log_p)), 1.0
        else:
            one = math.log1p(p * math.expm1(x))
            share = p * math.exp(x) / (1.0 + p * math.expm1(x))
        most = w * (one + 32.0 * ULP * (one + share * (x - log_p + 1.0)))
        seen, unseen = w * (x + log_p), w * math.log1p(-min(p, 1.0 - ULP))
        high, low = max(seen, unseen), min(seen, unseen)
        least = high + math.log1p(math.exp(low - high))
        return least - 32.0 * ULP * (w * (x - log_p) - unseen + abs(least)), most

    @property
    def clt_mu_squared(self) -> float:
        """Return ``p^2 (exp(mu^2) - 1)``, in either direction.

        References:
            Bu, Dong, Long and Su 2020, "Deep learning with Gaussian differential privacy".
        """
        square, rate = self.mu * self.mu, self.p
        return rate * rate * math.expm1(square) if square < _LARGEST_EXPONENT else math.inf

    @property
    def dominating_mu_squared(self) -> Fraction:
        return mu_squared_upper(self.noise_multiplier)

    def cumulants(self) -> Cumulants | None:
        return None if self.out_of_range else sampled_cumulants(self.p, self.mu, self.removing)

    def moment_bounds(self) -> MomentBounds | None:
        return None if self.out_of_range else sampled_moment_bounds(self.p, self.mu, self.removing)

    @property
    def sixth_moment_upper(self) -> float:
        return sixth_moment_of_normal(0.5 * self.mu * self.mu, self.mu)

    @property
    def supremum(self) -> float:
        return math.inf if self.removing else largest_when_adding(self.rate)

    @property
    def infimum(self) -> float:
        return -largest_when_adding(self.rate) if self.removing else -math.inf

    @property
    def symmetrized_quadrature(self) -> FixedSizeGaussianLoss | None:
        """The loss with the trade-off function ``C_p(G_mu)``: removing, mirrored."""
        if not self.removing or self.out_of_range:
            return None
        return FixedSizeGaussianLoss(self.rate, float(self.noise_multiplier))

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        inner = GaussianLoss(self.noise_multiplier)
        return SubsamplingMap(self.rate, self.removing).masses(inner, edges)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        from hockeystick.precision.profiles import exact, reciprocal, sampled_gaussian_delta

        worse = 1 + perturbation * ULP
        rate = min(exact(self.rate) * worse, 1)
        mu = reciprocal(self.noise_multiplier) * worse
        return sampled_gaussian_delta(epsilon, rate, mu, self.removing)

    def proven_profile(self) -> Profile:
        return IntervalProfile(self._profile(LESS), self._profile(MORE))

    def _profile(self, factor: float) -> Profile:
        inner, rate = GaussianProfile(self.mu * factor), min(self.p * factor, 1.0)
        return SampledProfile(inner, rate) if self.removing else SwappedSampledProfile(inner, rate)

    def decay(self, c: float) -> MinorantDecay:
        from hockeystick.kernels import uniform_minorant

        p, mu, w = self.p, self.mu, self.power(c)
        norm = self._cgf_bounds_within(c, _SURE)
        upper, error = norm.midpoint + norm.radius, 2.0 * norm.radius
        return MinorantDecay(*uniform_minorant.level_sets(p, mu, w, False, upper, error))

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> Trapezoid | None:
        from hockeystick.kernels import sampled_gaussian

        step, first, nodes, log_error = sampled_gaussian.trapezoid_rule(
            self.p, self.mu, self.removing, c_high, y_high, log_tolerance
        )
        return Trapezoid(self, step, first, nodes, log_error) if step > 0.0 else None

    @property
    def opposite(self) -> SampledGaussianLoss:
        return replace(self, removing=not self.removing)

    def far_mode(self, c: float) -> tuple[float, float]:
        """Return ln of the odds of a hit at ``u = (c + 1/2) mu``, and of ``p^w E[e^(w t)]``."""
        from hockeystick.kernels import sampled_gaussian

        return sampled_gaussian.far_mode(self.p, self.mu, self.removing, c)

    def delta_estimate(self, epsilon: float) -> float:
        """Return delta of one run by its closed form, that of the noise at an amplified epsilon."""
        if epsilon > _COMFORTABLE:
            return 0.0
        grown = math.expm1(epsilon) if self.removing else math.expm1(-epsilon)
        if grown <= -self.p:
            return 0.0
        middle, half = math.log1p(grown / self.p) / self.mu, 0.5 * self.mu
        if self.removing:
            lost = (1.0 + grown / self.p) * _tail(middle + half)
            return self.p * max(_tail(middle - half) - lost, 0.0)
        kept = self.p - math.expm1(epsilon) * (1.0 - self.p)
        return max(
            kept * _tail(-middle - half) - math.exp(epsilon) * self.p * _tail(half - middle), 0.0
        )

    def near_outputs(self, threshold: float, steepness: float) -> NearSampledGaussianLoss | None:
        """Return the loss without the outputs of ``|L|`` beyond a threshold; None out of range.

        At c the window ``exp(-x^2 / 2 width^2)`` still cuts off ``r^c ~ exp(c (mu x + ln L))``
        where ``(c mu width)^2 / 2`` is below ``-c ln L``.
        """
        if not 0.0 < threshold <= _LARGEST_EXPONENT:
            return None
        edge = edge_at(threshold, self.p, self.mu)
        narrow = math.sqrt(max(-math.log(threshold), 1.0) * threshold / steepness)
        width = min(min(_NEAR_WINDOW, narrow) / self.mu, _WIDEST_WINDOW)
        return NearSampledGaussianLoss(self.rate, self.noise_multiplier, self.removing, edge, width)

    def tail_split(self, threshold: float) -> SampledGaussianTailSplit | None:
        small = self.removing and small_losses(self.rate, self.noise_multiplier, threshold)
        return SampledGaussianTailSplit(self, small) if small else None


def _tail(x: float) -> float:
    """Return the mass of N(0, 1) above x."""
    return 0.5 * math.erfc(x * math.sqrt(0.5))
