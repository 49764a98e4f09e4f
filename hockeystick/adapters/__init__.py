"""Plugs for training libraries; one module or package for each, loaded when it is first named."""

from importlib import import_module
from types import ModuleType
from typing import Final

_PLUGS: Final = ("dp_accounting", "flower", "loop", "opacus", "optuna", "ray", "torch")


def __getattr__(name: str) -> ModuleType:
    """Return a plug, which is loaded when it is first named.

    Raises:
        ModuleNotFoundError: If what it is for isn't installed.
        AttributeError: If there is no such plug.
    """
    if name not in _PLUGS:
        text = f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_PLUGS)}"
        raise AttributeError(text, name=name)
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    """Return what is here, and the plugs that aren't loaded."""
    return sorted({*globals(), *_PLUGS})


def missing(error: ModuleNotFoundError, library: str, extra: str) -> ModuleNotFoundError:
    """Return the error to raise in place of one: it names the extra that brings a library."""
    if (error.name or "").partition(".")[0] != library:
        return error
    how = f"{library} is not installed: pip install 'hockeystick[{extra}]'"
    return ModuleNotFoundError(how, name=library)
