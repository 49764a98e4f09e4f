"""What is wrong, with a guess at what was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

from hockeystick.errors import HockeystickError, ParameterError

_LEAST_ALIKE: Final = 0.7
_LISTED: Final = re.compile(r"'([^']+)'")


def with_guess(error: HockeystickError) -> str:
    """Return what an error says, and which of the names that it lists was meant."""
    if not isinstance(error, ParameterError) or not isinstance(error.value, str):
        return str(error)
    return str(error) + did_you_mean(error.value, _LISTED.findall(error.allowed))


def did_you_mean(key: str, allowed: Iterable[str]) -> str:
    """Return a guess at what was meant: a name spelled alike, or the one that begins so."""
    alike = {_plain(name): name for name in allowed}
    meant = _plain(key)
    close = difflib.get_close_matches(meant, alike, n=1, cutoff=_LEAST_ALIKE)
    longer = [name for name in alike if meant and name.startswith(meant)]
    found = close or (longer if len(longer) == 1 else [])
    return f" (did you mean {alike[found[0]]!r}?)" if found else ""


def _plain(name: str) -> str:
    """Return a name in the letters that spellings have in common."""
    return name.strip().lower().replace("-", "_")
