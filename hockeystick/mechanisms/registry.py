"""What ``hockeystick.mechanisms`` has by name: a class registers itself where it is written."""

from __future__ import annotations

from typing import Final, TypeVar

_Class = TypeVar("_Class", bound=type)

_REGISTERED: Final[dict[str, type]] = {}


def registered(kind: _Class) -> _Class:
    """Register a class: a mechanism, or a type that people need to describe one.

    It is then in ``hockeystick.mechanisms`` under its own name, which no other class may have. A
    mechanism is also in ``MECHANISMS``, from which plan files and documents take what there is.
    """
    known = _REGISTERED.setdefault(kind.__name__, kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise TypeError(f"{known.__module__} has a {kind.__name__} already")
    _REGISTERED[kind.__name__] = kind
    return kind


def registered_in(package: str) -> dict[str, type]:
    """Return the classes that the modules of a package register, by their names, in order."""
    inside = f"{package}."
    return {
        name: kind
        for name, kind in sorted(_REGISTERED.items())
        if kind.__module__.startswith(inside)
    }
