"""What an attack finds, against what was proven: lower bounds with a stated confidence.

Larger scores mean "in": that the record took part.
"""

from __future__ import annotations

from hockeystick.audit.results import Consistent, LowerBound, OperatingPoint, Refuted

__all__ = ["Consistent", "LowerBound", "OperatingPoint", "Refuted"]
