"""Why parts of the data have no pair of losses together: they are accounted one by one."""

from __future__ import annotations

from hockeystick.mechanisms import Parallel
from hockeystick.privacy_loss.core.composition import SPLIT_INSIDE
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair


@dominating_pair.register
def _(mechanism: Parallel) -> DominatingPair:
    raise NoAnalysisError(SPLIT_INSIDE)
