"""Rooms that have another name now: the old one works for one release, and says where it went."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final
from warnings import warn

ROOMS: Final = {
    "claims": "literature",
    "losses": "privacy_loss",
    "randomizers": "release",
}


class _MovedRoom(ModuleType):
    """The old name of a room, which loads the room when something is taken from it."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(old, f"``{new}`` under its old name.")
        self._new = new

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        warn(f"{self.__name__} is now {self._new}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(self._new), name)


def install(package: ModuleType) -> None:
    """Make the old names importable from a package."""
    for old, new in ROOMS.items():
        room = _MovedRoom(f"{package.__name__}.{old}", f"{package.__name__}.{new}")
        sys.modules[room.__name__] = room
        setattr(package, old, room)
