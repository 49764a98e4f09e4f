"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain
from hockeystick.numerics.rounding import quotient_down


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class Laplace(AnyAdjacency):
    """A query's answer plus Laplace noise.

    M(D) = query(D) + Lap(scale * sensitivity), independently in each coordinate, with the density
    ``exp(-|x| / b) / (2 b)`` at ``b = scale * sensitivity``; the sensitivity is the largest L1
    distance between the query's answers on two neighbouring data sets. It is 1/scale-DP.

    Guarantees:
        The accounting is exact for a query with one coordinate that reaches its sensitivity, and
        an upper bound for every other.

    Edge cases:
        Scale 0 releases the answer itself; inf releases nothing.

    Args:
        scale: The noise's scale over the sensitivity, in [0, inf].

    Raises:
        ParameterError: If the scale is no number of its domain.

    References:
        Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data
        Analysis", TCC 2006.

    Example:
        >>> import hockeystick as hs
        >>> print(f"{hs.delta(hs.Laplace(scale=1), epsilon=0.5).upper:.12f}")
        0.221199216929
    """

    falls_with = ("scale",)

    scale: float

    def __init__(self, scale: float) -> None:
        object.__setattr__(self, "scale", _validate.real("scale", scale))

    @property
    def assumptions(self) -> tuple[str, ...]:
        noise = f"{plain(self.scale)} times the query's L1 sensitivity"
        return (f"Fresh Laplace noise is added to each coordinate; its scale is {noise}.",)

    def for_group(self, size: int) -> Laplace:
        """Return the mechanism whose noise is ``size`` times smaller."""
        return Laplace(quotient_down(self.scale, size))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "Laplace", (f"scale {self.scale:g}",)
