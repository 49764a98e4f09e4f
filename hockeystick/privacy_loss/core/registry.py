"""From a mechanism to its pair of losses: what every mechanism's leaf registers with."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

from hockeystick.mechanisms import Mechanism
from hockeystick.privacy_loss.core.base import PrivacyLoss


class DominatingPair(NamedTuple):
    """The losses of one run in the two directions; None where the output tells nothing.

    The two are composed separately, and only the final answers are compared.
    """

    removing: PrivacyLoss | None
    adding: PrivacyLoss | None


class NoAnalysisError(Exception):
    """No pair of losses is known; the reason, and the part of the plan that it is about."""

    part: str = "plan"


@singledispatch
def dominating_pair(mechanism: Mechanism) -> DominatingPair:
    """Return the pair of losses of one run of a mechanism.

    Raises:
        NoAnalysisError: If none is known.
    """
    raise NoAnalysisError(f"no privacy loss is known for a {type(mechanism).__name__}")
