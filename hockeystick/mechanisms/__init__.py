"""Frozen descriptions of what touches the data; how they are accounted is decided elsewhere.

What the modules of the families register are names of this package; ``__init__.pyi`` lists them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pkgutil import walk_packages
from types import MappingProxyType
from typing import Final

from hockeystick.mechanisms.base import Mechanism, Plan, registered_in
from hockeystick.mechanisms.selection import tuning
from hockeystick.mechanisms.structure import Algebra, Node, assumptions_of, evaluate, index, runs_of
from hockeystick.mechanisms.training import schedules

# They are names of this package, and can be imported by them as well.
sys.modules.update({f"{__name__}.schedules": schedules, f"{__name__}.tuning": tuning})

for _found in walk_packages(__path__, f"{__name__}."):
    import_module(_found.name)
_REGISTERED: Final = registered_in(__name__)

MECHANISMS: Final[Mapping[str, type[Mechanism]]] = MappingProxyType(
    {name: kind for name, kind in _REGISTERED.items() if issubclass(kind, Mechanism)}
)

# The other rooms' own, which are no public names.
_INTERNAL: Final = (Algebra, Node, assumptions_of, evaluate, runs_of)

__all__ = ["MECHANISMS", "Mechanism", "Plan", "index", "schedules", "tuning"]
__all__ += list(_REGISTERED)

globals().update(_REGISTERED)
