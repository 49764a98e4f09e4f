"""Plugs for training libraries; one module or package for each, loaded when it is first named.

Each needs the extra of its name, as ``pip install 'hockeystick[opacus]'``; but ``dp_accounting`` is
in the extra ``peers``, and ``loop`` needs nothing.
"""

from importlib import import_module
from types import ModuleType
from typing import Final

_PLUGS: Final = (
    *("dp_accounting", "flower", "huggingface", "loop"),
    *("opacus", "optuna", "ray", "torch"),
)


def __getattr__(name: str) -> ModuleType:
    if name not in _PLUGS:
        text = f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_PLUGS)}"
        raise AttributeError(text, name=name)
    return import_module(f"{__name__}.{name}")


def missing(error: ModuleNotFoundError, library: str, extra: str) -> ModuleNotFoundError:
    """Return the error to raise in place of one: it names the extra that brings a library.

    What torch runs in is not there either where torch is not.
    """
    if (error.name or "").partition(".")[0] not in (library, "torch"):
        return error
    how = f"{library} is not installed: pip install 'hockeystick[{extra}]'"
    return ModuleNotFoundError(how, name=library)
