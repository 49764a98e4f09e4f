"""The AboveThreshold pair: a loss plus a constant, made to hold in both directions.

Where a pair (A, B) bounds the likelihood ratio of a release up to a factor ``e^s``, in either
direction, the profile H of the release has, with ``x = e^eps`` and D the profile of (A, B),

    H(x) <= D(x e^-s)    and, by reflection,    H(x) <= 1 - x + x D(e^-s / x),

the first the smaller for x > 1, the second for x < 1. H is convex in x, so that it is also below
the chord between ``x = e^-g`` and ``x = e^g``, for any g. The result is a pair whose loss is that
of (A, B) plus s above g, its reflection below -g, and randomized response of g on the remaining
mass: atoms at g and -g.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.numerics.rounding import as_mpf
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.bounds.sixth_moments import sixth_moment_of_normal, sixth_power
from hockeystick.privacy_loss.core.base import Atoms, CGFEstimate, Masses
from hockeystick.privacy_loss.core.cell_loss import CellLoss, UnboundedLoss
from hockeystick.privacy_loss.core.rates import mu_of
from hockeystick.privacy_loss.core.uncertain_endpoints import UncertainEdges
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.kernels.series import Array

_TINY: Final = 5e-324
_LN_2: Final = math.log(2.0)
# Decimal digits beyond those that cancel.
_DIGITS: Final = 30


class _AboveThresholdLoss(CellLoss):
    """A loss whose values between -g and g are moved to g and -g, with a closed-form K."""

    __slots__ = ()

    @abstractmethod
    def _cumulants(self, c: float) -> tuple[mpf, mpf, mpf]:
        """Return K and two derivatives, with the digits that cancel."""

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives."""
        value, slope, curvature = self._cumulants(c)
        return CGFEstimate(float(value), float(slope), float(curvature))

    def cgf_bounds(self, c: float) -> Ball:
        """Return K and its rounding."""
        value = float(self._cumulants(c)[0])
        return Ball(value, 4.0 * ULP * value + _TINY)


@final
@dataclass(frozen=True, slots=True)
class AboveThresholdLaplaceLoss(_AboveThresholdLoss):
    """The pair of a Laplace loss of supremum e plus the constant s.

    ``E = e + s`` is the largest loss, ``inner`` is ``g = (s - e)_+``. Where ``s <= e``, g is 0, and
    it is the Laplace loss of ``e + s``. With k = c + 1/2

        M(c) = exp(-E/2) (cosh(k E) + (sinh(k E) - sinh(k g)) / (2k) + tanh(g/2) cosh(k g)).

    Both numbers are exactly these floats; the loss grows with E and g. ``0 <= g < E``.
    """

    largest: float
    inner: float

    @property
    def supremum(self) -> float:
        """E."""
        return self.largest

    @property
    def infimum(self) -> float:
        """Minus E."""
        return -self.largest

    def atoms(self) -> Atoms:
        """Return the atoms at -E and E and, where g > 0, at -g and g."""
        end, inner = self.largest, self.inner
        if inner == 0.0:
            return Atoms(
                np.array([-end, end]),
                np.array([-end - _LN_2, -_LN_2]),
                np.array([ULP * (2.0 * end + 2.0), 2.0 * ULP]),
            )
        # The atoms at -g and g together have the mass exp(-E/2) sinh(g/2), under P and under Q.
        within = 0.5 * (inner - end) + math.log(-math.expm1(-inner)) - _LN_2
        up = within - math.log1p(math.exp(-inner))
        error = ULP * (4.0 * end + 4.0 * abs(math.log(-math.expm1(-inner))) + 16.0)
        return Atoms(
            np.array([-end, -inner, inner, end]),
            np.array([-end - _LN_2, up - inner, up, -_LN_2]),
            np.full(4, error),
        )

    def cells(self, edges: Array) -> Masses:
        """Return ``exp((high - E)/2) (1 - exp(-width/2)) / 2`` above g and below -g."""
        sides = [self._side(np.clip(edges, -self.largest, -self.inner))]
        sides.append(self._side(np.clip(edges, self.inner, self.largest)))
        log_p = np.logaddexp(sides[0].log_p, sides[1].log_p)
        log_q = np.logaddexp(sides[0].log_q, sides[1].log_q)
        return Masses(log_p, log_q, np.maximum(sides[0].error, sides[1].error) + 8.0 * ULP)

    def _side(self, inside: Array) -> Masses:
        """Return the masses between edges above g or below -g."""
        width = np.diff(inside)
        with np.errstate(divide="ignore"):
            log_part = np.log(-0.5 * np.expm1(-0.5 * width))
        log_p = 0.5 * (inside[1:] - self.largest) + log_part
        log_q = -0.5 * (inside[:-1] + self.largest) + log_part
        sizes = np.where(width > 0.0, np.abs(log_part), 0.0)
        return Masses(log_p, log_q, ULP * (8.0 * self.largest + 8.0 * sizes + 16.0))

    def _cumulants(self, c: float) -> tuple[mpf, mpf, mpf]:
        """Return K and two derivatives, with the digits that cancel."""
        from hockeystick.numerics.multiprecision import mp

        with working_digits(_digits(c, self.largest)):
            k, end, inner = mp.mpf(c) + mp.mpf("0.5"), mp.mpf(self.largest), mp.mpf(self.inner)
            over, over_inner = mp.exp(k * end), mp.exp(k * inner)
            cosh, sinh = (over + 1 / over) / 2, (over - 1 / over) / 2
            cosh_inner, sinh_inner = (
                (over_inner + 1 / over_inner) / 2,
                (over_inner - 1 / over_inner) / 2,
            )
            share = mp.tanh(inner / 2)
            between = (sinh - sinh_inner) / (2 * k)
            first = (end * cosh - inner * cosh_inner) / (2 * k)
            second = (end**2 * sinh - inner**2 * sinh_inner) / (2 * k)
            moment = cosh + between + share * cosh_inner
            slope = end * sinh + first - between / k + share * inner * sinh_inner
            second = end**2 * cosh + second - 2 * first / k + 2 * between / k**2
            second += share * inner**2 * cosh_inner
            return _from_moment(mp.log(moment) - end / 2, slope / moment, second / moment)


