"""The pair of losses of GOPA: one Gaussian, whose mu is between proven ends."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from hockeystick.mechanisms.decentralised.gopa import GOPA
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.decentralised.effective_resistance import (
    Exposure,
    exposure,
    infinite_exposure,
)
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

# With less noise mu is no float.
_LEAST_NOISE: Final = 1e-300


@dominating_pair.register
def _(mechanism: GOPA) -> DominatingPair:
    if mechanism.noise_multiplier == math.inf:
        return DominatingPair(None, None)
    if mechanism.noise_multiplier == 0.0:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    if mechanism.noise_multiplier < _LEAST_NOISE:
        raise NoAnalysisError(f"noise multipliers are analysed from {_LEAST_NOISE:g} on, or 0")
    noise = decimal(mechanism.noise_multiplier)
    ends = _exposure(mechanism, noise)
    above = GaussianLoss(noise / square_root(ends.most))
    if ends.least == ends.most:
        return DominatingPair(above, above)
    loss = DominatedLoss(above, GaussianLoss(noise / square_root(ends.least)))
    return DominatingPair(loss, loss)


def _exposure(mechanism: GOPA, noise: Fraction) -> Exposure:
    """Return the largest ``s^2 (Sg^-1)_vv``."""
    graph, colluders = mechanism.graph, mechanism.colluders
    if mechanism.pairwise_multiplier == math.inf:
        exact = infinite_exposure(graph, colluders)
        return Exposure(exact, exact)
    pairwise = decimal(mechanism.pairwise_multiplier)
    return exposure(graph, colluders, (pairwise / noise) ** 2)
