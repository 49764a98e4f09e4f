"""Integer noise: discrete Gaussian, discrete Laplace and Skellam."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self, final

from hockeystick._validate import MAX_COUNT, Domain, whole_numbers
from hockeystick.errors import NoGroupFormError
from hockeystick.mechanisms.base import AnyAdjacency, registered
from hockeystick.numerics.numerals import plain

_NO_VECTOR: Final = (
    "; it is one integer, and no vector whose norm changes by as much, which is a composition of "
    "its entries"
)
_SENSITIVITY: Final[Mapping[str, Any]] = {
    "domain": whole_numbers("D", 1, (1, 1000)),
    "besides": " (of a record in k cells, each changed by 1, that of sensitivity 1 runs k times)",
}


class _IntegerNoise(AnyAdjacency):
    """An integer plus integer noise, of a parameter and a sensitivity."""

    __slots__ = ()
    sensitivity: int

    @property
    @abstractmethod
    def _noise(self) -> tuple[str, str]:
        """What the noise and its parameter are called."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        name, parameter = self._noise
        vector = "" if self.sensitivity == 1 else _NO_VECTOR
        return (
            f"Fresh {name} ({parameter} {plain(getattr(self, parameter))}) noise is drawn exactly "
            f"and added to an integer that changes by at most {self.sensitivity:,} between "
            f"neighbouring data sets{vector}.",
        )

    def for_group(self, size: int) -> Self:
        moved = self.sensitivity * size
        if moved > MAX_COUNT:
            raise NoGroupFormError(
                f"a sensitivity of {self.sensitivity:,} for groups of {size:,} is above "
                f"{MAX_COUNT:,}"
            )
        return replace(self, sensitivity=moved)  # type: ignore[type-var]

    def _words(self) -> tuple[str, tuple[str, ...]]:
        name, parameter = self._noise
        moved = () if self.sensitivity == 1 else (f"sensitivity {self.sensitivity}",)
        return name, (f"{parameter} {getattr(self, parameter):g}", *moved)


_SIGMA: Final = Domain(symbol="sigma", low=0, high=math.inf, typical=(0.5, 100))


@registered
@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussian(_IntegerNoise):
    """An integer plus discrete Gaussian noise.

    ``P[noise = y]`` is proportional to ``exp(-y^2 / (2 sigma^2))`` over the integers. It is
    ``sensitivity^2 / (2 sigma^2)``-zCDP, as continuous noise is, but neither of the two dominates
    the other: its delta is at some epsilons the larger one.

    Guarantees:
        Exact for a single integer that reaches its sensitivity. The sum of several such noises is
        no discrete Gaussian.

    Args:
        sigma: Square root of the parameter sigma^2, in [0, inf], in units of the integer itself:
            0 releases it, inf nothing. The standard deviation is slightly below it.
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

    rises_with: ClassVar[tuple[str, ...]] = ("sensitivity",)
    falls_with: ClassVar[tuple[str, ...]] = ("sigma",)
    _noise = ("discrete Gaussian", "sigma")
    sigma: float = field(metadata={"domain": _SIGMA})
    sensitivity: int = field(default=1, metadata=_SENSITIVITY)


@registered
@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplace(_IntegerNoise):
    """An integer plus discrete Laplace noise, also known as the geometric mechanism.

    ``P[noise = y] = (1 - t) / (1 + t) t^|y|`` over the integers, with ``t = e^(-1/scale)``. It is
    epsilon-DP with ``epsilon = sensitivity / scale``.

    Guarantees:
        Exact for a query that reaches its sensitivity. With sensitivity 1 all that the output tells
        is on which side of two neighbouring integers it lies: that is the binary randomized
        response of epsilon 1/scale, and costs the same.

    Args:
        scale: Scale of the noise, in [0, inf], in units of the integer itself: 0 releases it, inf
            nothing.
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

    rises_with: ClassVar[tuple[str, ...]] = ("sensitivity",)
    falls_with: ClassVar[tuple[str, ...]] = ("scale",)
    _noise = ("discrete Laplace", "scale")
    scale: float
    sensitivity: int = field(default=1, metadata=_SENSITIVITY)


_VARIANCE: Final = Domain(symbol="mu", low=0, high=math.inf, typical=(1, 10_000))


@registered
@final
@dataclass(frozen=True, slots=True)
class Skellam(_IntegerNoise):
    """An integer plus symmetric Skellam noise, the difference of two Poisson variables.

    ``P[noise = k] = e^-v I_k(v)`` over the integers, with the modified Bessel function and
    ``v = variance``; either Poisson variable has the mean v/2. The noises of several parties add
    up to Skellam noise of the sum of the variances.

    Guarantees:
        Exact for a single integer that reaches its sensitivity.

    Args:
        variance: Variance of the noise, in [0, inf], in units of the integer itself, squared: 0
            releases it, inf nothing.
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

    rises_with: ClassVar[tuple[str, ...]] = ("sensitivity",)
    falls_with: ClassVar[tuple[str, ...]] = ("variance",)
    _noise = ("Skellam", "variance")
    variance: float = field(metadata={"domain": _VARIANCE})
    sensitivity: int = field(default=1, metadata=_SENSITIVITY)
