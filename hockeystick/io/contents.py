"""What a plan file holds, before it is a plan: its bytes, and the tables of its TOML."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any, Final

from hockeystick.errors import PlanFileError
from hockeystick.io.numbers import computed_in, parse_real

MOST_BYTES: Final = 1_000_000
_LINE: Final = re.compile(r"\(at line (\d+), column \d+\)")


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
        raise PlanFileError("no such file") from None
    except IsADirectoryError:
        raise PlanFileError("this is a directory; give the path of a plan file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PlanFileError(f"the file cannot be read: {reason}") from None


def document_of(content: bytes) -> dict[str, Any]:
    """Return the tables that the content of a TOML file has, or raise."""
    if not content.strip():
        raise PlanFileError("this file is empty; hockeystick init writes one to begin with")
    if len(content) > MOST_BYTES:
        raise PlanFileError("a plan file must be at most 1 MB long; this is longer")
    text = ""
    try:
        text = content.decode("utf-8-sig")
        document = tomllib.loads(text, parse_float=parse_real)
        return dict(computed_in(document))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PlanFileError(f"a plan file must be UTF-8 text; line {line} is not") from None
    except tomllib.TOMLDecodeError as error:
        at = _LINE.search(str(error))
        shown_line = f", in {text.splitlines()[int(at[1]) - 1].strip()!r:.60}" if at else ""
        raise PlanFileError(f"a plan file must be valid TOML: {error}{shown_line}") from None
    except ValueError:
        raise PlanFileError("the file holds a number of too many digits") from None
    except RecursionError:
        raise PlanFileError("the file is nested too deeply") from None
