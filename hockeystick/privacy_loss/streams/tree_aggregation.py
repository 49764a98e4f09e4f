"""The pair of losses of Gaussian noise on the nodes of a tree."""

from __future__ import annotations

from fractions import Fraction

from hockeystick.mechanisms.streams.tree_aggregation import TreeAggregation
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.streams.matrix_factorization import encoder_pair


@dominating_pair.register
def _(mechanism: TreeAggregation) -> DominatingPair:
    square = Fraction(mechanism.height)
    return encoder_pair(mechanism.noise_multiplier, square, square)
