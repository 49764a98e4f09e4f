"""The trade-off function of the Gaussian mechanism on a random subset: C_p(G_mu)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np

from hockeystick import _validate
from hockeystick.numerics import ULP
from hockeystick.numerics.multiprecision import mp, working_digits
from hockeystick.tradeoffs.base import Ends, SymmetricTradeOff, complement
from hockeystick.tradeoffs.functions.closed_forms import MU
from hockeystick.tradeoffs.profiles.profile import (
    Array,
    GaussianProfile,
    PerfectPrivacy,
    Profile,
    SampledProfile,
)

# Below this the normal distribution function underflows, or loses its relative precision.
_TINY: Final = 1e-306
_LARGEST: Final = 690.0
_HALVINGS: Final = 50


class _Corner(NamedTuple):
    """The points a* and b*, each as the sum of two floats, and ``1 - a* - b*``."""

    first: float
    first_more: float
    second: float
    second_more: float
    advantage: float


@final
@dataclass(frozen=True, init=False)
class SampledGaussianTradeOff(SymmetricTradeOff):
    """``C_p(G_mu)``: the Gaussian mechanism on a random subset that holds each record at rate p.

    With ``f_p = p G_mu + (1-p) (1 - alpha)``, ``a* = Phi(-mu/2)`` and ``b* = f_p(a*)``:
    ``f_p`` on [0, a*], ``a* + b* - alpha`` on [a*, b*], and the inverse of ``f_p`` on [b*, 1].

    Guarantees:
        Proven ends, relative to f and to 1 - f. On the last piece the lower end is a supporting
        line, so it holds however far the root found is from the true one.

    Edge cases:
        Rate 0 or mu 0 is ``1 - alpha``; rate 1 is G_mu.

    Args:
        mu: The distance of the means in units of the standard deviation, a finite number >= 0.
        rate: The probability p, in [0, 1].

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, theorem 4.2, for subsets of
        fixed size under replace-one. One step is tight; a product of several is valid only.

    Example:
        >>> from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
        >>> f = SampledGaussianTradeOff(mu=1.0, rate=0.2)
        >>> print(f"{f(0.1):.9f} {f(0.5):.9f} {f(0.9):.9f}")
        0.842171262 0.423415015 0.055736093
    """

    mu: float
    rate: float

    def __init__(self, mu: float, rate: float) -> None:
        object.__setattr__(self, "mu", _validate.real("mu", mu, MU))
        object.__setattr__(self, "rate", _validate.real("rate", rate))

    @property
    def forward(self) -> Profile:
        if self.mu == 0.0 or self.rate == 0.0:
            return PerfectPrivacy()
        gaussian = GaussianProfile(self.mu)
        return gaussian if self.rate == 1.0 else SampledProfile(gaussian, self.rate)

    def _power(self, alpha: Array) -> Ends:
        steep, flat = alpha <= self._corner.first, alpha >= self._corner.second
        lower, upper = _outward(alpha + self._corner.advantage)
        lower[steep], upper[steep] = self._steep_power(alpha[steep])
        lower[flat], upper[flat] = complement(self._flat_type_ii(1.0 - alpha[flat]))
        return Ends(np.maximum(lower, alpha), np.minimum(upper, 1.0))

    def _type_ii(self, alpha: Array) -> Ends:
        corner = self._corner
        steep, flat = alpha <= corner.first, alpha >= corner.second
        # a* + b* - alpha, with the largest terms subtracted first.
        middle = (corner.second - alpha) + corner.first
        lower, upper = _outward(middle + (corner.first_more + corner.second_more))
        lower[steep], upper[steep] = complement(self._steep_power(alpha[steep]))
        lower[flat], upper[flat] = self._flat_type_ii(1.0 - alpha[flat])
        return Ends(np.maximum(lower, 0.0), np.minimum(upper, 1.0))

    def type_ii_of_complement(self, rest: Array) -> Ends:
        lower, upper = super().type_ii_of_complement(rest)
        flat = rest <= 1.0 - self._corner.second
        lower[flat], upper[flat] = self._flat_type_ii(rest[flat])
        return Ends(lower, upper)

    def _steep_power(self, alpha: Array) -> Ends:
        """Return ``1 - f_p = p Phi(Phi^-1(alpha) + mu) + (1-p) alpha``."""
        from scipy.special import ndtr, ndtri

        x = np.asarray(ndtri(alpha))
        x[alpha == 0.0] = -1e3
        size, hazard = np.abs(x), np.abs(x + self.mu) + 1.0
        # The relative error of the shifted probability by the round-off of the quantile.
        grown = 40.0 + (33.0 * size + 2.0 * self.mu) * hazard
        inside = self.rate * np.asarray(ndtr(x + self.mu)) * (1.0 + ULP * grown)
        outside = (1.0 - self.rate) * alpha
        slack = 2.0 * ULP * grown * inside + 8.0 * ULP * (inside + outside)
        tiny = np.where(alpha > 0.0, _TINY, 0.0)
        value = inside + outside
        return Ends(np.maximum(value - slack - tiny, alpha), value + slack + tiny)

    def _flat_type_ii(self, rest: Array) -> Ends:
        """Return the inverse of f_p at ``1 - rest``, precise for tiny rests, by a supporting line.

        With ``H = 1 - f_p(Phi(-z))`` and the ratio r(z) of the densities, the inverse is convex,
        passes through (H, Phi(-z)) and has the slope 1/r there. The error of the root z, and of the
        slope with it, bounds it from above.
        """
        from scipy.special import ndtr

        z = self._root(rest)
        beta, near = np.asarray(ndtr(-z)), self.rate * np.asarray(ndtr(self.mu - z))
        exponent = self.mu * (z - 0.5 * self.mu)
        ratio = 1.0 - self.rate + self.rate * np.exp(np.minimum(exponent, _LARGEST))
        power = near + (1.0 - self.rate) * beta
        off = rest - power
        part = np.where((exponent > _LARGEST) & (off > 0.0), 0.0, off / ratio)
        grown = 40.0 + 2.0 * (1.0 + np.abs(self.mu - z)) * (self.mu + z)
        slack = 40.0 * beta + (16.0 * power + grown * near + 16.0 * rest) / ratio
        slack = ULP * (slack + np.abs(part) * (16.0 + 4.0 * self.mu * (z + self.mu))) + _TINY
        density = 0.3989 * np.exp(-0.5 * z * z)
        resolved = (exponent <= _LARGEST) & (density > 1e-290)
        # The root lies within that width if the density, times it, exceeds the residual.
        width = 1e-3 / (1.0 + z + self.mu)
        found = resolved & (np.abs(part) + slack <= 0.9 * width * density)
        high = beta + part + slack + 1.1 * self.mu * width * np.abs(part)
        high = np.where(found, high, np.inf)
        high = np.minimum(high, np.minimum(rest, self._corner.first + ULP) * (1.0 + ULP))
        return Ends(np.maximum(beta + part - slack, 0.0), np.where(rest > 0.0, high, 0.0))

    def _root(self, rest: Array) -> Array:
        """Return about the z >= mu/2 that solves ``p Phi(mu - z) + (1-p) Phi(-z) = rest``."""
        from scipy.special import log_ndtr, ndtri

        rest = np.maximum(rest, _TINY)
        low = np.maximum(-np.asarray(ndtri(rest)), 0.5 * self.mu)
        high, goal = low + self.mu, np.log(rest)
        with np.errstate(divide="ignore"):
            log_rate, log_other = np.log(self.rate), np.log1p(-self.rate)
        for _ in range(_HALVINGS):
            z = 0.5 * (low + high)
            log_power = np.logaddexp(log_rate + log_ndtr(self.mu - z), log_other + log_ndtr(-z))
            low, high = np.where(log_power > goal, z, low), np.where(log_power > goal, high, z)
        return np.asarray(low)

    @cached_property
    def _corner(self) -> _Corner:
        with working_digits(50):
            p = mp.mpf(self.rate)
            first = mp.ncdf(-mp.mpf(self.mu) / 2)
            second = p * first + (1 - p) * (1 - first)
            advantage = p * (1 - 2 * first)
            a, b = float(first), float(second)
            return _Corner(a, float(first - a), b, float(second - b), float(advantage))


def _outward(value: Array) -> Ends:
    return Ends(value * (1.0 - 8.0 * ULP), value * (1.0 + 8.0 * ULP))
