"""The command ``hockeystick``: plans in, answers out, for people and for programs."""

from __future__ import annotations

from hockeystick.cli.command import main

__all__ = ["main"]
