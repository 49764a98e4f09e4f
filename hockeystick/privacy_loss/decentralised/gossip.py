"""The dominating pair of gossip averaging: one Gaussian, by the span of what is observed."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from hockeystick.mechanisms.decentralised.gossip import (
    GossipAveraging,
    is_sent_to_observers,
    observed_span,
)
from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.dominated import dominated_pair
from hockeystick.privacy_loss.core.infinity_mass import edge_pair
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss

# A root is rounded up by less than this: the lower end needs it rounded down.
_DOWN: Final = 1 - Fraction(1, 2**100)


@dominating_pair.register
def _(mechanism: GossipAveraging) -> DominatingPair:
    least, most = _squared_projection(mechanism)
    if most == 0:
        return DominatingPair(None, None)
    edge = edge_pair(mechanism.noise_multiplier)
    if edge is not None:
        return edge
    noise = decimal(mechanism.noise_multiplier)
    above = GaussianLoss(noise / square_root(most))
    if least == most:
        return DominatingPair(above, above)
    if least == 0:
        return dominated_pair(above, None)
    return dominated_pair(above, GaussianLoss(noise / (square_root(least) * _DOWN)))


def _squared_projection(mechanism: GossipAveraging) -> tuple[Fraction, Fraction]:
    """Return proven ends of ``|P e_u|^2``, or raise where that takes too long."""
    if is_sent_to_observers(mechanism):
        return Fraction(1), Fraction(1)
    observers = mechanism.observers
    span = observed_span(mechanism.graph, mechanism.weights, mechanism.rounds, observers)
    if span is None:
        raise NoAnalysisError(
            f"what {len(observers)} observers see of {mechanism.graph.parties:,} parties in "
            f"{mechanism.rounds:,} rounds takes too long to eliminate exactly; what a party loses "
            "to everybody, Gaussian(noise_multiplier), bounds it"
        )
    return span.squared_projection(mechanism.party)
