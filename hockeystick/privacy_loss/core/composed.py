"""A release whose loss is known as a sum of independent other ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.core.base import CGFEstimate, PrivacyLoss


@final
@dataclass(frozen=True, slots=True)
class ComposedLoss(PrivacyLoss):
    """The sum of independent losses with their counts, which a composition has in its place.

    Attained is what is attained of its parts together: all but one of them attain nothing.
    """

    parts: tuple[tuple[PrivacyLoss, int], ...]

    @property
    def expanded(self) -> tuple[tuple[PrivacyLoss, int], ...]:
        """The parts."""
        return self.parts

    @property
    def attained(self) -> None:
        """Nothing by itself."""
        return

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return the sum of those of the parts."""
        found = [(loss.cgf_estimate(c), runs) for loss, runs in self.parts]
        return CGFEstimate(*(sum(runs * one[k] for one, runs in found) for k in range(3)))

    def cgf_bounds(self, c: float) -> Ball:
        """Return the sum of those of the parts."""
        found = [(loss.cgf_bounds(c), runs) for loss, runs in self.parts]
        value = math.fsum(runs * one.midpoint for one, runs in found)
        error = math.fsum(runs * one.radius for one, runs in found)
        return Ball(value, error * (1.0 + 8.0 * ULP) + 8.0 * ULP * abs(value))

    @property
    def supremum(self) -> float:
        """The sum of those of the parts, rounded up."""
        return math.fsum(runs * loss.supremum for loss, runs in self.parts) * (1.0 + 2.0**-50)
