"""Losses on a Poisson sample: an increasing map of the values, and mixtures of the masses.

Removing, ``P' = (1-p) Q + p P`` against Q, the loss is ``f(l) = ln(1 - p + p e^l)``; adding,
``P`` against ``(1-p) P + p Q``, it is ``-f(-l)``. Cells map to cells and atoms to atoms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, final

import numpy as np

from hockeystick.numerics import ULP, decimal
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision.profiles import exact, reciprocal, replaced_gaussian_delta
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, lowest, of_ends, sixth_power
from hockeystick.privacy_loss.core.atomic import LOG_LEAST_MASS, AtomicLoss, kept
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    Array,
    Atoms,
    ClosedFormProfile,
    Masses,
    PrivacyLoss,
    ProfiledLoss,
    sampled_loss,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss, UnboundedLoss
from hockeystick.privacy_loss.core.composition import (
    GaussianNoiseLoss,
    complement_bounds,
    log_complement,
    log_mixed,
    mu_squared_upper,
)
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    DensityLoss,
    UncertainEdges,
    log_mixture,
    masses_between,
    mirrored,
    no_atoms,
    sampled_masses,
)

# Likelihood ratios beyond this are handled as logarithms.
_LARGE: Final = 1e3
# The largest relative error of a likelihood ratio.
_LARGEST_ERROR: Final = 0.05
# Where a loss has only an upper bound it is taken as this, with an error up to the bound.
_LOWEST: Final = -1e9


@final
@dataclass(frozen=True, slots=True)
class SubsamplingMap:
    """The map of losses by Poisson sampling at a rate in (0, 1), in one direction."""

    rate: float | Fraction
    removing: bool

    @property
    def complement(self) -> float:
        """``1 - p``, as the rate to within half a unit in the last place of itself."""
        return float(1 - decimal(self.rate))

    def supremum(self, inner: float) -> float:
        """Return an upper bound of the image of losses up to ``inner``."""
        return self._image(inner, 1.0) if self.removing else -self._image(-inner, -1.0)

    def infimum(self, inner: float) -> float:
        """Return a lower bound of the image of losses down to ``inner``."""
        return self._image(inner, -1.0) if self.removing else -self._image(-inner, 1.0)

    def _image(self, loss: float, side: float) -> float:
        """Return ``f(l)``, rounded up (1) or down (-1)."""
        if math.isinf(loss):
            return loss if loss > 0.0 else complement_bounds(self.rate)[int(side > 0.0)]
        value, error = (float(one[0]) for one in self._forward(np.array([loss])))
        return (value + side * error) * (1.0 + side * math.copysign(ULP, value))

    def atoms(self, inner: Atoms) -> Atoms:
        """Return the images of atoms; the error covers that of the loss as well."""
        if self.removing:
            loss, excess_error = self._forward(inner.loss)
            log_p = inner.log_p - inner.loss + loss
            excess_error = excess_error + 4.0 * ULP * np.abs(inner.loss)
        else:
            minus, excess_error = self._forward(-inner.loss)
            loss, log_p = -minus, inner.log_p
        sizes = np.abs(inner.log_p) + np.abs(inner.loss) + np.abs(loss)
        return Atoms(loss, log_p, inner.error + excess_error + ULP * sizes)

    def masses(self, inner: CellLoss, edges: UncertainEdges) -> Masses:
        """Return the masses between edges of the sampled loss, of the part without atoms."""
        with np.errstate(all="ignore"):
            at = self._backward(edges if self.removing else mirrored(edges))
        own = masses_between(inner, at if self.removing else mirrored(at))
        log_p, log_q = (own.log_p, own.error), (own.log_q, own.error)
        if self.removing:
            log_p = log_mixture(log_q, self.complement, log_p, float(self.rate))
        else:
            log_q = log_mixture(log_p, self.complement, log_q, float(self.rate))
        return Masses.of(log_p, log_q)

    def _forward(self, loss: Array) -> tuple[Array, Array]:
        """Return ``f(l)`` of losses known to 4 ulp, and the error."""
        p, complement = float(self.rate), self.complement
        with np.errstate(all="ignore"):
            grown = p * np.expm1(np.minimum(loss, 600.0))
            ratio = 1.0 + grown
            middle = np.log1p(grown)
            low = np.log(complement + p * np.exp(np.minimum(loss, 0.0)))
            far = loss + math.log(p) + np.log1p(complement * np.exp(-np.maximum(loss, 600.0)) / p)
            value = np.where(loss > 600.0, far, np.where(grown > -0.5, middle, low))
            share = np.where(loss > 600.0, 1.0, p * np.exp(np.minimum(loss, 600.0)) / ratio)
            cancelled = np.where(grown > -0.5, np.abs(grown) / ratio, 1.0)
            cancelled = np.where(loss > 600.0, np.abs(loss) + abs(math.log(p)), cancelled)
        error = 4.0 * ULP * np.abs(loss) * np.minimum(1.01 * share, 1.0)
        return value, error + ULP * (7.0 * cancelled + 4.0 * np.abs(value))

    def _backward(self, edges: UncertainEdges) -> UncertainEdges:
        """Return ``ln(1 + (e^l' - 1)/p)`` of edges, and of widths ``ln(1 + g (e^w' - 1))``.

        ``g = e^l' / (p e^l)`` at the lower edge. Large likelihood ratios u are logarithms.
        """
        p, given = float(self.rate), edges.at
        excess = np.expm1(given) / p
        excess_error = (1.0 + p * excess) * edges.error / p + 10.0 * ULP * np.abs(excess)
        relative = excess_error / (1.0 + excess)
        less = -np.expm1(-given)
        log_excess = given + np.log(less) - math.log(p)
        large = excess > _LARGE
        at = np.where(large, log_excess + np.log1p(np.exp(-log_excess)), np.log1p(excess))
        sizes = np.abs(given) + np.abs(np.log(less)) + abs(math.log(p))
        far = edges.error / less + ULP * (4.0 * sizes + 8.0)
        relative = np.where(large, far, relative)
        known = (excess > -1.0) & (relative < _LARGEST_ERROR)
        error = 1.1 * relative + 4.0 * ULP * np.abs(at)
        most = np.log(np.maximum(1.0 + excess, 0.0) + 1.1 * excess_error) + 1e-6
        error = np.where(known, error, most - _LOWEST)
        at = np.where(known, at, _LOWEST)
        below = given + edges.error <= complement_bounds(self.rate)[0]
        at = np.where(below, -math.inf, np.where(given == math.inf, math.inf, at))
        error = np.where(np.isinf(at), 0.0, error)
        growth = np.where(
            large, 1.0 / (less * (1.0 + np.exp(-log_excess))), (1.0 / p + excess) / (1.0 + excess)
        )[:-1]
        width = np.log1p(growth * np.expm1(edges.width))
        ends = np.isinf(at[:-1]) | np.isinf(at[1:])
        merged = np.isinf(at[1:]) & (at[1:] < 0.0)
        width_error = (1.0 + edges.width) * edges.width_error + 2.2 * relative[:-1] + 16.0 * ULP
        return UncertainEdges(
            at,
            error,
            np.where(merged, 0.0, np.where(ends, math.inf, width)),
            np.where(ends, 0.0, np.where(known[:-1], width_error, math.inf)),
        )


@dataclass(frozen=True, slots=True)
class SubsampledLoss(CellLoss):
    """The base of all losses on a Poisson sample, by the ``SubsamplingMap`` of the inner loss."""

    inner: CellLoss
    rate: float | Fraction
    removing: bool

    @property
    def _map(self) -> SubsamplingMap:
        return SubsamplingMap(self.rate, self.removing)

    @kept(64)
    def atoms(self) -> Atoms:
        return self._map.atoms(self.inner.atoms())

    @property
    def attained(self) -> PrivacyLoss | None:
        known = self.inner.attained
        if known is None or known is self.inner:
            return known and self
        alone = self.inner.attained_in_samples
        return sampled_loss(known, self.rate, self.removing) if alone else None

    @property
    def supremum(self) -> float:
        return self._map.supremum(self.inner.supremum)

    @property
    def infimum(self) -> float:
        return self._map.infimum(self.inner.infimum)

    @property
    def unsampled(self) -> CellLoss:
        return self.inner

    @property
    def endpoint_tolerance(self) -> float:
        """That of the inner loss: the map has slope at most 1."""
        return self.inner.endpoint_tolerance

    @property
    def clt_mu_squared(self) -> float:
        exponent = self.inner.cgf_estimate(1.0).value
        if exponent > LARGEST_EXPONENT:
            return math.inf
        return float(self.rate) ** 2 * math.expm1(exponent)

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        return self.inner.dominating_mu_squared

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 - p + p e^k)``, with k that of the inner loss: powers are convex."""
        return log_mixed(self.inner.cgf_upper(c), float(self.rate))

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the line by the ends, or by quasi-convexity that of the inner loss."""
        return lowest((of_ends(self.infimum, self.supremum), self.inner.zcdp_line()))

    @property
    def sixth_moment_upper(self) -> float:
        """That by the ends, or of the inner loss: sampling reduces ``|L|``."""
        by_ends = sixth_power(max(-self.infimum, self.supremum))
        return min(by_ends, self.inner.sixth_moment_upper)


@final
@dataclass(frozen=True, slots=True)
class SampledLoss(SubsampledLoss, DensityLoss):
    """The loss of ``(1-p) Q + p P`` against Q (removing), or P against ``(1-p) P + p Q`` (adding).

    ``inner`` is the loss of P against Q in the same direction; p is neither 0 nor 1.

    References:
        Zhu, Dong and Wang, AISTATS 2022, theorem 11: the two pairs dominate Poisson sampling under
        add-remove adjacency.
    """

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        inner = self.inner.closed_form_profile
        return None if inner is None else partial(sampled_delta, inner, self.rate, self.removing)

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        return self._map.masses(self.inner, edges)


def sampled_delta(
    inner: ClosedFormProfile,
    rate: float | Fraction,
    removing: bool,
    epsilon: mpf,
    perturbation: int = 0,
) -> mpf:
    """Return the profile of a sampled loss at an epsilon >= 0, from the inner profile d.

    Removing, ``p d(ln(1 + (e^eps - 1)/p))``; adding, with ``c = 1 - e^eps (1-p)``,
    ``c d(-ln(1 - (1 - e^-eps)/p))`` while c is positive, and 0 from there on:
    ``P - e^eps ((1-p) P + p Q) = c P - e^eps p Q``. Both ask d for an epsilon >= 0 only.
    """
    guard = 64 + 2 * max(0, -int(mp.mag(exact(rate))))
    with mp.extraprec(guard):
        chance = min(exact(rate) * (1 + perturbation * mp.mpf(ULP)), 1)
        if removing:
            factor, at = chance, mp.log1p(mp.expm1(epsilon) / chance)
        elif chance < 1 and epsilon >= -mp.log1p(-chance):
            return mp.zero
        else:
            factor = 1 - mp.exp(epsilon) * (1 - chance)
            left = 1 + mp.expm1(-epsilon) / chance
            if left <= 0 or factor <= 0:
                return mp.zero
            at = -mp.log1p(mp.expm1(-epsilon) / chance)
    return +(factor * inner(+at, perturbation))


@final
@dataclass(frozen=True, slots=True)
class SampledAtomsLoss(SubsampledLoss, AtomicLoss):
    """``SampledLoss`` of a loss with atoms only, which it has too.

    Removing, an atom at l has ``p + (1-p) e^-l`` times its probability; adding, the same.
    """

    inner: AtomicLoss

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        rate = exact(self.rate)
        losses, masses = self.inner.nodes(first, count)
        if self.removing:
            masses = [
                mass * (rate + (1 - rate) * mp.exp(-loss))
                for loss, mass in zip(losses, masses, strict=True)
            ]
            return [mp.log1p(rate * mp.expm1(loss)) for loss in losses], masses
        return [-mp.log1p(rate * mp.expm1(-loss)) for loss in losses], masses

    def log_omitted_moment(self, c: float) -> float:
        """Return the inner bound and Q's: a sampled loss is at most the inner one's positive part.

        Removing, an outcome has at most its masses under P and under Q together. Adding, the loss
        is bounded whatever the inner one is.
        """
        left = self.inner.log_omitted_moment(c)
        if left == -math.inf:
            return left
        bounded = LOG_LEAST_MASS + c * max(self.supremum, 0.0)
        return min(max(left, LOG_LEAST_MASS), bounded) + math.log(2.0)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        return sampled_delta(self.inner.delta, self.rate, self.removing, epsilon, perturbation)


_LN_2: Final = math.log(2.0)
# Beyond this sinh is half an exponential, and the loss moves as fast as the output.
_STEEP: Final = 300.0
# Beyond this the inverse of sinh is a logarithm.
_LOGARITHMIC: Final = 20.0


@final
@dataclass(frozen=True, slots=True)
class ReplacedGaussianLoss(GaussianNoiseLoss, UnboundedLoss, ProfiledLoss):
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
    def clt_mu_squared(self) -> float:
        """``2 p^2 (e^(mu^2) - e^(-mu^2))``, the square of the difference over N(0, 1)."""
        square = self.mu * self.mu
        if square > LARGEST_EXPONENT:
            return math.inf
        return 4.0 * float(self.rate) ** 2 * math.sinh(square)

    @property
    def dominating_mu_squared(self) -> Fraction:
        """That of twice the distance: a sampled example moves the sum from one side to another."""
        return 4 * mu_squared_upper(self.noise_multiplier)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 - p + p exp(2 c (c+1) mu^2))``, rounded up: powers are convex."""
        exponent = 2.0 * c * (c + 1.0) * self.mu * self.mu * (1.0 + 16.0 * ULP)
        return log_mixed(exponent, float(self.rate))

    def atoms(self) -> Atoms:
        return no_atoms()

    def cells(self, edges: Array) -> Masses:
        with np.errstate(all="ignore"):
            at = self._outputs(np.asarray(edges, dtype=np.float64))
        return sampled_masses(at, self.rate, (0.0, self.mu, -self.mu))

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
        near = np.arcsinh(np.exp(np.minimum(exponent, _LOGARITHMIC)))
        bend = np.where(exponent > _LOGARITHMIC, exponent + _LN_2, near)
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
        worse = 1 + perturbation * ULP
        rate, mu = min(exact(self.rate) * worse, 1), reciprocal(self.noise_multiplier) * worse
        return replaced_gaussian_delta(epsilon, rate, mu)


