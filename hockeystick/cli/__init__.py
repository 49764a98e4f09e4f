"""The command ``hockeystick``: plans in, answers out, for people and for programs."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from hockeystick.cli.command import hockeystick, notes_of, refuse
from hockeystick.errors import HockeystickError

__all__ = ["main"]

_NOBODY_READS = 141
_COMPLETION = "_HOCKEYSTICK_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Edge cases:
        0 with the answer on standard output; 1 and 3 with an answer that the verifier refutes and
        does not cover, where it was asked, and 1 with a ledger that is not sound; 2 with one line
        on standard error and nothing on standard output where the input is wrong; 4 likewise where
        a ledger's budget does not cover what was asked for; 130 after an interrupt; 141 where
        whoever reads standard output went away. With ``--json``, standard output has the same as
        one object, under the key ``error``.

    Args:
        arguments: What follows the command's name; the process's own by default.

    Returns:
        The exit status.

    Example:
        >>> from hockeystick.cli import main
        >>> main(["epsilon", "nowhere.toml"])
        2
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _status(given)
    except OSError as error:
        # The interpreter's last flush goes nowhere, so that it cannot fail again.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            return refuse(error)
        for note in notes_of(error):
            click.echo(f"hockeystick: {note}", err=True)
        return _NOBODY_READS


def _status(given: list[str]) -> int:
    """Run the command, or say why there is no answer, and return the exit status."""
    if completing := os.environ.get(_COMPLETION):
        return shell_complete(hockeystick, {}, "hockeystick", _COMPLETION, completing)
    status = 0
    try:
        with hockeystick.make_context("hockeystick", given) as context:
            hockeystick.invoke(context)
    except click.exceptions.Exit as stop:
        status = stop.exit_code
    except (click.ClickException, HockeystickError, KeyboardInterrupt) as error:
        return refuse(error, as_json="--json" in given)
    if sys.stdout is None:
        return refuse(OSError(errno.EBADF, "standard output is closed"))
    sys.stdout.flush()
    return status