@final
@dataclass(frozen=True, slots=True)
class AboveThresholdGaussianLoss(_AboveThresholdLoss, UnboundedLoss):
    """The pair of a Gaussian loss plus s: ``N(mu^2/2 + s, mu^2)`` above g, and its reflection.

    g (``inner``) is so large that the mass above g and below -g is at most 1 (``of`` finds one);
    the remaining mass m is randomized response of g. With ``k = c + 1/2`` and ``y = g - s``

        M(c) = exp(mu^2 c (c+1) / 2) (e^(c s) Phi(mu k - y/mu) + e^(-(c+1) s) Phi(-mu k - y/mu))
               + m cosh(k g) / cosh(g/2).
    """

    noise_multiplier: Fraction
    shift: float
    inner: float

    @classmethod
    def of(cls, noise_multiplier: Fraction, shift: float) -> AboveThresholdGaussianLoss:
        """Return the loss with g slightly above the least possible one."""
        from hockeystick.numerics.roots import increasing_root

        def remaining(inner: float) -> float:
            return float(_inner_mass(noise_multiplier, shift, max(inner, 0.0))) - 1e-3

        spread = shift + float(1 / noise_multiplier)
        inner = max(increasing_root(remaining, shift, stride=spread, tolerance=1e-6 * spread), 0.0)
        while _inner_mass(noise_multiplier, shift, inner) <= 0:
            inner += 1e-3 * spread
        return cls(noise_multiplier, shift, inner)

    @property
    def sixth_moment_upper(self) -> float:
        """That of the atoms, and of a Gaussian plus a shift on either side."""
        mu = float(1 / self.noise_multiplier)
        return sixth_power(self.inner) + 2.0 * sixth_moment_of_normal(
            0.5 * mu * mu + self.shift, mu
        )

    def atoms(self) -> Atoms:
        """Return the atoms at -g and g."""
        rest = math.log(float(_inner_mass(self.noise_multiplier, self.shift, self.inner)))
        up = rest - math.log1p(math.exp(-self.inner))
        error = ULP * (4.0 * abs(rest) + 4.0 * self.inner + 8.0)
        ends = np.array([-self.inner, self.inner])
        return Atoms(ends, np.array([up - self.inner, up]), np.full(2, error))

    def cells(self, edges: Array) -> Masses:
        """Return the masses above g and below -g."""
        above = self._above(np.maximum(edges, self.inner))
        mirrored = self._above(np.maximum(-edges[::-1], self.inner))
        log_p = np.logaddexp(above.log_p, mirrored.log_q[::-1])
        log_q = np.logaddexp(above.log_q, mirrored.log_p[::-1])
        return Masses(log_p, log_q, np.maximum(above.error, mirrored.error[::-1]) + 8.0 * ULP)

    def _above(self, edges: Array) -> Masses:
        """Return the masses above g: those of the Gaussian loss, shifted by s."""
        at = edges - self.shift
        finite = np.isfinite(edges)
        error = np.where(finite, ULP * (np.abs(edges) + self.shift), 0.0)
        with np.errstate(invalid="ignore"):
            width = np.diff(edges)
        width = np.where(np.isnan(width), 0.0, width)
        inner = GaussianLoss(self.noise_multiplier).uncertain_cells(
            UncertainEdges(at, error, width, np.full(width.size, ULP))
        )
        empty = width == 0.0
        log_p = np.where(empty, -math.inf, inner.log_p)
        log_q = np.where(empty, -math.inf, inner.log_q - self.shift)
        kept = np.where(np.isfinite(log_q), np.abs(log_q), 0.0)
        error = inner.error + ULP * (kept + self.shift)
        return Masses(log_p, log_q, np.where(empty, 0.0, error))

    def _cumulants(self, c: float) -> tuple[mpf, mpf, mpf]:
        """Return K and two derivatives, with the digits that cancel."""
        from hockeystick.numerics.multiprecision import mp

        size = self.shift + mu_of(self.noise_multiplier)
        with working_digits(_digits(c, size)):
            mu, shift, inner = (
                as_mpf(1 / self.noise_multiplier),
                mp.mpf(self.shift),
                mp.mpf(self.inner),
            )
            k = mp.mpf(c) + mp.mpf("0.5")
            moment = slope = second = mp.zero
            for side in (1, -1):
                # exp(a) Phi(u) with a' = step, a'' = mu^2, u' = side mu.
                step = mu * mu * k + side * shift
                quantile = side * mu * k - (inner - shift) / mu
                weight = mp.exp(
                    mu * mu * (k * k - mp.mpf("0.25")) / 2 + side * k * shift - shift / 2
                )
                below, density = weight * mp.ncdf(quantile), weight * mp.npdf(quantile) * mu
                moment += below
                slope += step * below + side * density
                second += (step * step + mu * mu) * below
                second += (2 * side * step - mu * quantile) * density
            rest = _inner_mass(self.noise_multiplier, self.shift, self.inner) / mp.cosh(inner / 2)
            moment += rest * mp.cosh(k * inner)
            slope += rest * inner * mp.sinh(k * inner)
            second += rest * inner * inner * mp.cosh(k * inner)
            return _from_moment(mp.log(moment), slope / moment, second / moment)


