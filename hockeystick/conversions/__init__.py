"""From every notion of differential privacy to every other one that it implies."""

from __future__ import annotations

from hockeystick.conversions.convert import TARGETS, convert, lower_ends

__all__ = ["TARGETS", "convert", "lower_ends"]
