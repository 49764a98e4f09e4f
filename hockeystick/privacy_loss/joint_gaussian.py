"""The pairs of losses of Gaussian noise on several queries, and on second moments."""

from __future__ import annotations

import math
from fractions import Fraction

from hockeystick.mechanisms import JointGaussian, PrivateCovariance
from hockeystick.mechanisms.matrix_factorization import square_root
from hockeystick.privacy_loss.gaussian import GaussianLoss
from hockeystick.privacy_loss.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.revealing import RevealingLoss


@dominating_pair.register
def _(mechanism: JointGaussian) -> DominatingPair:
    noises = mechanism.noise_multipliers
    if 0.0 in noises:
        return DominatingPair(RevealingLoss(1.0, True), RevealingLoss(1.0, False))
    known = [1 / Fraction(repr(noise)) ** 2 for noise in noises if noise < math.inf]
    return gaussian_of_square(sum(known, Fraction(0)))


@dominating_pair.register
def _(mechanism: PrivateCovariance) -> DominatingPair:
    noise = mechanism.noise_multiplier
    if noise == 0.0:
        return DominatingPair(RevealingLoss(1.0, True), RevealingLoss(1.0, False))
    if noise == math.inf:
        return DominatingPair(None, None)
    return gaussian_of_square(mechanism.squared_sensitivity / Fraction(repr(noise)) ** 2)


def gaussian_of_square(square: Fraction) -> DominatingPair:
    """Return the losses of a Gaussian by ``mu^2``; the root has far more digits than a float."""
    if square == 0:
        return DominatingPair(None, None)
    loss = GaussianLoss(1 / square_root(square))
    return DominatingPair(loss, loss)
