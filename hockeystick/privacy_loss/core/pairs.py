"""The pair of losses of one run, and where a mechanism says what it is."""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch
from typing import NamedTuple

from hockeystick.mechanisms import Mechanism
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.tradeoffs import TradeOff


class DominatingPair(NamedTuple):
    """The losses of one run in the two directions; None for perfect privacy.

    The two are composed separately, and only the final answers are compared.
    """

    removing: PrivacyLoss | None
    adding: PrivacyLoss | None


def both(loss: PrivacyLoss) -> DominatingPair:
    """Return the pair of a loss that is the same in both directions."""
    return DominatingPair(loss, loss)


class NoAnalysisError(Exception):
    """No dominating pair is known; the reason, and the part of the plan that it is about."""

    part: str = "plan"


@singledispatch
def dominating_pair(mechanism: Mechanism) -> DominatingPair:
    """Return the dominating pair of one run of a mechanism.

    Raises:
        NoAnalysisError: If none is known.
    """
    raise NoAnalysisError(f"no privacy loss is known for a {type(mechanism).__name__}")


@singledispatch
def dominating_pair_of_tradeoff(tradeoff: TradeOff) -> DominatingPair:
    """Return the dominating pair of all releases with a trade-off function."""
    raise NoAnalysisError(f"no privacy loss is known for a {type(tradeoff).__name__}")


@singledispatch
def sampled_loss(loss: PrivacyLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    """Return the loss of one run on a Poisson sample, at a rate between 0 and 1.

    Raises:
        NoAnalysisError: If the distribution of the loss itself is not known.
    """
    raise NoAnalysisError("only some bounds of its privacy loss are known, not its distribution")
