"""What type checkers and editors read of the packages whose names are registered."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Final

STUBS: Final = ("hockeystick.mechanisms", "hockeystick.mechanisms.federated")
_HEAD: Final = """\
# Written by `python -m tests.stubs`.
# fmt: off
"""
_REGISTRY: Final = """
MECHANISMS: Final[Mapping[str, type[Mechanism]]]
"""
_OF_REGISTRY: Final = """\
from collections.abc import Mapping
from typing import Final
"""
_ALL: Final = "__all__: list[str]\n"


def file_of(package: str) -> Path:
    return Path(str(import_module(package).__file__)).with_suffix(".pyi")


def stub(package: str) -> str:
    """Return what the stub of a package should say: each name for others, and its home."""
    module = import_module(package)
    names = {name: getattr(module, name) for name in module.__all__ if name != "MECHANISMS"}
    names |= {one.__name__: one for one in getattr(module, "_INTERNAL", ())}
    lines = "".join(sorted(_line(name, one) for name, one in names.items()))
    if "MECHANISMS" in module.__all__:
        return _HEAD + _OF_REGISTRY + lines + _REGISTRY + _ALL
    return _HEAD + lines + "\n" + _ALL


def _line(name: str, one: object) -> str:
    home = inspect.getmodule(one)
    assert home is not None
    place = home.__name__.removesuffix(f".{name}") if one is home else home.__name__
    return f"from {place} import {name} as {name}\n"


if __name__ == "__main__":
    for package in STUBS:
        file_of(package).write_text(stub(package), encoding="utf-8")
