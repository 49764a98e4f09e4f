"""What is wrong, with a guess at what was meant."""

from __future__ import annotations

from collections.abc import Iterable

from hockeystick._synonyms import meant, told
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.io.numbers import as_written_here


def with_guess(error: HockeystickError) -> str:
    """Return what an error says, its guess at what was meant included; of None, only that.

    Of a number that is written as elsewhere, it also says how to write it here.
    """
    if not isinstance(error, ParameterError):
        return str(error)
    if not isinstance(error.value, str):
        return str(error).removesuffix("; got None")
    here = as_written_here(error.value)
    return f"{error}; write {here}" if here else str(error)


def did_you_mean(key: str, allowed: Iterable[str]) -> str:
    """Return a guess at what was meant, to follow an error; nothing where there is none."""
    return told(meant(key, allowed))
