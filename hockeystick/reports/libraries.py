"""The libraries that a page is drawn and written with, which not everyone has."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from hockeystick.errors import HockeystickError

_NEEDED: Final = ("bokeh.embed", "jinja2")
_TOLD: Final = ("hockeystick", "numpy", "scipy", "mpmath", "numba", "bokeh")


def require_libraries() -> None:
    """Raise where a library for pages is missing, and say how to install it.

    Raises:
        HockeystickError: If Bokeh or Jinja2 cannot be imported.
    """
    for name in _NEEDED:
        try:
            import_module(name)
        except ImportError:
            message = "reports need Bokeh and Jinja2: install hockeystick[report]"
            raise HockeystickError(message) from None


def versions() -> tuple[tuple[str, str], ...]:
    """Return what is installed of the libraries that the numbers and the page come from."""
    import platform

    known = [("Python", platform.python_version())]
    for name in _TOLD:
        try:
            known.append((name, version(name)))
        except PackageNotFoundError:
            known.append((name, "not installed as a package"))
    return tuple(known)
