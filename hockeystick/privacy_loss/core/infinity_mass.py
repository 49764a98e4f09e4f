"""The loss of a Poisson-subsampled release without noise, which has infinity mass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from hockeystick.numerics import Ball, FloatAndDecimal
from hockeystick.privacy_loss.core.base import (
    NO_INFINITY_MASS,
    CGFEstimate,
    PrivacyLoss,
    ProfiledLoss,
)
from hockeystick.privacy_loss.core.composition import (
    complement_bounds,
    largest_when_adding,
    log_complement,
)
from hockeystick.privacy_loss.core.pairs import DominatingPair, NoAnalysisError

if TYPE_CHECKING:
    from mpmath import mpf

# With less noise mu is no float.
LEAST_NOISE: Final = 1e-300


@final
@dataclass(frozen=True, slots=True)
class ConstantLoss(PrivacyLoss):
    """A constant loss, known by two ends."""

    low: float
    high: float

    @property
    def constant(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def without_constant(self) -> None:
        return

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return CGFEstimate(c * self.high, self.high, 0.0)

    def cgf_bounds(self, c: float) -> Ball:
        return Ball(c * self.high, c * (self.high - self.low) + 2.0**-50 * abs(c * self.high))

    @property
    def supremum(self) -> float:
        return self.high

    @property
    def least_supremum(self) -> float:
        return self.low


@final
@dataclass(frozen=True, slots=True)
class NoiselessLoss(ProfiledLoss):
    """The pair ``(1-p) d_0 + p d_1`` against ``d_0`` (removing), or the other way round.

    Removing, the loss is infinite with probability p, and ln(1-p) otherwise; adding, it is
    -ln(1-p). For epsilon >= 0 the larger delta is p, from removing.
    """

    rate: float | Fraction
    removing: bool

    @property
    def infinity_mass(self) -> FloatAndDecimal:
        return (
            FloatAndDecimal.of(self.rate) if self.removing or self.rate == 1 else NO_INFINITY_MASS
        )

    @property
    def finite(self) -> PrivacyLoss | None:
        if self.rate == 1:
            return None
        return ConstantLoss(*complement_bounds(self.rate)) if self.removing else self

    @property
    def constant(self) -> tuple[float, float]:
        low, high = complement_bounds(self.rate)
        return -high, -low

    @property
    def without_constant(self) -> None:
        return

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if self.removing or self.rate == 1.0:
            return CGFEstimate(math.inf, math.inf, 0.0)
        shift = -log_complement(self.rate)
        return CGFEstimate(c * shift, shift, 0.0)

    def cgf_bounds(self, c: float) -> Ball:
        value = self.cgf_estimate(c).value
        return Ball(value, 2.0**-49 * value if value < math.inf else 0.0)

    @property
    def supremum(self) -> float:
        if self.removing or self.rate == 1.0:
            return math.inf
        return largest_when_adding(self.rate)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return p (removing) or (1 - exp(eps) (1 - p))_+ (adding), for epsilon >= 0."""
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.profiles import exact

        p = min(exact(self.rate) * (1 + perturbation * mp.mpf(2) ** -52), 1)
        return p if self.removing else max(mp.zero, 1 - mp.exp(epsilon) * (1 - p))


def edge_pair(noise: float, least: float = 0.0) -> DominatingPair | None:
    """Return the dominating pair for noise 0 or inf; None in between, refused below the least."""
    if noise == math.inf:
        return DominatingPair(None, None)
    if noise == 0.0:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    if noise < least:
        raise NoAnalysisError(f"noise multipliers are analysed from {least:g} on, or 0")
    return None
