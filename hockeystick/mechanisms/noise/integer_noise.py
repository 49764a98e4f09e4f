"""Integer noise: discrete Gaussian, discrete Laplace and Skellam."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import MAX_COUNT, Domain, whole_numbers
from hockeystick.errors import NoGroupFormError, ParameterError
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain

_SENSITIVITY: Final = whole_numbers("D", 1, (1, 1000))
_NO_VECTOR: Final = (
    "; it is one integer, and no vector whose norm changes by as much, which is a composition of "
    "its entries"
)


def sensitivity_of(value: object, of_one: str) -> int:
    """Return the sensitivity of an integer query as an int, or raise.

    Args:
        value: What was given for it.
        of_one: The mechanism at sensitivity 1, as it is written.
    """
    try:
        return _validate.count("sensitivity", value, _SENSITIVITY)
    except ParameterError as error:
        if not isinstance(value, float) or not 0 < value < MAX_COUNT:
            raise
        cells = round(value * value)
        k = cells if math.isclose(value * value, cells, rel_tol=1e-6) else "k"
        told = f" (a record in {k} cells, each changed by 1: {of_one} ** {k})"
        raise ParameterError(error.name, value, error.allowed + told) from None


def grown(sensitivity: int, size: int) -> int:
    """Return the sensitivity for a group, or raise where it is above all that are analysed."""
    moved = sensitivity * size
    if moved > MAX_COUNT:
        raise NoGroupFormError(
            f"a sensitivity of {sensitivity:,} for groups of {size:,} is above {MAX_COUNT:,}"
        )
    return moved


def assumption(noise: str, sensitivity: int) -> str:
    """Return what must hold of fresh integer noise and the query's sensitivity."""
    vector = "" if sensitivity == 1 else _NO_VECTOR
    return (
        f"Fresh {noise} noise is drawn exactly and added to an integer that changes by at most "
        f"{sensitivity:,} between neighbouring data sets{vector}."
    )


def details(parameter: str, sensitivity: int) -> tuple[str, ...]:
    """Return what belongs in brackets: the noise, and the sensitivity unless it is 1."""
    return (parameter,) if sensitivity == 1 else (parameter, f"sensitivity {sensitivity}")