def _far_apart(half: Array) -> Array:
    """Return where neighbouring points are on both sides of 0, or one is twice the other."""
    sizes = np.abs((half[1:], half[:-1]))
    far = np.maximum(*sizes) > 2.0 * np.minimum(*sizes)
    return np.asarray((half[1:] * half[:-1] <= 0.0) | far)


def _bends(half: Array, log_k: float) -> Array:
    """Return ``asinh(k sinh t)`` between neighbouring points t on the same side of 0."""
    first, second = np.abs(half[:-1]), np.abs(half[1:])
    low, high = np.minimum(first, second), np.maximum(first, second)
    gap = np.abs(np.diff(half))
    steep = low > _STEEP
    low, high = np.where(steep, 1.0, low), np.where(steep, 1.0, high)
    root = math.exp(-2.0 * min(max(log_k, -LARGEST_EXPONENT), LARGEST_EXPONENT))
    below, above = np.sinh(low), np.sinh(high)
    roots = np.sqrt(root + below**2), np.sqrt(root + above**2)
    difference = 2.0 * np.cosh(0.5 * (low + high)) * np.sinh(0.5 * gap)
    growth = difference * (1.0 + (below + above) / (roots[0] + roots[1])) / (below + roots[0])
    return np.asarray(np.where(steep, gap, np.log1p(growth)))
