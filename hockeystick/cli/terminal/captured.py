"""What a captured run says of how far it is: nobody watches a file, and so less than a terminal."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from typing import Final

import click

VARIABLE: Final = "HOCKEYSTICK_PROGRESS"
_OFF: Final = "off"
_FIRST_LINE_SECONDS: Final = 30.0


def first_line_seconds() -> float:
    """Return after how long the first line comes: never where the environment wants none."""
    wanted = os.environ.get(VARIABLE, "").strip().lower() != _OFF
    return _FIRST_LINE_SECONDS if wanted else math.inf


def say(line: str) -> None:
    """Print a line on standard error; where nobody reads it, the answer does not depend on it."""
    with suppress(OSError, ValueError):
        click.echo(f"hockeystick: {line}", err=True)
