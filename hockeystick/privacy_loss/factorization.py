"""The pairs of losses of Gaussian noise on linear encoders: trees and matrix factorizations."""

from __future__ import annotations

import math
from fractions import Fraction

from hockeystick.mechanisms.matrix_factorization import MatrixFactorization, square_root
from hockeystick.mechanisms.tree_aggregation import TreeAggregation
from hockeystick.privacy_loss.dominated import DominatedLoss
from hockeystick.privacy_loss.gaussian import GaussianLoss
from hockeystick.privacy_loss.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.revealing import RevealingLoss


@dominating_pair.register
def _(mechanism: TreeAggregation) -> DominatingPair:
    square = Fraction(mechanism.height)
    return _gaussian(mechanism.noise_multiplier, square, square)


@dominating_pair.register
def _(mechanism: MatrixFactorization) -> DominatingPair:
    encoder = mechanism.encoder
    return _gaussian(mechanism.noise_multiplier, encoder.least_square, encoder.square)


def _gaussian(noise_multiplier: float, least: Fraction, most: Fraction) -> DominatingPair:
    """Return the losses of Gaussian noise on what moves between two distances, squared."""
    if most == 0 or noise_multiplier == math.inf:
        return DominatingPair(None, None)
    if noise_multiplier == 0.0:
        return DominatingPair(RevealingLoss(1.0, True), RevealingLoss(1.0, False))
    noise = Fraction(repr(noise_multiplier))
    above = GaussianLoss(noise / square_root(most))
    if least == most:
        return DominatingPair(above, above)
    loss = DominatedLoss(above, GaussianLoss(noise / square_root(least)))
    return DominatingPair(loss, loss)
