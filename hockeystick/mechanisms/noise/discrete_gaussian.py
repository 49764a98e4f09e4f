"""The discrete Gaussian mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.noise._integers import assumption, details, grown, sensitivity_of
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain

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

    Raises:
        ParameterError: If a parameter is outside its domain.

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
