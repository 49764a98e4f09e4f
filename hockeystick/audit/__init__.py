"""What an attack finds, against what was proven: lower bounds with a stated confidence.

Larger scores mean "in": that the record took part.
"""

from __future__ import annotations

from hockeystick.audit.bounds import lower_curve, lower_epsilon, lower_mu
from hockeystick.audit.results import Consistent, LowerBound, OperatingPoint, Refuted

__all__ = [
    "Consistent",
    "LowerBound",
    "OperatingPoint",
    "Refuted",
    "lower_curve",
    "lower_epsilon",
    "lower_mu",
]
