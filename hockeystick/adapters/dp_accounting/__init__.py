"""Plugs into dp-accounting: its events as mechanisms, mechanisms as its events, an accountant."""

from hockeystick.adapters.dp_accounting._accountant import HockeystickAccountant
from hockeystick.adapters.dp_accounting._reading import from_event
from hockeystick.adapters.dp_accounting._writing import to_event

__all__ = ["HockeystickAccountant", "from_event", "to_event"]
