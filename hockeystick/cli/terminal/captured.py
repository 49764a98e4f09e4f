"""What a captured run says of how far it is: nobody watches a file, and so less than a terminal."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

import click

VARIABLE: Final = "HOCKEYSTICK_PROGRESS"
_OFF: Final = "off"
FIRST_LINE_SECONDS: Final = 30.0


def say(line: str) -> None:
    """Print a line on standard error, unless the environment wants none.

    Where nobody reads it, the answer does not depend on it.
    """
    if os.environ.get(VARIABLE, "").strip().lower() == _OFF:
        return
    with suppress(OSError, ValueError):
        click.echo(f"hockeystick: {line}", err=True)