_SIGMA: Final = Domain(symbol="sigma", low=0, high=math.inf, typical=(0.5, 100))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian(AnyAdjacency):
    """An integer plus discrete Gaussian noise.

    ``P[noise = y]`` is proportional to ``exp(-y^2 / (2 sigma^2))`` over the integers. It is
    ``sensitivity^2 / (2 sigma^2)``-zCDP, as continuous noise is, but neither of the two dominates
    the other: its delta is at some epsilons the larger one.

    Guarantees:
        Exact for a single integer that reaches its sensitivity. The sum of several such noises is
        no discrete Gaussian.

    Edge cases:
        Sigma 0 releases the integer itself; inf releases nothing.

    Args:
        sigma: Square root of the parameter sigma^2, in [0, inf], in units of the integer itself;
            the standard deviation is slightly below it.
        sensitivity: How far the integer moves between neighbours, an integer from 1 to 10^15;
            a record in k cells, each changed by 1, is ``DiscreteGaussian(sigma) ** k``.

    References:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS
        2020, theorems 4 and 7.

    Example:
        >>> import hockeystick as hs
        >>> round(hs.delta(hs.DiscreteGaussian(sigma=2), epsilon=1).upper, 14)
        0.00724877684595
    """

    rises_with = ("sensitivity",)
    falls_with = ("sigma",)

    sigma: float
    sensitivity: int = 1

    def __init__(self, sigma: float, sensitivity: int = 1) -> None:
        object.__setattr__(self, "sigma", _validate.real("sigma", sigma, _SIGMA))
        object.__setattr__(
            self, "sensitivity", sensitivity_of(sensitivity, "DiscreteGaussian(sigma)")
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        noise = f"discrete Gaussian (sigma {plain(self.sigma)})"
        return (assumption(noise, self.sensitivity),)

    def for_group(self, size: int) -> DiscreteGaussian:
        """Return the mechanism whose sensitivity is ``size`` times as large."""
        return DiscreteGaussian(self.sigma, grown(self.sensitivity, size))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "discrete Gaussian", details(f"sigma {self.sigma:g}", self.sensitivity)


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(AnyAdjacency):
    """An integer plus discrete Laplace noise, also known as the geometric mechanism.

    ``P[noise = y] = (1 - t) / (1 + t) t^|y|`` over the integers, with ``t = e^(-1/scale)``. It is
    epsilon-DP with ``epsilon = sensitivity / scale``.

    Guarantees:
        Exact for a query that reaches its sensitivity. With sensitivity 1 all that the output tells
        is on which side of two neighbouring integers it lies: that is the binary randomized
        response of epsilon 1/scale, and costs the same.

    Edge cases:
        Scale 0 releases the integer itself; inf releases nothing.

    Args:
        scale: Scale of the noise, in [0, inf], in units of the integer itself.
        sensitivity: How far the integer moves between neighbours, an integer from 1 to 10^15;
            a record in k cells, each changed by 1, is ``DiscreteLaplace(scale) ** k``.

    References:
        Ghosh, Roughgarden and Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms",
        STOC 2009.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.DiscreteLaplace(scale=5, sensitivity=3) ** 2)
        discrete Laplace (scale 5, sensitivity 3) x 2
    """

    rises_with = ("sensitivity",)
    falls_with = ("scale",)

    scale: float
    sensitivity: int = 1

    def __init__(self, scale: float, sensitivity: int = 1) -> None:
        object.__setattr__(self, "scale", _validate.real("scale", scale))
        object.__setattr__(
            self, "sensitivity", sensitivity_of(sensitivity, "DiscreteLaplace(scale)")
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        noise = f"discrete Laplace (scale {plain(self.scale)})"
        return (assumption(noise, self.sensitivity),)

    def for_group(self, size: int) -> DiscreteLaplace:
        """Return the mechanism whose sensitivity is ``size`` times as large."""
        return DiscreteLaplace(self.scale, grown(self.sensitivity, size))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "discrete Laplace", details(f"scale {self.scale:g}", self.sensitivity)


_VARIANCE: Final = Domain(symbol="mu", low=0, high=math.inf, typical=(1, 10_000))


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Skellam(AnyAdjacency):
    """An integer plus symmetric Skellam noise, the difference of two Poisson variables.

    ``P[noise = k] = e^-v I_k(v)`` over the integers, with the modified Bessel function and
    ``v = variance``; either Poisson variable has the mean v/2. The noises of several parties add
    up to Skellam noise of the sum of the variances.

    Guarantees:
        Exact for a single integer that reaches its sensitivity.

    Edge cases:
        Variance 0 releases the integer itself; inf releases nothing.

    Args:
        variance: Variance of the noise, in [0, inf], in units of the integer itself, squared.
        sensitivity: How far the integer moves between neighbours, an integer from 1 to 10^15;
            a record in k cells, each changed by 1, is ``Skellam(variance) ** k``.

    References:
        Agarwal, Kairouz and Liu, "The Skellam Mechanism for Differentially Private Federated
        Learning", NeurIPS 2021.

    Example:
        >>> import hockeystick as hs
        >>> print(hs.mechanisms.Skellam(variance=100))
        Skellam (variance 100)
    """

    rises_with = ("sensitivity",)
    falls_with = ("variance",)

    variance: float
    sensitivity: int = 1

    def __init__(self, variance: float, sensitivity: int = 1) -> None:
        object.__setattr__(self, "variance", _validate.real("variance", variance, _VARIANCE))
        object.__setattr__(self, "sensitivity", sensitivity_of(sensitivity, "Skellam(variance)"))

    @property
    def assumptions(self) -> tuple[str, ...]:
        noise = f"Skellam (variance {plain(self.variance)})"
        return (assumption(noise, self.sensitivity),)

    def for_group(self, size: int) -> Skellam:
        """Return the mechanism whose sensitivity is ``size`` times as large."""
        return Skellam(self.variance, grown(self.sensitivity, size))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "Skellam", details(f"variance {self.variance:g}", self.sensitivity)
