"""The modules of a package, which register what is in them as they are imported."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import walk_packages


def import_modules(package: str) -> None:
    """Import every module of a package that is being imported, in whatever folder it lies."""
    for found in walk_packages(sys.modules[package].__path__, f"{package}."):
        import_module(found.name)
