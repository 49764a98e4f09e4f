"""Permute-and-flip: a selection that is never worse than the exponential mechanism's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick import _validate
from hockeystick.mechanisms.base import AnyAdjacency
from hockeystick.mechanisms.registry import registered
from hockeystick.numerics.numerals import plain


@registered
@final
@dataclass(frozen=True, slots=True, init=False)
class PermuteAndFlip(AnyAdjacency):
    """The first candidate in random order whose coin, biased by its score, shows heads.

    Each candidate's coin shows heads with probability
    exp(epsilon * (score(D, o) - best score) / (2 * sensitivity)), where the sensitivity is the
    most that any score moves between two neighbouring data sets; without the 2 where all scores
    move the same way. The same as reporting the largest score after exponential noise.

    Guarantees:
        The upper end is that of epsilon-DP. The lower end is a concrete case: two candidates whose
        scores change places. The range of its losses is not bounded by epsilon as that of the
        exponential mechanism's is.

    Edge cases:
        epsilon 0 ignores the scores and costs nothing; inf selects the best, and its loss
        may be infinite.

    Args:
        epsilon: In [0, inf].

    Raises:
        ParameterError: If epsilon is no such number.

    References:
        McKenna and Sheldon, "Permute-and-Flip: A New Mechanism for Differentially Private
        Selection", 2020, theorem 1.

    Example:
        >>> import hockeystick as hs
        >>> hs.mechanisms.PermuteAndFlip(epsilon=1.0)
        PermuteAndFlip(epsilon=1.0)
    """

    rises_with = ("epsilon",)

    epsilon: float

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "epsilon", _validate.real("epsilon", epsilon))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            "Candidates are visited in uniformly random order, each accepted with probability "
            f"exp({plain(self.epsilon)} * (score - best score) / (2 * sensitivity)); the first "
            "that is accepted is released.",
        )

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "permute-and-flip", (f"epsilon {self.epsilon:g}",)
