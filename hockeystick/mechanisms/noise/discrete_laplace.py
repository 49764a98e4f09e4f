"""The discrete Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.noise._integers import assumption, details, grown, sensitivity_of
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain


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

    Raises:
        ParameterError: If a parameter is outside its domain.

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
