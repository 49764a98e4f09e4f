"""Tables of a plan file whose names are misspelt, or that are in a wrong place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from hockeystick._synonyms import meant, told
from hockeystick.io.building import parameters_of
from hockeystick.io.vocabulary import KINDS, RELEASES, TOP_KEYS
from hockeystick.mechanisms import DPSGD

TABLES: Final = ("dpsgd", "release")
# Tables that are part of a mechanism.
PARTS: Final = (*KINDS, "inner", "extra")
# How the header of each table is written.
_WRITTEN: Final = {"dpsgd": "[dpsgd]", "release": "[[release]]"}
_OF_OTHER_FILES: Final = ("grid", "ask")
_ARRAY: Final = "release must be an array of tables: write"
# A table of any name that has so many keys of training describes it.
_ENOUGH: Final = 2


def is_table(value: object) -> bool:
    """Return whether a value is a table, or an array of tables."""
    is_array = isinstance(value, list) and bool(value)
    return isinstance(value, dict) or (is_array and isinstance(_first(value), dict))


def table_meant(name: str, value: object) -> str | None:
    """Return which table is meant by one of another name: by that name, or else by its keys.

    Example:
        >>> from hockeystick.io.headers import table_meant
        >>> table_meant("dp-sgd", {}), table_meant("training", {"epochs": 3, "rate": 0.1})
        ('dpsgd', 'dpsgd')
    """
    if name in (*PARTS, *_OF_OTHER_FILES):
        return None
    found, first = meant(name, TABLES), _first(value)
    if found is not None or not isinstance(first, dict):
        return found
    if "mechanism" in first:
        return "release"
    return "dpsgd" if len(first.keys() & parameters_of(DPSGD).keys()) >= _ENOUGH else None


def hint_of(name: str, value: object) -> str:
    """Return which table is meant by an unknown one, to follow an error; nothing if that is none.

    Example:
        >>> from hockeystick.io.headers import hint_of
        >>> hint_of("dpsg", {}), hint_of("run", {"dpsgd": {}})
        (" (did you mean 'dpsgd'?)", ' (write [dpsgd] in place of [run.dpsgd])')
    """
    found = table_meant(name, value)
    if found is None and is_nested(value):
        return f" (write [dpsgd] in place of [{name}.dpsgd])"
    return told(found)


def is_nested(value: object) -> bool:
    """Return whether a table has training inside, which belongs at the top level."""
    return isinstance(value, dict) and isinstance(value.get("dpsgd"), dict)


def said_of_release(given: object) -> str:
    """Return what is wrong with a release that is no array of tables, and what to write.

    Example:
        >>> from hockeystick.io.headers import said_of_release
        >>> said_of_release({"laplace": {"scale": 3}}).partition(": ")[2]
        'write [[release]] with mechanism = "Laplace" in place of [release.laplace]'
    """
    ways = []
    for name, inside in _inside(given):
        kind = meant(name, RELEASES)
        header = _WRITTEN[table_meant(name, inside) or "release"]
        named = kind if header == "[[release]]" and "mechanism" not in inside else None
        how = "" if named is None else f' with mechanism = "{named}"'
        ways.append(f"{header}{how} in place of [release.{name}]")
    return f"{_ARRAY} {', and '.join(ways) or '[[release]]'}"


def mended(content: bytes, document: Mapping[str, Any]) -> bytes | None:
    """Return a plan file with the headers that were meant, on the same lines; None if all are."""
    text = given = content.decode("utf-8-sig")
    for name, table in _wrong(document):
        path = r"\s*\.\s*".join(map(re.escape, name.split(".")))
        header = re.compile(rf"(?m)^[ \t]*(\[\[?)\s*{path}\s*(\.[^\]\n]*)?\]\]?")
        text = header.sub(partial(_header, table=table), text)
    return None if text == given else text.encode()


def _header(found: re.Match[str], table: str) -> str:
    """Return the header of a table, or of a table inside of it, with another name."""
    opening, rest = found[1], found[2]
    if rest is None:
        return _WRITTEN[table]
    return f"{opening}{table}{rest}{']' * len(opening)}"


def _wrong(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of the wrong tables, with a point where one is in another; what is meant."""
    for name, value in document.items():
        if name not in (*TOP_KEYS, *TABLES) and is_table(value):
            found, is_taken = table_meant(name, value), "dpsgd" in document
            if found == "release" or (found is not None and not is_taken):
                yield name, found
            elif found is None and is_nested(value) and not is_taken:
                yield f"{name}.dpsgd", "dpsgd"
    if isinstance(document.get("dpsgd"), list):
        yield "dpsgd", "dpsgd"
    release = document.get("release")
    if isinstance(release, dict):
        known = [(name, _of_release(name, one)) for name, one in _inside(release)]
        yield from ((f"release.{name}", found) for name, found in known if found is not None)
        if not known:
            yield "release", "release"


def _of_release(name: str, inside: Mapping[str, Any]) -> str | None:
    """Return which table is meant by one in a release that is no array; None if it lacks a line."""
    found = table_meant(name, inside)
    return found if found == "dpsgd" or "mechanism" in inside else None


def _inside(given: object) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables in a release that is a table, and no mechanism itself."""
    if not isinstance(given, dict) or "mechanism" in given:
        return []
    return [(key, one) for key, one in given.items() if isinstance(one, dict) and key not in PARTS]


def _first(value: Any) -> object:
    """Return the first of several tables, or the one."""
    return value[0] if isinstance(value, list) and value else value
