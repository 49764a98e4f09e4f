"""The pair of losses of Gaussian noise on second moments."""

from __future__ import annotations

import math

from hockeystick.mechanisms import PrivateCovariance
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.noise.joint_gaussian import gaussian_of_square


@dominating_pair.register
def _(mechanism: PrivateCovariance) -> DominatingPair:
    noise = mechanism.noise_multiplier
    if noise == 0.0:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    if noise == math.inf:
        return DominatingPair(None, None)
    return gaussian_of_square(mechanism.squared_sensitivity / decimal(noise) ** 2)
