"""The pair of losses of Gaussian noise on several queries."""

from __future__ import annotations

import math
from fractions import Fraction

from hockeystick.mechanisms import JointGaussian
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss


@dominating_pair.register
def _(mechanism: JointGaussian) -> DominatingPair:
    noises = mechanism.noise_multipliers
    if 0.0 in noises:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    known = [1 / decimal(noise) ** 2 for noise in noises if noise < math.inf]
    return gaussian_of_square(sum(known, Fraction(0)))


def gaussian_of_square(square: Fraction) -> DominatingPair:
    """Return the losses of a Gaussian by ``mu^2``; the root has far more digits than a float."""
    if square == 0:
        return DominatingPair(None, None)
    loss = GaussianLoss(1 / square_root(square))
    return DominatingPair(loss, loss)
