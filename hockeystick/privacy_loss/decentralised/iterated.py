"""The dominating pair of noisy iterations: amplification by iteration."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hockeystick.mechanisms.decentralised.convex import change
from hockeystick.mechanisms.decentralised.iterated import NoisyIterations
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.dominated import dominated_pair
from hockeystick.privacy_loss.core.infinity_mass import edge_pair
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss


@dominating_pair.register
def _(mechanism: NoisyIterations) -> DominatingPair:
    if mechanism.steps == 0:
        return DominatingPair(None, None)
    edge = edge_pair(mechanism.noise_multiplier)
    if edge is not None:
        return edge
    noise = StepNoise(decimal(mechanism.noise_multiplier) / change(mechanism.adjacency))
    return dominated_pair(noise.covered(mechanism.covering), noise.covered(mechanism.steps))


@final
@dataclass(frozen=True, slots=True)
class StepNoise:
    """The noise multiplier of one step, ``scale``."""

    scale: Fraction

    def covered(self, steps: int) -> GaussianLoss:
        """Return the loss under the noise of several steps, ``mu = 1 / (scale sqrt(steps))``."""
        return GaussianLoss(self.scale * steps / square_root(Fraction(steps)))
