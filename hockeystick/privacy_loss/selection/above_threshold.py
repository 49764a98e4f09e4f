"""The AboveThreshold pair with a Gaussian threshold: bounded losses, and a tail on either side.

Where a pair (A, B) bounds the likelihood ratio of a release up to a factor ``e^s``, in either
direction, the profile H of the release has, with ``x = e^eps`` and D the profile of (A, B),

    H(x) <= D(x e^-s)    and, by reflection,    H(x) <= 1 - x + x D(e^-s / x).

The loss is that of (A, B) plus s above some g, its reflection below -g, with probability m that of
the symmetric pair ``middle``, whose profile is at least ``(H(x) - D(x e^-s)_g)/m`` for x between
``e^-g`` and ``e^g``, D(..)_g what the losses above g contribute to D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.numerics.rounding import as_mpf
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.bounds.sixth_moments import sixth_moment_of_normal, sixth_power
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine
from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.base import Atoms, CGFEstimate, Masses
from hockeystick.privacy_loss.core.cell_loss import UnboundedLoss
from hockeystick.privacy_loss.core.rates import mu_of
from hockeystick.privacy_loss.core.uncertain_endpoints import UncertainEdges
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.kernels.series import Array

_TINY: Final = 5e-324
_LN_2: Final = math.log(2.0)
_SQRT_HALF: Final = math.sqrt(0.5)
_SQRT_2_OVER_PI: Final = math.sqrt(2.0 / math.pi)
# Decimal digits beyond those that cancel.
_DIGITS: Final = 30
# Up to this, ``exp(c g)`` times a mass so many deviations out is negligible in an estimate.
_LARGEST_EXPONENT: Final = 20.0
_FAR: Final = 9.0


@final
@dataclass(frozen=True, slots=True)
class AboveThresholdGaussianLoss(UnboundedLoss):
    """The pair of a Gaussian loss plus s: ``N(mu^2/2 + s, mu^2)`` above g, and its reflection.

    The remaining mass m is that of ``middle``, with atoms in [-g, g]. With ``k = c + 1/2`` and
    ``y = g - s``

        M(c) = exp(mu^2 c (c+1) / 2) (e^(c s) Phi(mu k - y/mu) + e^(-(c+1) s) Phi(-mu k - y/mu))
               + m M_middle(c).
    """

    noise_multiplier: Fraction
    shift: float
    inner: float
    middle: AtomicLoss
    line: ZCDPLine | None = None

    def zcdp_line(self) -> ZCDPLine | None:
        """Return a line above K of the release that this dominates, where one is known."""
        return self.line

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives; by the atoms alone where the tails are negligible."""
        mu = mu_of(self.noise_multiplier)
        beyond = (self.inner - self.shift) / mu - 0.5 * mu
        if c * self.inner < _LARGEST_EXPONENT and beyond > _FAR:
            return self.middle.cgf_estimate(c)
        if beyond > _FAR:
            return self._estimate(c)
        value, slope, curvature = self._cumulants(c)
        return CGFEstimate(float(value), float(slope), float(curvature))

    def _estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives where the tails have next to no probability, in floats."""
        from scipy.special import erfcx, log_ndtr

        mu, k = mu_of(self.noise_multiplier), c + 0.5
        found = [self.middle.cgf_estimate(c)]
        for side in (1.0, -1.0):
            # ln of the tail's moment, exp(a) Phi(u) with a' = step, and its derivatives.
            step = mu * mu * k + side * self.shift
            quantile = side * mu * k - (self.inner - self.shift) / mu
            exponent = 0.5 * mu * mu * (k * k - 0.25) + (side * k - 0.5) * self.shift
            log_below = float(log_ndtr(quantile))
            hazard = _SQRT_2_OVER_PI / float(erfcx(-quantile * _SQRT_HALF))
            slope = step + side * mu * hazard
            bend = mu * mu * max(1.0 - hazard * (quantile + hazard), 0.0)
            found.append(CGFEstimate(exponent + log_below, slope, bend))
        most = max(one.value for one in found)
        weights = [math.exp(one.value - most) for one in found]
        total = math.fsum(weights)
        mean = math.fsum(w * one.first_derivative for w, one in zip(weights, found, strict=True))
        mean /= total
        spread = math.fsum(
            w * (one.second_derivative + (one.first_derivative - mean) ** 2)
            for w, one in zip(weights, found, strict=True)
        )
        return CGFEstimate(most + math.log(total), mean, spread / total)

    def cgf_bounds(self, c: float) -> Ball:
        value = float(self._cumulants(c)[0])
        return Ball(value, 4.0 * ULP * value + _TINY)

    @property
    def sixth_moment_upper(self) -> float:
        """That of the atoms, and of a Gaussian plus a shift on either side."""
        mu = float(1 / self.noise_multiplier)
        return sixth_power(max(self.inner, self.middle.supremum)) + 2.0 * sixth_moment_of_normal(
            0.5 * mu * mu + self.shift, mu
        )

    def atoms(self) -> Atoms:
        rest = math.log(float(_inner_mass(self)))
        loss, log_p, error = self.middle.atoms()
        return Atoms(loss, log_p + rest, error + ULP * (4.0 * abs(rest) + np.abs(log_p) + 8.0))

    def cells(self, edges: Array) -> Masses:
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
            rest = _inner_mass(self)
            atoms = self.middle.nodes(0, self.middle.atoms().loss.size)
            for loss, mass in zip(*atoms, strict=True):
                part = rest * mass * mp.exp(c * loss)
                moment += part
                slope += loss * part
                second += loss * loss * part
            return _from_moment(mp.log(moment), slope / moment, second / moment)


def _from_moment(value: mpf, slope: mpf, second: mpf) -> tuple[mpf, mpf, mpf]:
    """Return cumulants from ln M and the derivatives of M over M."""
    return value, slope, second - slope * slope


def tail(noise_multiplier: Fraction, shift: float, inner: float) -> tuple[mpf, mpf]:
    """Return the masses above g under P and under Q, to mpmath's precision."""
    return _tail_in(noise_multiplier, shift, inner, _precision())


@lru_cache(maxsize=256)
def _tail_in(
    noise_multiplier: Fraction, shift: float, inner: float, digits: int
) -> tuple[mpf, mpf]:
    """Return the masses above g under P and under Q, to ``digits`` digits."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(digits):
        mu = as_mpf(1 / noise_multiplier)
        quantile = (mp.mpf(inner) - mp.mpf(shift)) / mu
        return mp.ncdf(mu / 2 - quantile), mp.exp(-mp.mpf(shift)) * mp.ncdf(-quantile - mu / 2)


def _inner_mass(loss: AboveThresholdGaussianLoss) -> mpf:
    """Return the mass between -g and g, to mpmath's precision."""
    p, q = tail(loss.noise_multiplier, loss.shift, loss.inner)
    return 1 - p - q


def _precision() -> int:
    """Return some digits more than mpmath's."""
    from hockeystick.numerics.multiprecision import mp

    return int(max(mp.dps, _DIGITS)) + _DIGITS


def _digits(c: float, size: float) -> int:
    """Return working digits for K at c, the logarithm of a moment near 1, for losses of a size."""
    lost = abs(math.log10(c)) + 2.0 * abs(math.log10(size)) if c > 0.0 else 0.0
    return _DIGITS + math.ceil(lost)
