"""What a ledger is asked for, checked by name."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from typing import Final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError

_NAME: Final = "a text of 1 to 200 characters that can be printed"
_NOTE: Final = "a text of at most 10,000 characters, without NUL and without lone surrogates"
_HEAD: Final = "a head as status has it: a number of entries, a colon and a hash"
_SECONDS: Final = Domain(symbol="t", low=0, high=86_400, low_open=True, typical=(1, 60))


def name(parameter: str, value: object) -> str:
    """Return a name of a dataset, a key or a person."""
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise ParameterError(parameter, value, _NAME)
    return value


def names(parameter: str, values: object) -> tuple[str, ...]:
    """Return names, each once, in their order."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(parameter, values, "names in a tuple or list")
    return tuple(dict.fromkeys(name(parameter, value) for value in values))


def person(value: object) -> str:
    """Return who asks: by default the user whom the operating system names."""
    if value is not None:
        return name("by", value)
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def note(value: object) -> str:
    """Return a note."""
    if not isinstance(value, str) or len(value) > 10_000 or "\x00" in value:
        raise ParameterError("note", value, _NOTE)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParameterError("note", value, _NOTE) from None
    return value


def timeout(value: object) -> float:
    """Return how many seconds to wait for others."""
    return _validate.real("timeout", value, _SECONDS)


def head(value: object) -> tuple[int, str] | None:
    """Return the number and the hash of a head, None where none is given."""
    if value is None:
        return None
    count, _, digest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not count.isascii() or not count.isdigit() or len(digest) != 64:
        raise ParameterError("head", value, _HEAD)
    return int(count), digest
