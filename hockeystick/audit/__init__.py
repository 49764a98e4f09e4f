"""What an attack finds, against what was proven: lower bounds with a stated confidence.

Larger scores mean "in": that the record took part.
"""

from __future__ import annotations

from hockeystick.audit.bounds import lower_curve, lower_epsilon, lower_mu
from hockeystick.audit.credible import credible_epsilon
from hockeystick.audit.one_run import falsify_one_run, one_run, one_run_mu
from hockeystick.audit.power import Detection, detection, trials_needed
from hockeystick.audit.refutation import falsify
from hockeystick.audit.results import Consistent, LowerBound, OperatingPoint, Refuted

__all__ = [
    "Consistent",
    "Detection",
    "LowerBound",
    "OperatingPoint",
    "Refuted",
    "credible_epsilon",
    "detection",
    "falsify",
    "falsify_one_run",
    "lower_curve",
    "lower_epsilon",
    "lower_mu",
    "one_run",
    "one_run_mu",
    "trials_needed",
]
