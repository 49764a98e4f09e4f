"""The trade-off function of two Laplace distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import Ends, SymmetricTradeOff
from hockeystick.tradeoffs.profiles.profile import Array, Profile, ProfileValues

_TINY: Final = 1e-307
# Up to this mu, e^-mu is far above the least normal number.
_LARGEST: Final = 700.0
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

    Raises:
        ParameterError: If the scale is no such number.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, proposition A.6.

    Example:
        >>> from hockeystick.tradeoffs.functions.laplace import LaplaceTradeOff
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
        if mu > _LARGEST:
            type_ii = _large_mu_upper(alpha)
            return Ends(np.maximum((1.0 - type_ii) * (1.0 - ULP), alpha), np.ones_like(alpha))
        steep = math.exp(mu) * alpha
        middle = 1.0 - small / (4.0 * np.maximum(alpha, 0.25 * small + _TINY))
        flat = small * alpha - math.expm1(-mu)
        value = np.where(alpha < 0.5 * small, steep, np.where(alpha <= 0.5, middle, flat))
        ends = self._outward(value)
        return Ends(ends.lower, np.minimum(ends.upper, 1.0))

    def _type_ii(self, alpha: Array) -> Ends:
        mu, small = self._rate
        if mu > _LARGEST:
            return Ends(np.zeros_like(alpha), _large_mu_upper(alpha))
        steep = 1.0 - math.exp(mu) * np.minimum(alpha, 0.5 * small)
        middle = small / (4.0 * np.maximum(alpha, 0.25 * small + _TINY))
        flat = small * (1.0 - alpha)
        value = np.where(alpha < 0.5 * small, steep, np.where(alpha <= 0.5, middle, flat))
        ends = self._outward(value)
        return Ends(ends.lower, np.minimum(ends.upper, 1.0))

    def type_ii_of_complement(self, rest: Array) -> Ends:
        """Return f(1 - rest), precise for tiny rests."""
        if 1.0 / self.scale > _LARGEST:
            bound = np.where(
                rest <= 0.5, rest * math.exp(-_LARGEST) + _TINY, _large_mu_upper(1.0 - rest)
            )
            return Ends(np.zeros_like(rest), np.where(rest > 0.0, bound, 0.0))
        flat = self._outward(self._rate[1] * rest)
        wide = self._type_ii(np.where(rest <= 0.5, 0.5, 1.0 - rest))
        # Below 1/2 rounding 1 - rest costs a unit in the last place of 1; f is as 1/alpha there.
        near, relative_error = rest <= 0.5, 4.0 * ULP / np.maximum(1.0 - rest, ULP)
        return Ends(
            np.where(near, flat.lower, np.maximum(wide.lower * (1.0 - relative_error), 0.0)),
            np.where(near, flat.upper, np.minimum(wide.upper * (1.0 + relative_error), 1.0)),
        )

    @property
    def _rate(self) -> tuple[float, float]:
        """``mu``, the distance of the centres over the scale, and ``e^-mu``."""
        mu = 1.0 / self.scale
        return mu, math.exp(-mu)

    def _outward(self, value: Array) -> Ends:
        """Return the ends of a value, with the round-off of mu and of the pieces."""
        slack = ULP * (16.0 + 2.0 * min(1.0 / self.scale, _LARGEST))
        tiny = np.where(value > 0.0, _TINY, 0.0)
        return Ends(np.maximum(value * (1.0 - slack) - tiny, 0.0), value * (1.0 + slack) + tiny)


def _large_mu_upper(alpha: Array) -> Array:
    """Return an upper end of f where mu is large: ``f <= e^-mu / (4 alpha)`` everywhere."""
    bound = math.exp(-_LARGEST) / np.maximum(alpha, math.exp(-_LARGEST))
    return np.asarray(np.minimum(bound, (1.0 - alpha) * (1.0 + ULP)))
