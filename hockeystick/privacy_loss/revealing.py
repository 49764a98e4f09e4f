"""The loss of a release without noise: with some probability it gives the record away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from hockeystick.privacy_loss._rates import largest_when_adding, log_complement
from hockeystick.privacy_loss.base import Ball, CGFEstimate, ProfiledLoss

if TYPE_CHECKING:
    from mpmath import mpf


@final
@dataclass(frozen=True, slots=True)
class RevealingLoss(ProfiledLoss):
    """The pair ``(1-p) d_0 + p d_1`` against ``d_0`` (removing), or the other way round.

    Removing, the loss is infinite with probability p, and ln(1-p) otherwise; adding, it is
    -ln(1-p). For epsilon >= 0 the larger delta is p, from removing.
    """

    rate: float | Fraction
    removing: bool

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K: infinite where removing reveals, a straight line where adding."""
        if self.removing or self.rate == 1.0:
            return CGFEstimate(math.inf, math.inf, 0.0)
        shift = -log_complement(self.rate)
        return CGFEstimate(c * shift, shift, 0.0)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K and its round-off."""
        value = self.cgf_estimate(c).value
        return Ball(value, 2.0**-49 * value if value < math.inf else 0.0)

    @property
    def supremum(self) -> float:
        """Infinite when removing, or always sampled; -ln(1-p) when adding, rounded up."""
        if self.removing or self.rate == 1.0:
            return math.inf
        return largest_when_adding(self.rate)

    def delta(self, epsilon: mpf, nudge: int = 0) -> mpf:
        """Return p (removing) or (1 - exp(eps) (1 - p))_+ (adding), for epsilon >= 0."""
        from mpmath import mp

        from hockeystick.precision.profiles import exact

        p = min(exact(self.rate) * (1 + nudge * mp.mpf(2) ** -52), 1)
        return p if self.removing else max(mp.zero, 1 - mp.exp(epsilon) * (1 - p))
