"""The pair of losses of a guarantee of Gaussian DP."""

from __future__ import annotations

import math

from hockeystick.notions import GDP
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.core.two_point import NO_PRIVACY
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss


@dominating_pair.register
def _(mechanism: GDP) -> DominatingPair:
    return gaussian_pair(mechanism.mu)


def gaussian_pair(mu: float) -> DominatingPair:
    """Return the losses of a Gaussian of which mu is known."""
    if mu == 0.0:
        return DominatingPair(None, None)
    if mu == math.inf:
        return NO_PRIVACY
    loss = GaussianLoss(1 / decimal(mu))
    return DominatingPair(loss, loss)
