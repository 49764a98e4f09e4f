"""Metric privacy has no loss of its own: that depends on the distance of two inputs."""

from __future__ import annotations

from hockeystick.notions.metric import MetricDP
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair


@dominating_pair.register
def _(mechanism: MetricDP) -> DominatingPair:
    raise NoAnalysisError(
        "its privacy loss grows with the distance of two inputs, so that it has none for all "
        "neighbours alike; say how far apart neighbours may be: MetricDP(epsilon).within(radius)"
    )
