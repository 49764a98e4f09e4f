"""What a plan file holds, before it is a plan: its bytes, and the tables of its TOML."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from contextlib import suppress
from typing import Any, Final

from hockeystick._synonyms import meant, told
from hockeystick.errors import PlanFileError
from hockeystick.io.numbers import computed_in, parse_real
from hockeystick.io.syntax import encoding_error, syntax_error
from hockeystick.io.vocabulary import RELEASES

MOST_BYTES: Final = 1_000_000
_A_PAGE: Final = re.compile(rb"\s*<(!doctype|html)", re.IGNORECASE)
# How much alike the name of a file is to another one that may be meant.
_LEAST_ALIKE: Final = 0.8


def shown(name: str) -> str:
    """Return the name of a file so that it can be seen, though it be blank."""
    return name if name.strip() else repr(name)


def content_of(name: str) -> bytes:
    """Return what a file holds, a little more than a plan file may hold at most."""
    try:
        return _read(name)
    except PlanFileError as error:
        raise PlanFileError(f"{shown(name)}: {error}") from None


def _read(name: str) -> bytes:
    """Return what a file holds, or raise."""
    try:
        with open(name, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        if os.path.islink(name):
            aim = shown(os.readlink(name))
            raise PlanFileError(f"this link leads to {aim}, where no file is") from None
        hint = _meant_by(name)
        raise PlanFileError(f"no such file; give the path of a plan file{hint}") from None
    except IsADirectoryError:
        raise PlanFileError("this is a directory; give the path of a plan file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PlanFileError(f"the file cannot be read: {reason}") from None


def _meant_by(name: str) -> str:
    """Return which file or mechanism was meant by a name, to follow an error."""
    folder, last = os.path.split(name)
    with suppress(OSError):
        beside = [one for one in os.listdir(folder or ".") if one.endswith(".toml")]
        same = [one for one in beside if one.lower() == last.lower()]
        close = same or difflib.get_close_matches(last, beside, n=1, cutoff=_LEAST_ALIKE)
        if close:
            return told(os.path.join(folder, close[0]))
    found = None if folder or "." in last else meant(last, RELEASES)
    return "" if found is None else f", or write out the mechanism, '{found}(...)'"


def document_of(content: bytes) -> dict[str, Any]:
    """Return the tables that the content of a TOML file has, or raise."""
    if not content.strip():
        raise PlanFileError("this file is empty; hockeystick init writes one to begin with")
    if _A_PAGE.match(content):
        raise PlanFileError(
            "this is a page, no plan file: hockeystick verify judges a report, hockeystick init "
            "writes a plan file"
        )
    if len(content) > MOST_BYTES:
        raise PlanFileError("a plan file must be at most 1 MB long; this is longer")
    text = ""
    try:
        text = content.decode("utf-8-sig")
        document = tomllib.loads(text, parse_float=parse_real)
        return dict(computed_in(document))
    except UnicodeDecodeError as error:
        raise PlanFileError(encoding_error(content, error)) from None
    except tomllib.TOMLDecodeError as error:
        raise PlanFileError(syntax_error(text, error)) from None
    except ValueError:
        raise PlanFileError("the file holds a number of too many digits") from None
    except RecursionError:
        raise PlanFileError("the file is nested too deeply") from None
