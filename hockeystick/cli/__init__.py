"""The command ``hockeystick``: plans in, answers out, for people and for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from hockeystick.cli.commands.completion import completed
from hockeystick.cli.commands.group import hockeystick
from hockeystick.cli.wording import on_the_command_line
from hockeystick.errors import BudgetExhausted, HockeystickError

__all__ = ["main"]

_WRONG_INPUT = 2
_EXHAUSTED = 4
_INTERRUPTED = 130
_NOBODY_READS = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Edge cases:
        0 with the answer on standard output; 1 and 3 with an answer that the verifier refutes and
        does not cover, where it was asked, and 1 with a ledger that is not sound; 2 with one line
        on standard error and nothing on standard output where the input is wrong; 4 likewise where
        a ledger's budget does not cover what was asked for; 130 after an interrupt; 141 where
        whoever reads standard output went away.

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
        status = _invoked(given)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except click.UsageError as error:
        return _refused(_with_hint(error))
    except click.ClickException as error:
        return _refused(str(error))
    except BudgetExhausted as error:
        return _refused(on_the_command_line(error), _EXHAUSTED)
    except HockeystickError as error:
        return _refused(on_the_command_line(error))
    except KeyboardInterrupt:
        return _refused("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        _discard_output()
        return _NOBODY_READS
    except OSError as error:
        _discard_output()
        return _refused(f"cannot write the answer: {error.strerror}")


def _invoked(given: list[str]) -> int:
    """Run the command and return the exit status that it chose."""
    told = completed(hockeystick)
    if told is not None:
        return told
    try:
        with hockeystick.make_context("hockeystick", given) as context:
            hockeystick.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    return 0


def _with_hint(error: click.UsageError) -> str:
    """Return what is wrong with the arguments, and where to read what is right."""
    command = error.ctx.command_path if error.ctx else "hockeystick"
    return f"{error.format_message().rstrip('.')} (see {command} --help)"


def _refused(message: str, status: int = _WRONG_INPUT) -> int:
    """Say in one line on standard error why there is no answer, and return the exit status."""
    line = " ".join(message.split())
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    click.echo(f"hockeystick: {shown}".encode(errors="backslashreplace"), err=True)
    return status


def _discard_output() -> None:
    """Let the interpreter's last flush go nowhere, so that it cannot fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