def _from_moment(value: mpf, slope: mpf, second: mpf) -> tuple[mpf, mpf, mpf]:
    """Return cumulants from ln M and the derivatives of M over M."""
    return value, slope, second - slope * slope


@lru_cache(maxsize=256)
def _inner_mass_in(noise_multiplier: Fraction, shift: float, inner: float, digits: int) -> mpf:
    """Return the mass between -g and g, to ``digits`` digits."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(digits):
        mu = as_mpf(1 / noise_multiplier)
        quantile = (mp.mpf(inner) - mp.mpf(shift)) / mu
        above = mp.ncdf(quantile - mu / 2)
        return above - mp.exp(-mp.mpf(shift)) * mp.ncdf(-quantile - mu / 2)


def _inner_mass(noise_multiplier: Fraction, shift: float, inner: float) -> mpf:
    """Return the mass between -g and g, to mpmath's precision."""
    from hockeystick.numerics.multiprecision import mp

    return _inner_mass_in(noise_multiplier, shift, inner, max(mp.dps, _DIGITS) + _DIGITS)


def _digits(c: float, size: float) -> int:
    """Return working digits for K at c, the logarithm of a moment near 1, for losses of a size."""
    lost = abs(math.log10(c)) + 2.0 * abs(math.log10(size)) if c > 0.0 else 0.0
    return _DIGITS + math.ceil(lost)
