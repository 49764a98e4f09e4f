"""The Gaussian mechanism."""

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
class Gaussian(AnyAdjacency):
    """A query's answer plus Gaussian noise.

    M(D) = query(D) + N(0, (noise_multiplier * sensitivity)^2 I), where the sensitivity is the
    largest L2 distance between the query's answers on two neighbouring data sets.

    Guarantees:
        Exact where two answers reach that distance, in any dimension; an upper bound elsewhere.

    Edge cases:
        Noise multiplier 0 releases the answer itself; inf releases nothing.

    Args:
        noise_multiplier: Standard deviation of the noise over the sensitivity, in [0, inf].

    Raises:
        ParameterError: If the noise multiplier is no number of its domain.

    References:
        Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, appendix A.

    Example:
        >>> import hockeystick as hs
        >>> hs.Gaussian(noise_multiplier=1.1)
        Gaussian(noise_multiplier=1.1)
    """

    falls_with = ("noise_multiplier",)

    noise_multiplier: float

    def __init__(self, noise_multiplier: float) -> None:
        number = _validate.real("noise_multiplier", noise_multiplier)
        object.__setattr__(self, "noise_multiplier", number)

    @property
    def assumptions(self) -> tuple[str, ...]:
        noise = f"{plain(self.noise_multiplier)} times the query's L2 sensitivity"
        return (f"Fresh Gaussian noise is added; its standard deviation is {noise}.",)

    def for_group(self, size: int) -> Gaussian:
        """Return the mechanism whose noise is ``size`` times smaller."""
        return Gaussian(quotient_down(self.noise_multiplier, size))

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "Gaussian", (f"noise multiplier {self.noise_multiplier:g}",)
