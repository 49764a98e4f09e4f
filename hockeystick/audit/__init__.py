"""What an attack or a replay finds, against what was proven: with a stated confidence.

Larger scores mean "in": that the record took part.
"""

from __future__ import annotations

from hockeystick.audit.bounds import falsify, lower_curve, lower_epsilon, lower_mu
from hockeystick.audit.one_run import falsify_one_run, one_run, one_run_mu
from hockeystick.audit.power import Detection, detection, trials_needed
from hockeystick.audit.recording import PlainLoop, Replay, Rule, SelfTest, Violation, record
from hockeystick.audit.results import Consistent, LowerBound, OperatingPoint, Refuted
from hockeystick.audit.scores import Scores, load_scores

__all__ = [
    "Consistent",
    "Detection",
    "LowerBound",
    "OperatingPoint",
    "PlainLoop",
    "Refuted",
    "Replay",
    "Rule",
    "Scores",
    "SelfTest",
    "Violation",
    "detection",
    "falsify",
    "falsify_one_run",
    "load_scores",
    "lower_curve",
    "lower_epsilon",
    "lower_mu",
    "one_run",
    "one_run_mu",
    "record",
    "trials_needed",
]
