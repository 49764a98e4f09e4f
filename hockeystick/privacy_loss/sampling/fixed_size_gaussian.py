"""The loss of the Gaussian on a fixed-size sample, and the moments of sampled Gaussians.

Cumulants and moment bounds of sampled Gaussian noise: of ``(1-p) N(0, 1) + p N(mu, 1)``.

Cumulants are by quadrature over the output u, enclosures from cells of it. Beyond
``v = u - nu >= 20`` standard deviations of either normal, the loss is below
``t = mu u - mu^2/2 <= mu^2/2 + mu v`` and, with ``a = mu^2/2 + |c|``,

    Int (a + mu v)^k phi(v) dv <= (a + 20 mu)^k Int phi(v) e^(k (v-20)/20) dv < 1e-88 (a + 20 mu)^k

for k <= 3: ``phi(20) / (20 - 3/20) < 2.8e-89``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar, Final, final

import numpy as np

from hockeystick.kernels import fixed_size_gaussian, uniform_minorant
from hockeystick.numerics import ULP, Ball, decimal
from hockeystick.numerics.multiprecision import mp, mpc, mpf, working_digits
from hockeystick.precision.lines import fixed_size_gaussian_line, gauss_legendre
from hockeystick.precision.profiles import exact, reciprocal, sampled_gaussian_delta
from hockeystick.privacy_loss.bounds import moments
from hockeystick.privacy_loss.core.atomic import log_values, mgf_line
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    Array,
    CGFEstimate,
    ContourValues,
    DominatingPair,
    ProfiledLoss,
    both,
    dominating_pair_of_tradeoff,
)
from hockeystick.privacy_loss.core.composition import LESS, MORE, GaussianNoiseLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import edges_at, sampled_masses
from hockeystick.privacy_loss.guarantees import gaussian_pair
from hockeystick.tradeoffs import (
    GaussianProfile,
    IntervalProfile,
    Profile,
    SampledGaussianTradeOff,
    SampledProfile,
)

# Standard deviations beyond which nothing counts in cumulants, and nodes on each panel.
_REACH: Final = 14.0
_NODES: Final = 20
# Where cells end, in standard deviations, and where they get wide; how many of both there are.
_END: Final = 21.0
_WIDE: Final = 9.0
_NARROW_CELLS: Final = 60_000
_WIDE_CELLS: Final = 2_000
# What is left beyond the last cell.
_REST: Final = 1e-88
# Exponents up to this size are left unscaled.
_COMFORTABLE: Final = 200.0
# Nodes of a panel: an even number, about the best throughout.
_ORDER: Final = 24
# Beyond this c, or this range of x, only the convex bound of M is used.
_LARGEST_ORDER: Final = 1e8
_LONGEST: Final = 2000.0
# Relative accuracy of cumulants, as a logarithm: unproven, where digits count, and elsewhere.
_ROUGH: Final = -36.0
_SHARP: Final = -38.0
_SURE: Final = -14.0


@cache
def _gauss_legendre(order: int) -> tuple[Array, Array]:
    """Return ``1 + node`` and the weights, each rounded from more digits."""
    with working_digits(20):
        offset, weight = gauss_legendre(order, mp.prec)
    return np.array(offset, dtype=np.float64), np.array(weight, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True)
class FixedSizeGaussianLoss(GaussianNoiseLoss, AnalyticLoss, ProfiledLoss):
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
    def atom(self) -> float:
        """The mass of the outcomes without any loss, to a few units in the last place."""
        return (1.0 - float(self.rate)) * math.erf(self.mu / math.sqrt(8.0))

    @property
    def clt_mu_squared(self) -> float:
        # 2 p^2 times the integral of (e^(mu u - mu^2/2) - 1)^2 over u >= mu/2 under N(0, 1): Dong,
        # Roth and Su 2022, corollary 5.4.
        square = self.mu * self.mu
        if square > _COMFORTABLE:
            return math.inf
        near, far = math.erf(self.mu / math.sqrt(8.0)), math.erf(self.mu * math.sqrt(1.125))
        return float(self.rate) ** 2 * ((1.0 + far) * math.expm1(square) + far - 3.0 * near)

    def cumulants(self) -> moments.Cumulants | None:
        if self.out_of_range:
            return None
        right = _half(float(self.rate), self.mu, 1.0)
        return moments.of_signed_parts(right, right.swapped(), self.atom)

    def moment_bounds(self) -> moments.MomentBounds | None:
        if self.out_of_range:
            return None
        right = _cells(float(self.rate), self.mu, 1.0)
        # Readings of the rate move 1 - p by an ulp of p.
        slack = moments.SUM_ROUND_OFF * self.atom + 2.0 * ULP
        none = max(self.atom - slack, 0.0), self.atom + slack
        return moments.of_signed_cells(right, right.swapped(), _of_normals(self.mu), none)

    supremum: ClassVar[float] = math.inf

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        worse = 1 + perturbation * ULP
        rate = min(exact(self.rate) * worse, 1)
        mu = reciprocal(self.noise_multiplier) * worse
        return sampled_gaussian_delta(epsilon, rate, mu, removing=True)

    def proven_profile(self) -> Profile:
        rate = float(self.rate)
        low, high = (
            SampledProfile(GaussianProfile(self.mu * factor), min(rate * factor, 1.0))
            for factor in (LESS, MORE)
        )
        return IntervalProfile(low, high)

    def _reach(self, c: float, log_tolerance: float) -> float:
        return float(fixed_size_gaussian.reach(float(self.rate), self.mu, c, log_tolerance))

    def _rough_reach(self, c: float) -> float:
        """Return where the unproven sums end: relative to M, whose integrand peaks by (1+c) mu.

        They are accurate relative to M - 1, which is of order p^2.
        """
        u = (1.0 + c) * self.mu
        rough = _ROUGH + 2.0 * math.log(float(self.rate) * min(self.mu, 1.0))
        ratio = fixed_size_gaussian.log_ratio(float(self.rate), self.mu, u - 0.5 * self.mu)
        return self._reach(c, rough + max((1.0 + c) * ratio - 0.5 * u * u, 0.0))

    def quadrature_available(self, c: float) -> bool:
        return not self.out_of_range and c <= _LARGEST_ORDER and self._rough_reach(c) < _LONGEST

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if not self.quadrature_available(c):
            return CGFEstimate(*fixed_size_gaussian.convex_bound(float(self.rate), self.mu, c))
        p, longest = float(self.rate), self._rough_reach(c)
        rule = _gauss_legendre(_ORDER)
        found = fixed_size_gaussian.cumulant_sums(p, self.mu, c, longest, *rule)
        return CGFEstimate.of_sums(*found)

    def cgf_bounds(self, c: float, log_accuracy: float = _SHARP) -> Ball:
        value = self.cgf_estimate(c).value if self.quadrature_available(c) else 0.0
        known = self.cgf_by_rule(c, value, log_accuracy)
        if known:
            return known
        inner = 0.5 * c * (c + 1.0) * self.mu * self.mu
        convex = fixed_size_gaussian.convex_bound(float(self.rate), self.mu, c)[0]
        upper = convex * (1.0 + 64.0 * ULP) + 16.0 * ULP * inner
        return Ball(0.5 * upper, 0.5 * upper)

    def decay(self, c: float) -> moments.MinorantDecay:
        norm = self.cgf_bounds(c, _SURE)
        upper, error = norm.midpoint + norm.radius, 2.0 * norm.radius
        p = float(self.rate)
        width, mass, variation = uniform_minorant.level_sets(p, self.mu, c, True, upper, error)
        share = (self.atom + 4.0 * ULP) * math.exp(error - upper) * (1.0 + 1e-9)
        return moments.MinorantDecay(width, mass, float(variation), min(share, 1.0))

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> PanelRule | None:
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
class PanelRule:
    """Gauss-Legendre on panels in ``x = u - mu/2``, with a proven quadrature error."""

    loss: FixedSizeGaussianLoss
    starts: Array
    halves: Array
    log_error: float

    @property
    def nodes(self) -> int:
        return self.starts.size * _ORDER

    def line(self, c: float, step: float, count: int) -> ContourValues:
        with np.errstate(all="ignore"):
            of, panels = self.loss, (self.starts, self.halves, *_gauss_legendre(_ORDER))
            loss, log_weight, loss_error, weight_error = fixed_size_gaussian.nodes(
                float(of.rate), of.mu, *panels
            )
            # Each node is half on either side, times the root of its ratio.
            both, off = np.concatenate((loss, -loss)), np.tile(loss_error, 2)
            log_weight = np.tile(log_weight, 2) + 0.5 * both - math.log(2.0)
            unsure = np.tile(weight_error, 2) + 0.5 * off + 4.0 * ULP * (1.0 + np.abs(log_weight))
            shift = max(0.0, float((log_weight + c * both).max(initial=0.0)) - _COMFORTABLE)
            real, imag, error = mgf_line(both, log_weight - shift, off, unsure, c, step, count)
            return log_values(real, imag, error + np.exp(self.log_error - shift), shift)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        rate, mu = self.loss.rate, reciprocal(self.loss.noise_multiplier)
        panels = list(zip(self.starts.tolist(), self.halves.tolist(), strict=True))
        return fixed_size_gaussian_line(rate, mu, panels, _ORDER, c=c, step=step, count=count)


@dominating_pair_of_tradeoff.register
def _(tradeoff: SampledGaussianTradeOff) -> DominatingPair:
    if tradeoff.rate == 1.0:
        return gaussian_pair(tradeoff.mu)
    if tradeoff.rate == 0.0 or tradeoff.mu == 0.0:
        return DominatingPair(None, None)
    noise = 1.0 / tradeoff.mu
    if decimal(noise) * decimal(tradeoff.mu) > 1:
        noise = math.nextafter(noise, 0.0)
    return both(FixedSizeGaussianLoss(tradeoff.rate, noise))


def sampled_cumulants(p: float, mu: float, removing: bool) -> moments.Cumulants:
    """Return those of the mixture against N(0, 1) (removing), or the other way round."""
    left, right = _half(p, mu, -1.0), _half(p, mu, 1.0)
    return moments.of_signed_parts(
        *((right, left) if removing else (left.swapped(), right.swapped()))
    )


def sampled_moment_bounds(p: float, mu: float, removing: bool) -> moments.MomentBounds:
    """Return those of the mixture against N(0, 1) (removing), or the other way round."""
    left, right = _cells(p, mu, -1.0), _cells(p, mu, 1.0)
    parts = (right, left) if removing else (left.swapped(), right.swapped())
    return moments.of_signed_cells(*parts, _of_normals(mu))


def log_ratio(p: float, mu: float, u: Array) -> Array:
    """Return ``ln(1 - p + p exp(mu u - mu^2/2))``."""
    t = mu * u - 0.5 * mu * mu
    small = np.log1p(p * np.expm1(np.minimum(t, 30.0)))
    large = t + np.log(p + (1.0 - p) * np.exp(-np.maximum(t, 30.0)))
    return np.where(t > 30.0, large, small)


def _half(p: float, mu: float, sign: float) -> moments.SignedPart:
    """Return Gauss-Legendre nodes on panels that resolve ``ln r``; P is the mixture.

    They are where the mixture is the more likely one (1) or the less likely one (-1).
    """
    # The fourth power of a loss below 1 tilts the density by 5 mu; larger losses do not tilt it.
    furthest = max(mu, min(5.0 * mu, 0.5 * mu - math.log(p) / mu))
    low, high = (0.5 * mu, furthest + _REACH) if sign > 0.0 else (-_REACH, 0.5 * mu)
    panels = math.ceil((high - low) * max(mu, 1.0))
    edges = np.linspace(low, high, panels + 1)
    x, w = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 * np.diff(edges)[:, None]
    u = (edges[:-1, None] + half * (1.0 + x)).ravel()
    weight = (half * w).ravel() / math.sqrt(2.0 * math.pi)
    bare, shifted = weight * np.exp(-0.5 * u * u), weight * np.exp(-0.5 * (u - mu) ** 2)
    size = np.maximum(sign * log_ratio(p, mu, u), 0.0)
    return moments.SignedPart(size, (1.0 - p) * bare + p * shifted, bare)


def _of_normals(mu: float) -> moments.TailBound:
    return lambda power, offset: float(
        4.0 * _REST * (1.0 + 0.5 * mu * mu + offset + 20.0 * mu) ** power
    )


def _cells(p: float, mu: float, sign: float) -> moments.SignedCells:
    """Return cells that walk away from ``u = mu/2``, where the loss is 0; P is the mixture.

    They are where the mixture is the more likely one (1) or the less likely one (-1). The errors
    cover every reading of the parameters: ``d ln r / d t`` is the odds of having been sampled, and
    ``d ln r / d ln p = 1 - 1/r``.
    """
    near, far = (mu + _WIDE, mu + _END) if sign > 0.0 else (-_WIDE, -_END)
    narrow, wide = (0.5 * mu, near, _NARROW_CELLS + 1), (near, far, _WIDE_CELLS + 1)
    u = np.concatenate((np.linspace(*narrow), np.linspace(*wide)[1:]))
    size = sign * log_ratio(p, mu, u)
    odds = p * np.exp(mu * (u - 0.5 * mu) - sign * size)
    pull, reach = np.abs(np.expm1(-sign * size)), mu * np.abs(u) + mu * mu
    reach += abs(math.log(p)) * (sign * size > 0.0)
    error = ULP * (16.0 * odds * reach + 16.0 * pull + 16.0 * np.abs(size))
    # The cells begin where the loss is 0, exactly; it grows from there.
    size[0] = error[0] = 0.0
    if sign < 0.0:
        u, size = np.append(u, -math.inf), np.append(size, -math.log1p(-p))
        error = np.append(error, ULP * (16.0 * p / (1.0 - p) + 16.0 * size[-1]))
    sizes = moments.Range(np.maximum(size - error, 0.0)[:-1], (size + error)[1:])
    at = u[:: int(sign)]
    unsure = np.where(np.isinf(at), 0.0, 4.0 * ULP * (np.abs(at) + mu))
    found = sampled_masses(edges_at(at, unsure), p, (0.0, mu, 0.0))
    log_p, log_q, off = (one[:: int(sign)] for one in found)
    return moments.SignedCells(
        sizes, *(moments.Range(np.exp(one - off), np.exp(one + off)) for one in (log_p, log_q))
    )
