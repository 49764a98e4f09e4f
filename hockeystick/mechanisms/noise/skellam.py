"""The Skellam mechanism."""

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

    Raises:
        ParameterError: If a parameter is outside its domain.

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
