"""The trade-off function of two normal distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import Ends, SymmetricTradeOff
from hockeystick.tradeoffs.profiles.profile import Array, GaussianProfile, PerfectPrivacy, Profile

# Below this the normal distribution function loses its precision.
_TINY: Final = 1e-306
_LARGEST_ERROR: Final = 1e300
_LARGEST: Final = 1e308
_SIZE: Final = whole_numbers("g", 1, (1, 100))
_MU: Final = Domain(symbol="mu", low=0, high=math.inf, high_open=True, typical=(0.01, 10))


@final
@dataclass(frozen=True, slots=True, init=False)
class GaussianTradeOff(SymmetricTradeOff):
    """``G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu)``, that of N(0, 1) against N(mu, 1).

    ``G_mu (x) G_nu = G_sqrt(mu^2 + nu^2)``, a group of g has ``G_(g mu)``, and ``G_0`` is
    ``1 - alpha``.

    Args:
        mu: The distance of the means in units of the standard deviation, a finite number >= 0.

    Raises:
        ParameterError: If mu is no such number.

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
        object.__setattr__(self, "mu", _validate.real("mu", mu, _MU))

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
        slack = 4.0 * self._argument_error(x) + 32.0 * ULP * size
        slack = np.minimum(slack, _LARGEST_ERROR)
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
