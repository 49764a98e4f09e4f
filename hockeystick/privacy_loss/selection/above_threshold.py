"""A loss plus a constant, folded: what a bound of both directions leaves of it.

Where a pair (A, B) bounds the likelihood ratio of a release but for a factor ``e^s``, in either
direction, the profile H of the release has, with ``x = e^eps`` and D the profile of (A, B),

    H(x) <= D(x e^-s)    and, by reflection,    H(x) <= 1 - x + x D(e^-s / x),

the first the smaller for x > 1, the second for x < 1. H is convex in x, so that it is also below
the chord between ``x = e^-g`` and ``x = e^g``, for any g. The result is a pair whose loss is, above
g, that of (A, B) plus s; below -g, the mirror image of that; and in between nothing but atoms at g
and -g as randomized response of g has them.
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


class _FoldedLoss(CellLoss):
    """A loss whose smaller values are moved to two, with cumulants in closed form."""

    __slots__ = ()

    @abstractmethod
    def _cumulants(self, c: float) -> tuple[mpf, mpf, mpf]:
        """Return K and two derivatives, in digits enough for what cancels."""

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
class FoldedLaplaceLoss(_FoldedLoss):
    """A Laplace loss of largest value E whose values between -g and g are moved to these two.

    A Laplace loss of e plus s, folded at its lower end: ``E = e + s``, ``g = (s - e)_+``. Where
    ``s <= e`` nothing is left between, and it is the Laplace loss of ``e + s``. With k = c + 1/2

        M(c) = exp(-E/2) (cosh(k E) + (sinh(k E) - sinh(k g)) / (2k) + tanh(g/2) cosh(k g)).

    Both numbers are exactly these floats; a larger E or g only costs more. ``0 <= g < E``.
    """

    largest: float
    gap: float

    @property
    def supremum(self) -> float:
        """E."""
        return self.largest

    @property
    def infimum(self) -> float:
        """Minus E."""
        return -self.largest

    def atoms(self) -> Atoms:
        """Return the ends and, where there is a gap, its ends."""
        end, gap = self.largest, self.gap
        if gap == 0.0:
            return Atoms(
                np.array([-end, end]),
                np.array([-end - _LN_2, -_LN_2]),
                np.array([ULP * (2.0 * end + 2.0), 2.0 * ULP]),
            )
        # exp(-E/2) sinh(g/2) of the mass is in the gap, under P as under Q.
        within = 0.5 * (gap - end) + math.log(-math.expm1(-gap)) - _LN_2
        up = within - math.log1p(math.exp(-gap))
        error = ULP * (4.0 * end + 4.0 * abs(math.log(-math.expm1(-gap))) + 16.0)
        return Atoms(
            np.array([-end, -gap, gap, end]),
            np.array([-end - _LN_2, up - gap, up, -_LN_2]),
            np.full(4, error),
        )

    def cells(self, edges: Array) -> Masses:
        """Return ``exp((high - E)/2) (1 - exp(-width/2)) / 2`` on either side of the gap."""
        sides = [self._side(np.clip(edges, -self.largest, -self.gap))]
        sides.append(self._side(np.clip(edges, self.gap, self.largest)))
        log_p = np.logaddexp(sides[0].log_p, sides[1].log_p)
        log_q = np.logaddexp(sides[0].log_q, sides[1].log_q)
        return Masses(log_p, log_q, np.maximum(sides[0].error, sides[1].error) + 8.0 * ULP)

    def _side(self, inside: Array) -> Masses:
        """Return the masses between edges on one side."""
        width = np.diff(inside)
        with np.errstate(divide="ignore"):
            log_part = np.log(-0.5 * np.expm1(-0.5 * width))
        log_p = 0.5 * (inside[1:] - self.largest) + log_part
        log_q = -0.5 * (inside[:-1] + self.largest) + log_part
        sizes = np.where(width > 0.0, np.abs(log_part), 0.0)
        return Masses(log_p, log_q, ULP * (8.0 * self.largest + 8.0 * sizes + 16.0))

    def _cumulants(self, c: float) -> tuple[mpf, mpf, mpf]:
        """Return K and two derivatives, in digits enough for what cancels."""
        from mpmath import mp

        with working_digits(_digits(c, self.largest)):
            k, end, gap = mp.mpf(c) + mp.mpf("0.5"), mp.mpf(self.largest), mp.mpf(self.gap)
            over, over_gap = mp.exp(k * end), mp.exp(k * gap)
            cosh, sinh = (over + 1 / over) / 2, (over - 1 / over) / 2
            cosh_gap, sinh_gap = (over_gap + 1 / over_gap) / 2, (over_gap - 1 / over_gap) / 2
            share = mp.tanh(gap / 2)
            between = (sinh - sinh_gap) / (2 * k)
            first = (end * cosh - gap * cosh_gap) / (2 * k)
            second = (end**2 * sinh - gap**2 * sinh_gap) / (2 * k)
            moment = cosh + between + share * cosh_gap
            slope = end * sinh + first - between / k + share * gap * sinh_gap
            bend = end**2 * cosh + second - 2 * first / k + 2 * between / k**2
            bend += share * gap**2 * cosh_gap
            return _of_moment(mp.log(moment) - end / 2, slope / moment, bend / moment)


@final
@dataclass(frozen=True, slots=True)
class FoldedGaussianLoss(_FoldedLoss, UnboundedLoss):
    """A Gaussian loss plus s, folded at g: ``N(mu^2/2 + s, mu^2)`` above g, and mirrored.

    g has to be so large that what is above g and below -g has at most probability 1 (``of`` finds
    one); the rest m is randomized response of g. With ``k = c + 1/2`` and ``y = g - s``

        M(c) = exp(mu^2 c (c+1) / 2) (e^(c s) Phi(mu k - y/mu) + e^(-(c+1) s) Phi(-mu k - y/mu))
               + m cosh(k g) / cosh(g/2).
    """

    noise_multiplier: Fraction
    shift: float
    gap: float

    @classmethod
    def of(cls, noise_multiplier: Fraction, shift: float) -> FoldedGaussianLoss:
        """Return the loss with g a little above the least that is possible."""
        from hockeystick.numerics.roots import increasing_root

        def room(gap: float) -> float:
            return float(_left_over(noise_multiplier, shift, max(gap, 0.0))) - 1e-3

        spread = shift + float(1 / noise_multiplier)
        gap = max(increasing_root(room, shift, stride=spread, tolerance=1e-6 * spread), 0.0)
        while _left_over(noise_multiplier, shift, gap) <= 0:
            gap += 1e-3 * spread
        return cls(noise_multiplier, shift, gap)

    @property
    def sixth_moment_upper(self) -> float:
        """That of the ends of the gap, and of a Gaussian's and a shift on either side."""
        mu = float(1 / self.noise_multiplier)
        return sixth_power(self.gap) + 2.0 * sixth_moment_of_normal(0.5 * mu * mu + self.shift, mu)

    def atoms(self) -> Atoms:
        """Return the ends of the gap."""
        rest = math.log(float(_left_over(self.noise_multiplier, self.shift, self.gap)))
        up = rest - math.log1p(math.exp(-self.gap))
        error = ULP * (4.0 * abs(rest) + 4.0 * self.gap + 8.0)
        ends = np.array([-self.gap, self.gap])
        return Atoms(ends, np.array([up - self.gap, up]), np.full(2, error))

    def cells(self, edges: Array) -> Masses:
        """Return the masses on either side of the gap."""
        above = self._above(np.maximum(edges, self.gap))
        mirrored = self._above(np.maximum(-edges[::-1], self.gap))
        log_p = np.logaddexp(above.log_p, mirrored.log_q[::-1])
        log_q = np.logaddexp(above.log_q, mirrored.log_p[::-1])
        return Masses(log_p, log_q, np.maximum(above.error, mirrored.error[::-1]) + 8.0 * ULP)

    def _above(self, edges: Array) -> Masses:
        """Return the masses above the gap: those of the Gaussian, s further down."""
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
        """Return K and two derivatives, in digits enough for what cancels."""
        from mpmath import mp

        size = self.shift + mu_of(self.noise_multiplier)
        with working_digits(_digits(c, size)):
            mu, shift, gap = as_mpf(1 / self.noise_multiplier), mp.mpf(self.shift), mp.mpf(self.gap)
            k = mp.mpf(c) + mp.mpf("0.5")
            moment = slope = bend = mp.zero
            for side in (1, -1):
                # exp(a) Phi(u) with a' = step, a'' = mu^2, u' = side mu.
                step = mu * mu * k + side * shift
                place = side * mu * k - (gap - shift) / mu
                weight = mp.exp(
                    mu * mu * (k * k - mp.mpf("0.25")) / 2 + side * k * shift - shift / 2
                )
                below, density = weight * mp.ncdf(place), weight * mp.npdf(place) * mu
                moment += below
                slope += step * below + side * density
                bend += (step * step + mu * mu) * below
                bend += (2 * side * step - mu * place) * density
            rest = _left_over(self.noise_multiplier, self.shift, self.gap) / mp.cosh(gap / 2)
            moment += rest * mp.cosh(k * gap)
            slope += rest * gap * mp.sinh(k * gap)
            bend += rest * gap * gap * mp.cosh(k * gap)
            return _of_moment(mp.log(moment), slope / moment, bend / moment)


