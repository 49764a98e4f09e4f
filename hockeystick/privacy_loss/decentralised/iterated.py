"""The dominating pair of noisy iterations: amplification by iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from hockeystick.mechanisms.decentralised.convex import change
from hockeystick.mechanisms.decentralised.iterated import NoisyIterations
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

# With less noise mu is no float.
_LEAST_NOISE: Final = 1e-300


@dominating_pair.register
def _(mechanism: NoisyIterations) -> DominatingPair:
    if mechanism.steps == 0:
        return DominatingPair(None, None)
    edge = edge_pair(mechanism.noise_multiplier)
    if edge is not None:
        return edge
    noise = StepNoise(decimal(mechanism.noise_multiplier) / change(mechanism.adjacency))
    return dominated_pair(noise.covered(mechanism.covering), noise.covered(mechanism.steps))


def edge_pair(noise_multiplier: float) -> DominatingPair | None:
    """Return the dominating pair for noise 0 or inf; None in between."""
    if noise_multiplier == math.inf:
        return DominatingPair(None, None)
    if noise_multiplier == 0.0:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    if noise_multiplier < _LEAST_NOISE:
        raise NoAnalysisError(f"noise multipliers are analysed from {_LEAST_NOISE:g} on, or 0")
    return None


def dominated_pair(above: CellLoss, below: PrivacyLoss | None) -> DominatingPair:
    """Return the pair of a dominating and an attained loss, the same in both directions."""
    loss = above if above == below else DominatedLoss(above, below)
    return DominatingPair(loss, loss)


@final
@dataclass(frozen=True, slots=True)
class StepNoise:
    """The noise multiplier of one step, ``scale``."""

    scale: Fraction

    def covered(self, steps: int) -> GaussianLoss:
        """Return the loss under the noise of several steps, ``mu = 1 / (scale sqrt(steps))``."""
        return GaussianLoss(self.scale * steps / square_root(Fraction(steps)))
