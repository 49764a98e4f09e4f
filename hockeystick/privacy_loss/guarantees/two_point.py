"""The pair of losses of a pure or approximate guarantee: randomized response is the worst."""

from __future__ import annotations

from hockeystick.notions import ApproxDP, PureDP
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.core.two_point import two_point_pair


@dominating_pair.register
def _(mechanism: PureDP) -> DominatingPair:
    return two_point_pair(mechanism.epsilon, 0.0)


@dominating_pair.register
def _(mechanism: ApproxDP) -> DominatingPair:
    return two_point_pair(mechanism.epsilon, mechanism.delta)
