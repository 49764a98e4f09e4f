"""Numbers of runs by their generating functions, at w, the share of outputs that rank higher.

With ``phi(x) = E[x^K]`` and ``u = 1 - w``, the best of K runs ranks between two places with
probability ``phi(u_1) - phi(u_0)``. It is taken relative to itself, however small: places are given
by w, which next to the top is small where u is nearly 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.mechanisms.selection.tuning import (
    Binomial,
    Poisson,
    RunCount,
    TruncatedNegativeBinomial,
)
from hockeystick.numerics import ULP

Array: TypeAlias = NDArray[np.float64]

# More than the roundings of one value, in units of its condition.
_ROUNDINGS: Final = 64.0 * ULP
# Powers beyond this exponent are not handled.
_LARGEST_EXPONENT: Final = 600.0
# Nor are shares whose errors grow by more than this: noise of 1e-6 stays below 1.
_LARGEST_CONDITION: Final = 1e5


class Generating(ABC):
    """Increments of ``phi``, and its second and third derivative, all nonincreasing in w.

    ``condition`` is by how much, relatively, an increment or a derivative moves at most, in units
    of what w, its increment and the parameters move by, relatively. All values have a relative
    error below ``_ROUNDINGS`` times it.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def mean(self) -> float:
        """E[K], rounded up: the largest derivative."""

    @property
    @abstractmethod
    def steepness(self) -> float:
        """The second derivative over the first one at the top, rounded."""

    @property
    @abstractmethod
    def condition(self) -> float:
        """By how much relative errors grow."""

    @property
    def slack(self) -> float:
        """A bound of the relative error of a value at exact places."""
        return _ROUNDINGS * self.condition

    @abstractmethod
    def gain(self, above: Array, share: Array) -> Array:
        """Return the chance of a best run among a share of the outputs, below those above."""

    @abstractmethod
    def third(self, above: Array) -> Array:
        """Return the third derivative."""

    @abstractmethod
    def log_slope(self, above: Array) -> Array:
        """Return the logarithm of the first derivative over that at the top."""

    @abstractmethod
    def curvature(self, above: Array) -> Array:
        """Return the second derivative."""


@final
@dataclass(frozen=True, slots=True)
class _NegativeBinomial(Generating):
    """With ``z = gamma + (1-gamma) w``: ``phi = (z^-eta - 1) / (gamma^-eta - 1)``, K >= 1.

    At eta = 0 it is ``ln(1/z) / ln(1/gamma)``; the derivative is ``E[K] (gamma/z)^(1+eta)``.
    """

    eta: float
    gamma: float

    @property
    def mean(self) -> float:
        known = TruncatedNegativeBinomial(self.eta, self.gamma).expected
        return known * (1.0 + self.slack)

    @property
    def steepness(self) -> float:
        return (1.0 + self.eta) * (1.0 - self.gamma) / self.gamma

    @property
    def condition(self) -> float:
        """``z`` is a sum of positive numbers, to the power -(1+eta) or so; 1 - gamma is rounded."""
        return (4.0 + 2.0 * abs(self.eta)) * (1.0 - math.log(self.gamma)) / (1.0 - self.gamma)

    def gain(self, above: Array, share: Array) -> Array:
        """Return ``(z_0^-eta - z_1^-eta) / (gamma^-eta - 1)``, ``z_1`` the lower place's."""
        least = self._z(above)
        ratio = np.log1p((1.0 - self.gamma) * share / least)
        log_gamma = -math.log(self.gamma)
        if self.eta == 0.0:
            return np.asarray(ratio / log_gamma)
        power = self.eta * (np.log(least) + ratio)
        rise = np.expm1(self.eta * ratio) / math.expm1(self.eta * log_gamma)
        return np.asarray(np.exp(-power) * rise)

    def log_slope(self, above: Array) -> Array:
        share = (1.0 - self.gamma) / self.gamma * above
        return np.asarray(-(1.0 + self.eta) * np.log1p(share))

    def third(self, above: Array) -> Array:
        """Return ``E[K] (1+eta) (2+eta) ((1-gamma)/gamma)^2 (gamma / z)^(3+eta)``."""
        scale = self.mean * self.steepness * (2.0 + self.eta) * (1.0 - self.gamma) / self.gamma
        return np.asarray(scale * (self.gamma / self._z(above)) ** (3.0 + self.eta))

    def curvature(self, above: Array) -> Array:
        """Return ``E[K] (1+eta) (1-gamma)/gamma (gamma / z)^(2+eta)``."""
        power = (self.gamma / self._z(above)) ** (2.0 + self.eta)
        return np.asarray(self.mean * self.steepness * power)

    def _z(self, above: Array) -> Array:
        """Return ``gamma + (1-gamma) w``."""
        return self.gamma + (1.0 - self.gamma) * above


