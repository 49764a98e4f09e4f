"""In which arithmetic a step sums and noises clipped gradients, and that of floats."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import torch

from hockeystick.adapters.torch._random import normals
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up

# Below this, numbers in single precision have fewer digits.
LEAST: Final = 2.0**-126
Noise = Callable[[Any, float], Any]


class Arithmetic(ABC):
    """Sums of clipped gradients in some unit, and noise on them."""

    __slots__ = ()
    name: ClassVar[str]

    @abstractmethod
    def units(self, norm: float) -> float:
        """Return how many units a clipping norm has."""

    @abstractmethod
    def sums(
        self, parts: list[Any], lengths: Any, norm: float, groups: int, weights: Any
    ) -> list[Any]:
        """Return for each part of the gradients their clipped sums, one for each row of weights.

        Args:
            parts: Tensors with a row for each example, which together are its gradient in one of
                the groups.
            lengths: The length of each example's gradient there.
            norm: The clipping norm of all groups together.
            groups: How many there are.
            weights: Zeros and ones, a column for each example.
        """

    @abstractmethod
    def noise(self, seed: int | None, step: int, device: Any) -> Noise:
        """Return what adds noise of a standard deviation in units to a sum, in doubles."""

    def deviation(self, noise_multiplier: float, units: float) -> float:
        """Return a noise multiplier times a number of units, rounded up."""
        return float_up(largest_reading(noise_multiplier) * Fraction(units))


@final
class Real(Arithmetic):
    """Floats in place of real numbers, as torch rounds them; the unit is 1."""

    __slots__ = ()
    name = "real"

    def units(self, norm: float) -> float:
        return norm

    def sums(
        self, parts: list[Any], lengths: Any, norm: float, groups: int, weights: Any
    ) -> list[Any]:
        """Return sums in the precision of the gradients.

        A gradient without a finite length counts as 0: an infinite or undefined one would be in the
        sum for all to see. So does one of 10^37 clipping norms, which no scale in single precision
        brings down to one.
        """
        limit = norm / math.sqrt(groups)
        scales = limit / lengths.clamp(min=limit)
        kept = scales >= LEAST  # which no infinite or undefined length is
        if not bool(kept.all()):
            scales = torch.where(kept, scales, 0.0)
            parts = [torch.where(kept.unsqueeze(1), part, 0.0) for part in parts]
        return [(weights * scales).to(part.dtype) @ part for part in parts]

    def noise(self, seed: int | None, step: int, device: Any) -> Noise:
        drawn = normals(seed, step, device)
        return lambda total, deviation: drawn(total.shape).mul_(deviation).add_(total)
