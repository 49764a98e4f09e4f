"""Why parts of the data have no pair of losses together: they are accounted one by one."""

from __future__ import annotations

from hockeystick.mechanisms import Parallel
from hockeystick.privacy_loss.registry import DominatingPair, NoAnalysisError, dominating_pair


@dominating_pair.register
def _(mechanism: Parallel) -> DominatingPair:
    raise NoAnalysisError(
        "releases of disjoint parts of the data are accounted part by part, in a composition or a "
        "repetition; put what is around them into each of the parts"
    )
