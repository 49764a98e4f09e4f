"""What is wrong, with a guess at what was meant."""

from __future__ import annotations

from collections.abc import Iterable

from hockeystick._synonyms import meant, told
from hockeystick.errors import HockeystickError, ParameterError


def with_guess(error: HockeystickError) -> str:
    """Return what an error says, its guess at what was meant included; of None, only that."""
    if isinstance(error, ParameterError) and not isinstance(error.value, str):
        return str(error).removesuffix("; got None")
    return str(error)


def did_you_mean(key: str, allowed: Iterable[str]) -> str:
    """Return a guess at what was meant, to follow an error; nothing where there is none."""
    return told(meant(key, allowed))