@final
@dataclass(frozen=True, slots=True)
class _Poisson(Generating):
    """``phi = e^(-m w)``."""

    rate: float

    @property
    def mean(self) -> float:
        return self.rate * (1.0 + 4.0 * ULP)

    @property
    def steepness(self) -> float:
        return self.rate

    @property
    def condition(self) -> float:
        return 4.0 + 2.0 * self.rate

    def gain(self, above: Array, share: Array) -> Array:
        return np.asarray(np.exp(-self.rate * above) * -np.expm1(-self.rate * share))

    def log_slope(self, above: Array) -> Array:
        return -self.rate * above

    def third(self, above: Array) -> Array:
        return np.asarray(self.rate**2 * self.mean * np.exp(-self.rate * above))

    def curvature(self, above: Array) -> Array:
        return np.asarray(self.rate * self.mean * np.exp(-self.rate * above))


@final
@dataclass(frozen=True, slots=True)
class _Binomial(Generating):
    """``phi = (1 - p w)^n``."""

    trials: int
    probability: float

    @property
    def mean(self) -> float:
        return self.trials * self.probability * (1.0 + 8.0 * ULP)

    @property
    def steepness(self) -> float:
        """``(n - 1) p``, and of one trial, whose second derivative is 0, a number above it."""
        return max(self.trials - 1.0, 0.5) * self.probability

    @property
    def condition(self) -> float:
        """``ln(1 - p w)`` moves by at most ``p / (1-p)``, and is multiplied by n.

        With A and B the values of ``1 - p w`` at both ends, A the larger, ``A^n - B^n`` moves with
        the place by ``(A^(n-1) - B^(n-1)) / (A^n - B^n) <= 1/A``, and is concave in the share.
        """
        return 6.0 + 2.0 * self.trials * self.probability / (1.0 - self.probability)

    def gain(self, above: Array, share: Array) -> Array:
        """Return ``A^n (1 - (1 - p d / A)^n)`` with ``A = 1 - p w_0``; p d is at most p A."""
        log_least = np.log1p(-self.probability * above)
        part = np.minimum(self.probability * share / np.exp(log_least), self.probability)
        fall = -np.expm1(self.trials * np.log1p(-part))
        return np.asarray(np.exp(self.trials * log_least) * fall)

    def log_slope(self, above: Array) -> Array:
        return np.asarray((self.trials - 1.0) * np.log1p(-self.probability * above))

    def third(self, above: Array) -> Array:
        n, p = self.trials, self.probability
        return np.asarray(n * (n - 1.0) * (n - 2.0) * p**3 * self._power(above, n - 3.0))

    def curvature(self, above: Array) -> Array:
        n, p = self.trials, self.probability
        return np.asarray(n * (n - 1.0) * p**2 * self._power(above, n - 2.0))

    def _power(self, above: Array, exponent: float) -> Array:
        """Return ``(1 - p w)^exponent``."""
        return np.asarray(np.exp(exponent * np.log1p(-self.probability * above)))


@singledispatch
def generating(count: RunCount) -> Generating | None:
    """Return the generating function of a number of runs; None where floats do not hold it."""
    return None


@generating.register
def _(count: TruncatedNegativeBinomial) -> Generating | None:
    if abs(count.eta * math.log(count.gamma)) > _LARGEST_EXPONENT:
        return None
    return _NegativeBinomial(count.eta, count.gamma)


@generating.register
def _(count: Poisson) -> Generating | None:
    return _Poisson(count.mean) if count.mean <= _LARGEST_EXPONENT else None


@generating.register
def _(count: Binomial) -> Generating | None:
    found = _Binomial(count.trials, count.probability)
    exponent = -count.trials * math.log1p(-count.probability)
    held = exponent <= _LARGEST_EXPONENT and found.condition <= _LARGEST_CONDITION
    return found if held else None
