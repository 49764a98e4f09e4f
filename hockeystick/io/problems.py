"""All that is wrong with a plan file at once, as far as it can be told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from hockeystick.errors import IncompatibleError, PlanFileError
from hockeystick.io.blanks import Blanks
from hockeystick.io.contents import document_of
from hockeystick.io.places import (
    by_line,
    each_of,
    in_toml,
    path_of,
    place_of,
    placed,
    said_at,
)
from hockeystick.io.plan_file import (
    TOP_CHECKS,
    dpsgd_of,
    plan_file_of,
    question_at,
    refuse_release,
    release_of,
    text_at,
)
from hockeystick.io.vocabulary import TOP_KEYS

# What says what a table describes.
_NAMES: Final = ("mechanism", "kind")


def problems_in(content: bytes) -> list[str]:
    """Return all that is wrong with the content of a plan file, as far as it can be told apart."""
    try:
        document = document_of(content)
    except PlanFileError as error:
        return [str(error)]
    return by_line(_problems(document, content))


def _problems(document: Mapping[str, Any], content: bytes) -> list[str]:
    """Return all that is wrong with a document."""
    unknown: list[Callable[[], object]] = [
        partial(check, {key: one}) for key, one in document.items() for check in TOP_CHECKS
    ]
    texts = [partial(text_at, document, key) for key in TOP_KEYS[:3]]
    places = [partial(question_at, document, key) for key in TOP_KEYS[3:]]
    given = document.get("release")
    tables = enumerate(given, 1) if isinstance(given, list) else ()
    whole_release = partial(refuse_release, document)
    checks: list[Callable[[], object]] = [*unknown, *texts, *places, whole_release]
    found = [problem for check in checks if (problem := _problem(check, content))]
    if "dpsgd" in document:
        found += _problems_of(document["dpsgd"], "[dpsgd]", content)
        clashes = (_told(one, content) for one in _clashes(document["dpsgd"]))
        found += [one for one in clashes if one not in found]
    for i, one in tables:
        found += _problems_of(one, f"[[release]] number {i}", content)
    whole = _problem(partial(plan_file_of, document, {}), content)
    return found or ([whole] if whole else [])


def _problems_of(table: Any, where: str, content: bytes) -> list[str]:
    """Return what is wrong with a table: what is, is left out, and the rest looked at again."""
    found: list[str] = []
    rest = table
    while True:
        blanks = Blanks() if found else None
        try:
            if where == "[dpsgd]":
                dpsgd_of(rest, {}, blanks)
            else:
                release_of(rest, where, blanks)
        except PlanFileError as error:
            each = each_of(error)
            less = rest
            for one in each:
                less = _without(less, _steps_to(one, where))
            # What is left out may be what others need.
            is_of_its_own = not isinstance(error.__context__, IncompatibleError)
            if found and (less == rest or not is_of_its_own):
                return found
            found += [_told(one, content) for one in each]
            if less == rest:
                return found
            rest = less
        else:
            return found


def _steps_to(error: PlanFileError, where: str) -> list[str | int]:
    """Return the steps from a table to the key in it that an error is about; none if unknown."""
    place, key = place_of(error)
    outer, path = path_of(where) or [], path_of(place)
    if path is None or path[: len(outer)] != outer:
        return []
    inner = path[len(outer) :]
    # Without the name of what it describes, a table within says nothing.
    return [] if inner and key in _NAMES else [*inner, key]


def _without(table: Any, steps: list[str | int]) -> Any:
    """Return a table without what is at the end of some steps, itself where it lacks that."""
    if not steps:
        return table
    first, *rest = steps
    if isinstance(table, list) and isinstance(first, int) and first < len(table) and rest:
        return [_without(one, rest) if i == first else one for i, one in enumerate(table)]
    if not isinstance(table, dict) or first not in table:
        return table
    changed = {first: _without(table[first], rest)} if rest else {}
    return {key: one for key, one in table.items() if key != first} | changed


def _clashes(table: Any) -> Iterator[PlanFileError]:
    """Yield what is wrong where both of two alternatives are in a table."""
    for one, other in (("batch_size", "rate"), ("epochs", "steps")):
        if isinstance(table, dict) and one in table and other in table:
            got = ", ".join(f"{key} = {in_toml(table[key])}" for key in (one, other))
            said = f"[dpsgd]: give {one} or {other}, not both; got {got}"
            yield placed(said, "[dpsgd]", f"{one}, {other}")


def _told(error: PlanFileError, content: bytes) -> str:
    """Return an error, and on which line it is."""
    line, said = said_at(content, error)
    return said if line is None else f"line {line}: {said}"


def _problem(check: Callable[[], object], content: bytes) -> str:
    """Return what is wrong, and on which line; nothing where nothing is."""
    try:
        check()
    except PlanFileError as error:
        return _told(error, content)
    return ""
