"""Why there is no answer: one line for people, and one object for programs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any, Final, final

import click

from hockeystick._version import __version__
from hockeystick.errors import BudgetExhausted, HockeystickError, InfeasibleError, ParameterError
from hockeystick.numerics.numerals import plain

_WRONG_INPUT: Final = 2
_STATUSES: Final = {InfeasibleError: 1, BudgetExhausted: 4}
_INTERRUPTED: Final = 130


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no answer.

    Args:
        kind: The name of the exception.
        message: What it says, in the words of the command line.
        status: The exit status.
        known: What else is known of it, ready for JSON.
    """

    kind: str
    message: str
    status: int
    known: Mapping[str, Any]

    @classmethod
    def of(cls, error: BaseException) -> Refusal:
        """Return what an exception amounts to, with what was noted of it."""
        found = cls._of(error)
        return replace(found, message="; ".join((found.message, *notes_of(error))))

    @classmethod
    def _of(cls, error: BaseException) -> Refusal:
        """Return what an exception amounts to."""
        if isinstance(error, KeyboardInterrupt):
            return cls("KeyboardInterrupt", str(error) or "interrupted", _INTERRUPTED, {})
        if isinstance(error, click.UsageError):
            return cls("UsageError", _with_hint(error), _WRONG_INPUT, _known(error))
        if isinstance(error, click.ClickException):
            return cls("OSError", str(error), _WRONG_INPUT, {})
        status = _STATUSES.get(type(error), _WRONG_INPUT)
        said = on_the_command_line(error) if isinstance(error, HockeystickError) else str(error)
        return cls(type(error).__name__, said, status, _known(error))

    @property
    def line(self) -> str:
        """The message on one line, without what could steer a terminal."""
        return on_one_line(self.message)

    @property
    def as_json(self) -> str:
        """The same for programs, as strict JSON in ASCII."""
        told = {"type": self.kind, "message": self.line, "exit_status": self.status, **self.known}
        return json.dumps({"version": __version__, "error": told}, indent=2, allow_nan=False)

    def tell(self, *, as_json: bool) -> int:
        """Say it on standard error, in JSON on standard output, and return the exit status."""
        click.echo(f"hockeystick: {self.line}".encode(errors="backslashreplace"), err=True)
        if as_json:
            click.echo(self.as_json)
        return self.status


def notes_of(error: BaseException) -> tuple[str, ...]:
    """Return what was noted of an exception on its way: one line says it all."""
    return tuple(getattr(error, "__notes__", ()))


def wants_json(given: list[str]) -> bool:
    """Return whether JSON was asked for, though the arguments be wrong."""
    return "--json" in given[: given.index("--") if "--" in given else None]


def _with_hint(error: click.UsageError) -> str:
    """Return what is wrong with the arguments, and where to read what is right."""
    command = error.ctx.command_path if error.ctx else "hockeystick"
    return f"{error.format_message().rstrip('.')} (see {command} --help)"


def _known(error: BaseException) -> dict[str, Any]:
    """Return what an exception holds besides what it says, or the one that it puts in words."""
    option = _option(error)
    if option:
        return {"parameter": option.lstrip("-").replace("-", "_")}
    first = wrong_parameter(error) or error
    held = vars(first) if isinstance(first, HockeystickError) else {}
    names = {"name": "parameter"}
    return {names.get(key, key): _told(value) for key, value in held.items() if key[0] != "_"}


def _option(error: BaseException) -> str | None:
    """Return the parameter that arguments are wrong about, as far as that is known."""
    if isinstance(error, click.NoSuchOption | click.BadOptionUsage):
        return error.option_name
    return error.param.name if isinstance(error, click.BadParameter) and error.param else None


def _told(value: object) -> Any:
    """Return a value ready for JSON: as it is if it can be, or else as it is written."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value) if isinstance(value, Real | Decimal) else repr(value)


_ACCOUNTANT: Final = re.compile(r"\baccountant='([\w-]+)'")
_MU: Final = re.compile(r"\bcalibrate\(GDP, 'mu', ApproxDP\((\S+), (\S+)\)\)\.value")


def on_one_line(message: str) -> str:
    """Return a message on one line, without what could steer a terminal."""
    words = " ".join(message.split())
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)


def wrong_parameter(error: BaseException | None) -> ParameterError | None:
    """Return the parameter that is wrong, though it be another error that says so."""
    while error is not None and not isinstance(error, ParameterError):
        error = error.__context__
    return error


def on_the_command_line(error: HockeystickError) -> str:
    """Return what an error says, with flags where it names arguments in Python."""
    told = _ACCOUNTANT.sub(r"--accountant \1", str(error)).replace("replace=True", "--force")
    told = _MU.sub(_solve_mu, told)
    return f"-o/--{told}" if told.startswith("out must be ") else told


def _solve_mu(found: re.Match[str]) -> str:
    """Return the command that solves for the mu of a Gaussian."""
    epsilon, delta = (plain(float(one)) for one in found.groups())
    return f"hockeystick solve 'GDP()' --epsilon {epsilon} --delta {delta}"
