"""Why there is no answer: one line for people, and one object for programs."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from numbers import Real
from typing import Any, Final

import click

from hockeystick._version import __version__
from hockeystick.errors import BudgetExhausted, HockeystickError, InfeasibleError, ParameterError

_WRONG_INPUT: Final = 2
_STATUSES: Final = {InfeasibleError: 1, BudgetExhausted: 4, KeyboardInterrupt: 130}


def refuse(error: BaseException, *, as_json: bool = False) -> int:
    """Say on standard error, and as JSON on standard output, why there is no answer.

    Returns:
        The exit status.
    """
    status = _STATUSES.get(type(error), _WRONG_INPUT)
    message = on_one_line("; ".join((_message(error), *notes_of(error))))
    click.echo(f"hockeystick: {message}".encode(errors="backslashreplace"), err=True)
    if as_json:
        kind = "OSError" if type(error) is click.ClickException else type(error).__name__
        kind = "UsageError" if isinstance(error, click.UsageError) else kind
        told = {"type": kind, "message": message, "exit_status": status, **_known(error)}
        version = {"version": __version__}
        click.echo(json.dumps({**version, "error": told}, indent=2, allow_nan=False))
    return status


def notes_of(error: BaseException) -> tuple[str, ...]:
    """Return what was noted of an exception on its way."""
    return tuple(getattr(error, "__notes__", ()))


def on_one_line(message: str) -> str:
    """Return a message on one line, without what could steer a terminal."""
    words = " ".join(message.split())
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)


def _message(error: BaseException) -> str:
    """Return what an exception says; of wrong arguments, with where to read what is right."""
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "hockeystick"
        return f"{error.format_message().rstrip('.')} (see {command} --help)"
    return str(error) or "interrupted"


def _known(error: BaseException) -> dict[str, Any]:
    """Return what an exception holds besides its message, or the wrong parameter behind it."""
    if isinstance(error, click.NoSuchOption | click.BadOptionUsage):
        return {"parameter": error.option_name.lstrip("-").replace("-", "_")}
    if isinstance(error, click.BadParameter) and error.param:
        return {"parameter": error.param.name}
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ParameterError):
        cause = cause.__context__
    first = cause or error
    held = vars(first) if isinstance(first, HockeystickError) else {}
    names = {"name": "parameter"}
    return {names.get(key, key): _value(value) for key, value in held.items() if key[0] != "_"}


def _value(value: object) -> Any:
    """Return a value ready for JSON: as it is if it can be, or else as it is written."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value) if isinstance(value, Real | Decimal) else repr(value)
