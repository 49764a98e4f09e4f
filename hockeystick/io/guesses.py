"""What is wrong, with a guess at what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from hockeystick._synonyms import meant
from hockeystick.errors import HockeystickError, ParameterError

_LISTED: Final = re.compile(r"'([^']+)'")


def with_guess(error: HockeystickError) -> str:
    """Return what an error says, and which of the names that it lists was meant."""
    if not isinstance(error, ParameterError) or not isinstance(error.value, str):
        return str(error)
    return str(error) + did_you_mean(error.value, _LISTED.findall(error.allowed))


def did_you_mean(key: str, allowed: Iterable[str]) -> str:
    """Return a guess at what was meant, to follow an error; nothing where there is none."""
    found = meant(key, allowed)
    return "" if found is None else f" (did you mean {found!r}?)"
