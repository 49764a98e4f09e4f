"""The command ``completion``: what makes a shell complete commands, flags, names and files."""

from __future__ import annotations

import os
from typing import Final

import click
from click.shell_completion import get_completion_class, shell_complete

from hockeystick.cli.flags.completing import among
from hockeystick.cli.flags.once import Once
from hockeystick.errors import ParameterError

# Shells ask the command itself what may follow, by this variable.
_VARIABLE: Final = "_HOCKEYSTICK_COMPLETE"
_NAME: Final = "hockeystick"
_SHELLS: Final = ("bash", "zsh", "fish")

_HELP: Final = """Print the script that makes a shell complete commands, flags, names and files.
"""


@click.command(cls=Once, help=_HELP)
@click.argument("shell", metavar="SHELL", shell_complete=among(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, flags, names and files."""
    kind = get_completion_class(shell) if shell in _SHELLS else None
    if kind is None:
        raise ParameterError("SHELL", shell, f"one of {', '.join(_SHELLS)}")
    click.echo(kind(context.find_root().command, {}, _NAME, _VARIABLE).source())


def completed(command: click.Command) -> int | None:
    """Tell a shell what may follow, where it is a shell that asks, and return the exit status."""
    asked = os.environ.get(_VARIABLE)
    return None if not asked else shell_complete(command, {}, _NAME, _VARIABLE, asked)
