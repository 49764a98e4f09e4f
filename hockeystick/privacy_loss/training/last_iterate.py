"""The dominating pair of the last iterate of noisy gradient descent: one Gaussian."""

from __future__ import annotations

from fractions import Fraction

from hockeystick.mechanisms.training.last_iterate import LastIterate
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.bounds.shifted_interpolation import LastOfCycle
from hockeystick.privacy_loss.core.dominated import dominated_pair
from hockeystick.privacy_loss.core.infinity_mass import edge_pair
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss


@dominating_pair.register
def _(mechanism: LastIterate) -> DominatingPair:
    if mechanism.steps == 0:
        return DominatingPair(None, None)
    edge = edge_pair(mechanism.noise_multiplier)
    if edge is not None:
        return edge
    cycle = _cycle(mechanism)
    above = GaussianLoss(cycle.noise_lower())
    projected = cycle.across is not None
    below = None if projected or _alternates(mechanism) else GaussianLoss(cycle.noise_attained())
    return dominated_pair(above, below)


def _cycle(mechanism: LastIterate) -> LastOfCycle:
    """Return the steps in units of the noise."""
    noise, (low, high) = decimal(mechanism.noise_multiplier), mechanism.factors
    across = mechanism.moves_across
    return LastOfCycle(
        max(abs(low), abs(high)),
        max(low, -high, Fraction(0)),
        mechanism.steps,
        mechanism.period,
        mechanism.change / noise,
        None if across is None else across / noise,
    )


def _alternates(mechanism: LastIterate) -> bool:
    """Return whether distances change sign in every step, and no curvature is left to follow."""
    low, high = mechanism.factors
    return low == high < 0
