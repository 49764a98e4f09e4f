"""What is wrong, in the words of the command line."""

from __future__ import annotations

import re
from typing import Final

from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.numerics.numerals import plain

_ACCOUNTANT: Final = re.compile(r"\baccountant='([\w-]+)'")
_RATE: Final = re.compile(r"\bwrite rate=(\S+) in its place\)")
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
    if isinstance(error, ParameterError):
        told = _RATE.sub(r"write --rate \1 in its place)", told)
    return f"-o/--{told}" if told.startswith("out must be ") else told


def _solve_mu(found: re.Match[str]) -> str:
    """Return the command that solves for the mu of a Gaussian."""
    epsilon, delta = (plain(float(one)) for one in found.groups())
    return f"hockeystick solve 'GDP()' --epsilon {epsilon} --delta {delta}"
