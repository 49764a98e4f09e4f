"""Where in a file an error is: which of its lines has the key that is wrong."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from hockeystick.errors import ParameterError, PlanFileError

# A longer file, or one with more lines that begin alike, is not gone through.
_LONGEST: Final = 100_000
_MOST_LINES: Final = 100
_RELEASE: Final = re.compile(r"^\[\[(\w+)\]\] number (\d+)")
_TABLE: Final = re.compile(r"^\[(\w+)\]")
_STEP: Final = re.compile(r"[.,] ?(\w+)|\[(\d+)\]| \([\w-]+\)")
TOP_LEVEL: Final = "the top level"
# In place of a key: the line where its table begins.
HEADER: Final = "[]"
_LINE: Final = re.compile(r"line (\d+): ")
_PLACE: Final = "_place"
_EACH: Final = "_each"
_ALLOWED: Final = "; allowed are "
_LONGER: Final = "_renamed"


class _Form(NamedTuple):
    """How a text is read, and what a key with a NAME begins with in it."""

    read: Callable[[str], Any]
    begins: str


_TOML: Final = _Form(
    tomllib.loads,
    r"""(?:^\s*|[{,]\s*)(?:[\w."'-]*\.\s*)?["']?NAME(?=["']?\s*[=.])"""
    r"""|^\s*\[\[?\s*(?:[\w."'-]*\.\s*)?["']?NAME(?=["']?\s*[\].])""",
)
_JSON: Final = _Form(json.loads, r'"NAME(?="\s*:)')


class _Left(Enum):
    """What is left of a table and its key where something has another name."""

    ALL = auto()
    TABLE = auto()
    NOTHING = auto()


class _Spelled:
    """A value whose text is what TOML writes for it."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return in_toml(self._value)


def in_toml(value: object) -> str:
    """Return a value as TOML has it, as far as it is one of what Python writes in another way."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {in_toml(one)}' for key, one in value.items())}}}"
    return repr(value)


def spelled(error: ParameterError, allowed: str | None = None) -> ParameterError:
    """Return an error whose value is spelled as files have it."""
    value = error.value
    if isinstance(value, bool | dt.date | dt.time | list | tuple | Mapping):
        value = _Spelled(value)
    return ParameterError(error.name, value, error.allowed if allowed is None else allowed)


def placed(message: str, where: str, key: str, each: Iterable[PlanFileError] = ()) -> PlanFileError:
    """Return an error about a key of a table, which says in words where it is.

    One about several keys also has what to say of each by itself.
    """
    error = PlanFileError(message)
    vars(error)[_PLACE] = (where, key)
    vars(error)[_EACH] = tuple(each)
    return error


def each_of(error: PlanFileError) -> tuple[PlanFileError, ...]:
    """Return what to say of each key that an error is about; the error where that is one."""
    each: tuple[PlanFileError, ...] = vars(error).get(_EACH, ())
    return each or (error,)


def place_of(error: PlanFileError) -> tuple[str, str]:
    """Return the table that an error is about, and which key of it; empty texts where none is.

    Example:
        >>> from hockeystick.io.places import place_of, placed
        >>> place_of(placed("epochs must be >= 0", "[dpsgd]", "epochs"))
        ('[dpsgd]', 'epochs')
    """
    where, key = vars(error).get(_PLACE, ("", ""))
    return where, key


def said_at(content: bytes, error: PlanFileError) -> tuple[int | None, str]:
    """Return the line that an error is about, and what it says; if about several, which they are.

    None stands for no line, where it is not certain.
    """
    where, keys = place_of(error)
    found = {key: _line_of(content, where, key) for key in keys.split(", ")}
    lines = {key: line for key, line in found.items() if line is not None}
    if len(found) == 1 or len(lines) < len(found):
        return next(iter(lines.values()), None), str(error)
    every = ", ".join(f"{key} on line {line}" for key, line in lines.items())
    said, sign, allowed = str(error).partition(_ALLOWED)
    return min(lines.values()), f"{said} ({every}){sign}{allowed}"


def by_line(problems: Iterable[str]) -> list[str]:
    """Return problems in the order of their lines, once each; what has no line comes last.

    A list of what is allowed is told once.

    Example:
        >>> from hockeystick.io.places import by_line
        >>> by_line(["too few", "line 12: wrong", "line 3: wrong", "line 12: wrong"])
        ['line 3: wrong', 'line 12: wrong', 'too few']
    """
    found = {one: _LINE.match(one) for one in problems}
    ordered = sorted(found, key=lambda one: int(at[1]) if (at := found[one]) else math.inf)
    told: set[str] = set()
    shortened = []
    for one in ordered:
        said, _, allowed = one.partition(_ALLOWED)
        shortened.append(said if allowed in told else one)
        told |= {allowed} - {""}
    return shortened


def line_in_json(content: bytes, error: PlanFileError) -> int | None:
    """Return the line of JSON, which holds the tables of a plan file, that an error is about.

    Example:
        >>> from hockeystick.io.places import line_in_json, placed
        >>> wrong = placed("too few", "[dpsgd]", "epochs")
        >>> line_in_json(b'{"title": "epochs", "dpsgd": {"epochs": -1}}', wrong)
        1
    """
    where, key = place_of(error)
    path = path_of(where)
    if path is None or not key or len(content) > _LONGEST:
        return None
    with suppress(ValueError, RecursionError):  # where it is no UTF-8
        begin = _begin_of(content, path, _JSON) if key == HEADER else None
        return begin or _line_at(content, path, key, _JSON)
    return None


def _line_of(content: bytes, where: str, key: str) -> int | None:
    """Return the line of a key of a table; None where it is not certain."""
    path = path_of(where)
    if path is None or not key or len(content) > _LONGEST:
        return None
    with suppress(ValueError, RecursionError):  # where it is no TOML
        if key == HEADER:
            return _header_of(content, path) or _begin_of(content, path, _TOML)
        found = _line_at(content, path, key, _TOML)
        # The tables inside of one hold its name too.
        return found or (_header_of(content, [key]) if where == TOP_LEVEL else None)
    return None


def _line_at(content: bytes, path: list[str | int], key: str, form: _Form) -> int | None:
    """Return the line of a key of the table at a path; None where it is not certain.

    Guarantees:
        With another name for the key on this line, the table lacks it.
    """
    text = content.decode("utf-8-sig")
    lines = text.split("\n")
    begins = re.compile(form.begins.replace("NAME", re.escape(key)))
    alike = [(i, key_of) for i, line in enumerate(lines) for key_of in begins.finditer(line)]
    if len(alike) > _MOST_LINES or _left_of(form.read(text), path, key) is not _Left.ALL:
        return None
    # Tables of one array have one header.
    alone: dict[object, list[tuple[int, int]]] = {}
    for i, at in alike:
        header = at[0].strip() if at[0].lstrip().startswith("[[") else (i, at.end())
        alone.setdefault(header, []).append((i, at.end()))
    left: list[tuple[_Left, int]] = []
    for one in alone.values():
        with suppress(ValueError, RecursionError):
            changed = form.read(_renamed(lines, one))
            left.append((_left_of(changed, path, key), one[0][0] + 1))
    # Another name for a table takes its keys away too: that of the key alone is what is looked for.
    found = [line for one, line in left if one is _Left.TABLE]
    found = found or [line for one, line in left if one is _Left.NOTHING]
    return found[0] if len(found) == 1 else None


def _begin_of(content: bytes, path: list[str | int], form: _Form) -> int | None:
    """Return the line on which a table within others begins; None where it is not certain."""
    if not path:
        return None
    *outer, last = path
    if isinstance(last, str):
        return _line_at(content, outer, last, form)
    table = _at(form.read(content.decode("utf-8-sig")), path)
    first = next(iter(table), None) if isinstance(table, dict) else None
    return None if first is None else _line_at(content, path, first, form)


def _header_of(content: bytes, path: list[str | int] | None) -> int | None:
    """Return the line of the header of a table of the top level; None where it is not certain."""
    if not path:
        return None
    name, *rest = path
    index = rest[0] if rest else 0
    if len(rest) > 1 or not isinstance(index, int):
        return None
    text = content.decode("utf-8-sig")
    begins = re.compile(rf"\s*\[{{{len(path)}}}\s*{re.escape(str(name))}\s*\]")
    lines = [i for i, line in enumerate(text.split("\n"), 1) if begins.match(line)]
    tables: Any = tomllib.loads(text).get(str(name))
    many = len(tables) if rest and isinstance(tables, list) else 1
    return lines[index] if index < len(lines) == many else None


def _renamed(lines: list[str], places: Iterable[tuple[int, int]]) -> str:
    """Return a text in which a key, which ends on these lines there, has a longer name."""
    changed = list(lines)
    for index, end in places:
        changed[index] = f"{lines[index][:end]}{_LONGER}{lines[index][end:]}"
    return "\n".join(changed)


def path_of(where: str) -> list[str | int] | None:
    """Return the keys and indices that lead to a table, None where the words do not say it."""
    if where == TOP_LEVEL:
        return []
    found = _RELEASE.match(where) or _TABLE.match(where)
    if found is None:
        return None
    path: list[str | int] = [found[1]]
    if found.re is _RELEASE:
        path.append(int(found[2]) - 1)
    rest = where[found.end() :]
    for step in _STEP.finditer(rest):
        if step[1] is not None:
            path.append(step[1])
        elif step[2] is not None:
            path.append(int(step[2]))
    return path if _STEP.sub("", rest) == "" else None


def _left_of(document: Any, path: list[str | int], key: str) -> _Left:
    """Return what a document has of a table at a path and its key."""
    table = _at(document, path)
    if table is None:
        return _Left.NOTHING
    return _Left.ALL if not isinstance(table, dict) or key in table else _Left.TABLE


def _at(document: Any, path: list[str | int]) -> Any:
    """Return what a document has at a path, None where it has nothing."""
    found = document
    for step in path:
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            return None
    return found
