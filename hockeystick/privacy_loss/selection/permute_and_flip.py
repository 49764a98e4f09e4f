"""The pair of losses of permute-and-flip: that of a noisy maximum with exponential noise."""

from __future__ import annotations

from hockeystick.mechanisms.selection.exponential import MaxNoise
from hockeystick.mechanisms.selection.permute_and_flip import PermuteAndFlip
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.selection.exponential import selection_pair


@dominating_pair.register
def _(mechanism: PermuteAndFlip) -> DominatingPair:
    return selection_pair(mechanism.epsilon, MaxNoise.EXPONENTIAL)