def _of_moment(value: mpf, slope: mpf, bend: mpf) -> tuple[mpf, mpf, mpf]:
    """Return cumulants from ln M and the derivatives of M over M."""
    return value, slope, bend - slope * slope


@lru_cache(maxsize=256)
def _left_over_in(noise_multiplier: Fraction, shift: float, gap: float, digits: int) -> mpf:
    """Return what is neither above the gap nor below minus the gap, to ``digits`` digits."""
    from mpmath import mp

    with working_digits(digits):
        mu = as_mpf(1 / noise_multiplier)
        place = (mp.mpf(gap) - mp.mpf(shift)) / mu
        above = mp.ncdf(place - mu / 2)
        return above - mp.exp(-mp.mpf(shift)) * mp.ncdf(-place - mu / 2)


def _left_over(noise_multiplier: Fraction, shift: float, gap: float) -> mpf:
    """Return what is neither above the gap nor below minus the gap, to mpmath's precision."""
    from mpmath import mp

    return _left_over_in(noise_multiplier, shift, gap, max(mp.dps, _DIGITS) + _DIGITS)


def _digits(c: float, size: float) -> int:
    """Return digits enough for K at c, the logarithm of a moment near 1, of losses of a size."""
    lost = abs(math.log10(c)) + 2.0 * abs(math.log10(size)) if c > 0.0 else 0.0
    return _DIGITS + math.ceil(lost)
