"""Trade-off functions in closed form: Gaussian, Laplace, and of finitely many outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, TypeAlias, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.numerics import ULP, decimal
from hockeystick.tradeoffs.base import Ends, SymmetricTradeOff
from hockeystick.tradeoffs.profiles.profile import (
    Array,
    GaussianProfile,
    PerfectPrivacy,
    Profile,
    ProfileValues,
)

# Below this the normal distribution function loses its precision.
_TINY: Final = 1e-306
_LARGEST_ERROR: Final = 1e300
_LARGEST: Final = 1e308
MU: Final = Domain(symbol="mu", low=0, high=math.inf, high_open=True, typical=(0.01, 10))


@final
@dataclass(frozen=True, slots=True, init=False)
class GaussianTradeOff(SymmetricTradeOff):
    """``G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)``, that of N(0, 1) against N(mu, 1).

    ``G_mu (x) G_nu = G_sqrt(mu^2 + nu^2)``, a group of g has ``G_(g mu)``, and ``G_0`` is
    ``1 - alpha``.

    Args:
        mu: The distance of the means in units of the standard deviation, a finite number >= 0.

    References:
        Dong, Roth and Su 2022, section 2.2.

    Example:
        >>> import hockeystick as hs
        >>> f = hs.tradeoffs.GaussianTradeOff(1.0)
        >>> print(f"{f(0.05):.6f} {f.power(0.01):.6f} {f.delta(1.0):.6f}")
        0.740489 0.092362 0.126937
    """

    mu: float

    def __init__(self, mu: float) -> None:
        object.__setattr__(self, "mu", _validate.real("mu", mu, MU))

    @property
    def forward(self) -> Profile:
        return GaussianProfile(self.mu) if self.mu > 0.0 else PerfectPrivacy()

    def _type_ii(self, alpha: Array) -> Ends:
        from scipy.special import ndtri

        if self.mu == 0.0:
            return Ends(np.nextafter(1.0 - alpha, 0.0), np.nextafter(1.0 - alpha, 2.0))
        return self._normal(-np.asarray(ndtri(alpha)) - self.mu)

    def _power(self, alpha: Array) -> Ends:
        from scipy.special import ndtri

        if self.mu == 0.0:
            return Ends(alpha, alpha)
        return self._normal(np.asarray(ndtri(alpha)) + self.mu)

    def _normal(self, x: Array) -> Ends:
        """Return Phi with its round-off, and that of its argument."""
        from scipy.special import ndtr

        value = np.asarray(ndtr(x))
        slack = np.minimum(32.0 * ULP + self._argument_error(x), _LARGEST_ERROR)
        tiny = np.where(x > -np.inf, _TINY, 0.0)
        return Ends(value * (1.0 - slack) - tiny, value * (1.0 + slack) + tiny)

    def _log_type_ii(self, log_alpha: Array) -> Ends:
        return self._log_normal(-_quantile(log_alpha) - self.mu)

    def _log_power(self, log_alpha: Array) -> Ends:
        return self._log_normal(_quantile(log_alpha) + self.mu)

    def _log_normal(self, x: Array) -> Ends:
        """Return ``ln Phi`` with its round-off, and that of its argument."""
        from scipy.special import log_ndtr

        value = np.asarray(log_ndtr(x))
        size = np.where(np.isfinite(value), np.abs(value), 0.0)
        slack = np.minimum(4.0 * self._argument_error(x) + 32.0 * ULP * size, _LARGEST_ERROR)
        lower = np.nextafter(value - slack, -np.inf)
        # A logarithm that overflows is that of a positive number below any float.
        upper = np.where(x > -np.inf, np.maximum(value + slack, -_LARGEST), -np.inf)
        return Ends(lower, np.minimum(upper, 0.0))

    def _argument_error(self, x: Array) -> Array:
        """Return the relative error of Phi(x) by the round-off of x.

        The derivative of ``ln Phi`` is at most ``|x| + 1`` for x < 0 and ``2 phi(x)`` for x >= 0.
        """
        size = np.where(np.isfinite(x), np.abs(x), 0.0)
        slope = np.where(x < 0.0, size + 1.0, np.exp(-0.5 * np.minimum(size, 100.0) ** 2))
        with np.errstate(over="ignore"):
            return np.asarray(16.0 * ULP * np.minimum(size + self.mu, _LARGEST_ERROR) * slope)


G = GaussianTradeOff


def _quantile(log_alpha: Array) -> Array:
    """Return ``Phi^-1(alpha)``, within 32 units in the last place.

    In the lower tail one Newton step refines ``ndtri_exp``; the remaining error is the round-off of
    ``ln Phi`` over its derivative.
    """
    from scipy.special import erfcx, log_ndtr, ndtri, ndtri_exp

    low = log_alpha < -0.5
    x = np.asarray(ndtri_exp(np.where(low, log_alpha, -1.0)))
    with np.errstate(all="ignore"):
        slope = math.sqrt(2.0 / math.pi) / erfcx(-x / math.sqrt(2.0))
        refined = x - (log_ndtr(x) - log_alpha) / slope
    refined = np.where(np.isfinite(log_alpha), refined, -np.inf)
    upper = -np.asarray(ndtri(-np.expm1(np.where(low, -0.5, log_alpha))))
    return np.where(low, refined, upper)


# Up to this mu, e^-mu is far above the least normal number.
_LAPLACE_LARGEST: Final = 700.0
_SCALE: Final = Domain(symbol="b", low=0, high=math.inf, low_open=True, typical=(0.1, 100))


@final
@dataclass(frozen=True, slots=True)
class LaplaceProfile(Profile):
    """``delta(eps) = 1 - e^((eps - mu) / 2)`` below ``mu = 1 / scale``, and 0 from there on.

    References:
        Balle, Barthe and Gaboardi 2018, theorem 3.
    """

    scale: float

    @property
    def supremum(self) -> float:
        return (1.0 / self.scale) * (1.0 + ULP)

    def at(self, epsilon: Array) -> ProfileValues:
        mu = 1.0 / self.scale
        if math.isinf(mu):
            one = np.ones_like(epsilon)
            return ProfileValues(np.where(epsilon < 1e307, 1.0, 0.0), one, one, 0.0 * one)
        half = np.minimum(0.5 * (epsilon - mu), 0.0)
        estimate = -np.expm1(half)
        slack = ULP * (4.0 * estimate + np.exp(half) * (mu - half))
        inside = epsilon < mu * (1.0 + ULP)
        upper = np.where(inside, np.minimum(estimate + slack, 1.0), 0.0)
        lower = np.where(inside, np.maximum(estimate - slack, 0.0), 0.0)
        slope = np.where(epsilon < mu, -0.5 * np.exp(half), 0.0)
        return ProfileValues(lower, np.where(inside, estimate, 0.0), upper, slope)


@final
@dataclass(frozen=True, slots=True, init=False)
class LaplaceTradeOff(SymmetricTradeOff):
    """``T(Lap(0, scale), Lap(1, scale))``, with ``mu = 1 / scale``.

    ``f(alpha) = 1 - e^mu alpha`` up to ``e^-mu / 2``, ``e^-mu / (4 alpha)`` up to 1/2, and
    ``e^-mu (1 - alpha)`` from there on. A group of g has ``scale / g``.

    Guarantees:
        Exact but for round-off, relative to f and to 1 - f.

    Edge cases:
        Scale inf is ``1 - alpha``.

    Args:
        scale: The noise in units of the sensitivity, a number > 0 or inf.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, proposition A.6.

    Example:
        >>> from hockeystick.tradeoffs.functions.closed_forms import LaplaceTradeOff
        >>> f = LaplaceTradeOff(1.0)
        >>> print(f"{f(0.05):.6f} {f(0.3):.6f} {f(0.9):.6f}")
        0.864086 0.306566 0.036788
    """

    scale: float

    def __init__(self, scale: float) -> None:
        object.__setattr__(self, "scale", _validate.real("scale", scale, _SCALE))

    @property
    def forward(self) -> Profile:
        return LaplaceProfile(self.scale)

    def _power(self, alpha: Array) -> Ends:
        mu, small = self._rate
        steep = math.exp(mu) * alpha
        middle = 1.0 - small / (4.0 * np.maximum(alpha, 0.25 * small + _TINY))
        flat = small * alpha - math.expm1(-mu)
        value = np.where(alpha < 0.5 * small, steep, np.where(alpha <= 0.5, middle, flat))
        lower, upper = self._outward(value)
        return Ends(lower, np.ones_like(alpha) if self._is_large else np.minimum(upper, 1.0))

    def _type_ii(self, alpha: Array) -> Ends:
        mu, small = self._rate
        steep = 1.0 - math.exp(mu) * np.minimum(alpha, 0.5 * small)
        middle = small / (4.0 * np.maximum(alpha, 0.25 * small + _TINY))
        flat = small * (1.0 - alpha)
        value = np.where(alpha < 0.5 * small, steep, np.where(alpha <= 0.5, middle, flat))
        lower, upper = self._outward(value)
        return Ends(np.zeros_like(alpha) if self._is_large else lower, np.minimum(upper, 1.0))

    @property
    def _rate(self) -> tuple[float, float]:
        """``mu``, the distance of the centres over the scale, at most 700, and ``e^-mu``."""
        mu = min(1.0 / self.scale, _LAPLACE_LARGEST)
        return mu, math.exp(-mu)

    @property
    def _is_large(self) -> bool:
        """Whether mu is larger than that: f, which falls in mu, is below what is computed."""
        return 1.0 / self.scale > _LAPLACE_LARGEST

    def _outward(self, value: Array) -> Ends:
        """Return the ends of a value, with the round-off of mu and of the pieces."""
        slack = ULP * (16.0 + 2.0 * self._rate[0])
        tiny = np.where(value > 0.0, _TINY, 0.0)
        return Ends(np.maximum(value * (1.0 - slack) - tiny, 0.0), value * (1.0 + slack) + tiny)


_Point: TypeAlias = tuple[Fraction, Fraction]
Masses: TypeAlias = tuple[_Point, ...]

# The largest number of outcomes that are kept one by one.
_MOST: Final = 10_000
# The largest relative difference of the two readings.
_LARGEST_DIFFERENCE: Final = Fraction(1, 10**12)


@final
@dataclass(frozen=True, slots=True)
class Outcomes:
    """The masses of outcomes under P and Q, by descending q/p, of sum 1 each, in two readings.

    ``decimal`` has the decimals that the numbers print as, over their sum. ``binary``, the exact
    floats over theirs, and both sums lie within the relative distance ``relative_error``.
    """

    decimal: Masses
    binary: Masses
    relative_error: float

    def inverse(self) -> Outcomes:
        """Return them with P and Q exchanged."""
        return Outcomes(_swapped(self.decimal), _swapped(self.binary), self.relative_error)

    @classmethod
    def of(cls, p: Sequence[float], q: Sequence[float]) -> Outcomes | None:
        """Return the outcomes with these probabilities, None where they are too many."""
        if len(p) > _MOST:
            return None
        sides = [[read(one) for one in side] for read in (decimal, Fraction) for side in (p, q)]
        totals = [sum(side, Fraction(0)) for side in sides]
        scaled = [[one / all_ for one in side] for side, all_ in zip(sides, totals, strict=True)]
        decimals, floats = (tuple(zip(*two, strict=True)) for two in (scaled[:2], scaled[2:]))
        return cls.within(decimals, floats, max(abs(total - 1) for total in totals))

    @classmethod
    def between(cls, corners: Sequence[_Point], others: Sequence[_Point]) -> Outcomes | None:
        """Return the outcomes whose masses are the sides of a polygon, in the two readings."""
        if len(corners) != len(others) or len(corners) > _MOST:
            return None
        return cls.within(masses_of(corners), masses_of(others), Fraction(0))

    @classmethod
    def within(cls, decimal: Masses, binary: Masses, distance: Fraction) -> Outcomes | None:
        """Return both readings, a distance off; None where they differ by more than rounding."""
        for pair in zip(decimal, binary, strict=True):
            for one, two in zip(*pair, strict=True):
                if (one == 0) != (two == 0):
                    return None
                distance = max(distance, abs(two / one - 1) if one else distance)
        if distance > _LARGEST_DIFFERENCE:
            return None
        return cls(decimal, binary, float(distance) * (1.0 + 4.0 * ULP))


def masses_of(points: Sequence[_Point]) -> Masses:
    """Return the masses under P and Q of the sides between points (alpha, beta)."""
    return tuple((b[0] - a[0], a[1] - b[1]) for a, b in pairwise(points))


def _swapped(masses: Masses) -> Masses:
    return tuple((q, p) for p, q in reversed(masses))
