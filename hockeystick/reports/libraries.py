"""The libraries that a page is drawn and written with, which not everyone has."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from hockeystick.errors import HockeystickError

_NEEDED: Final = ("bokeh.embed", "jinja2")
_TOLD: Final = ("hockeystick", "numpy", "scipy", "mpmath", "numba", "bokeh")


def require_libraries(
    what: str = "reports need Bokeh and Jinja2", names: Iterable[str] = _NEEDED
) -> None:
    """Raise where a library for pages is missing, and say how to install it.

    Args:
        what: Who needs which of them, as a sentence.
        names: The modules to import.

    Raises:
        HockeystickError: If Bokeh or Jinja2 cannot be imported.
    """
    for name in names:
        try:
            import_module(name)
        except ImportError:
            message = f"{what}: pip install 'hockeystick[report]'"
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
