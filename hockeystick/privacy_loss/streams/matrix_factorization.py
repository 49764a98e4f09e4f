"""The pair of losses of Gaussian noise on a linear encoder: a matrix factorization."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from hockeystick.mechanisms.streams.matrix_factorization import MatrixFactorization
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

_ROUNDED: Final = Fraction(1, 2**150)


@dominating_pair.register
def _(mechanism: MatrixFactorization) -> DominatingPair:
    encoder = mechanism.encoder
    return encoder_pair(mechanism.noise_multiplier, encoder.least_square, encoder.square)


def encoder_pair(noise_multiplier: float, least: Fraction, most: Fraction) -> DominatingPair:
    """Return the losses of Gaussian noise on what moves between two distances, squared.

    Where no float tells these apart, they are those of the larger one.
    """
    if most == 0 or noise_multiplier == math.inf:
        return DominatingPair(None, None)
    if noise_multiplier == 0.0:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    noise = decimal(noise_multiplier)
    above = GaussianLoss(noise / square_root(most))
    if most - least <= most * _ROUNDED:
        return DominatingPair(above, above)
    loss = DominatedLoss(above, GaussianLoss(noise / square_root(least)))
    return DominatingPair(loss, loss)
