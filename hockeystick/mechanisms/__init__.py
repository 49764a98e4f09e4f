"""Frozen descriptions of what touches the data; how they are accounted is decided elsewhere.

Every module of the families is imported here, and what it registers is a name of this package:
``__init__.pyi`` lists the names for type checkers, and a test sees that it lists them all.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick._modules import import_modules
from hockeystick.mechanisms.base import Mechanism, Plan, registered_in
from hockeystick.mechanisms.selection import tuning
from hockeystick.mechanisms.structure import Algebra, Node, assumptions_of, evaluate, index, runs_of
from hockeystick.mechanisms.training import schedules

# They are names of this package, and can be imported by them as well.
sys.modules.update({f"{__name__}.schedules": schedules, f"{__name__}.tuning": tuning})

import_modules(__name__)
_REGISTERED: Final = registered_in(__name__)

MECHANISMS: Final[Mapping[str, type[Mechanism]]] = MappingProxyType(
    {name: kind for name, kind in _REGISTERED.items() if issubclass(kind, Mechanism)}
)

__all__ = [
    "MECHANISMS",
    "Algebra",
    "Mechanism",
    "Node",
    "Plan",
    "assumptions_of",
    "evaluate",
    "index",
    "runs_of",
    "schedules",
    "tuning",
]
__all__ += list(_REGISTERED)

globals().update(_REGISTERED)
