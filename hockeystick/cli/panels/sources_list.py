"""Which theorems an answer rests on, below its panel."""

from __future__ import annotations

from rich.console import Group, RenderableType

from hockeystick.answers import Source
from hockeystick.cli.panels import render


def listing(sources: tuple[Source, ...]) -> RenderableType:
    """Return a list with one paragraph for the accountant and each mechanism."""
    return Group(*render.listed("Sources", [f"{one.of}: {one.text}" for one in sources]))
