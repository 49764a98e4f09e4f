"""The numbers of a plan: where they stand in its tree, and the plan with another one in place."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Mechanism
from hockeystick.mechanisms.selection.tuning import RunCount
from hockeystick.mechanisms.training.schedules import Schedule

Path: TypeAlias = tuple[str | int, ...]

_NODES: Final = (Mechanism, RunCount, Schedule)
_SEGMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[\d+\])*")
_SHOWN: Final = 12
# What people ask for who mean the number of runs of a plan that says none.
_OF_RUNS: Final = ("count", "runs", "releases", "repeat", "times", "k")


def locate(plan: Mechanism, parameter: str) -> Path:
    """Return where in a plan a parameter stands: by its path, or by a name that only one has.

    Raises:
        ParameterError: If there is none or there are several, with the paths that there are.
    """
    path = _parsed(parameter)
    if path is not None and _is_number(_reached(plan, path)):
        return path
    there = numeric_paths(plan)
    found = [one for one in there if path is not None and one[-len(path) :] == path]
    if len(found) == 1:
        return found[0]
    if found:
        raise ParameterError("parameter", parameter, f"one of these, written out: {_listed(found)}")
    names = [name for one in there for name in (spelled(one), name_of(one))]
    allowed = f"a number that the plan gives: {_listed(there)}"
    if parameter in _OF_RUNS:
        allowed += "; for how many runs, write the mechanism as M ** 1 and ask for count"
    raise ParameterError("parameter", parameter, allowed, names=names)


def numeric_paths(plan: Mechanism) -> tuple[Path, ...]:
    """Return the paths of all numbers in a plan."""
    return tuple(_numbers(plan, ()))


def value_at(plan: Mechanism, path: Path) -> float:
    """Return the number at a path that ``locate`` found."""
    number: float = _reached(plan, path)
    return number


def owner_of(plan: Mechanism, path: Path) -> object:
    """Return the owner of the number at a path."""
    return _reached(plan, path[:-1])


def rebuilt(node: Any, path: Path, value: Any) -> Any:
    """Return a plan with another number at a path, through the constructors, which check it."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(key, int):
        return (*node[:key], rebuilt(node[key], rest, value), *node[key + 1 :])
    changed = {key: rebuilt(getattr(node, key), rest, value)}
    return type(node)(**_fields(node) | changed)


def spelled(path: Path) -> str:
    """Return a path as people write it."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def name_of(path: Path) -> str:
    """Return the name of the field at the end of a path."""
    return next(key for key in reversed(path) if isinstance(key, str))


def _parsed(parameter: str) -> Path | None:
    """Return a path's keys; None where the text is no path."""
    if not isinstance(parameter, str):
        raise ParameterError("parameter", parameter, "the name of a number in the plan")
    segments = parameter.split(".")
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        return None
    keys = [key for segment in segments for key in re.findall(r"\w+", segment)]
    return tuple(int(key) if key.isdecimal() else key for key in keys)


def _reached(node: Any, path: Path) -> Any:
    """Return the object at a path; None where there is none."""
    for key in path:
        if isinstance(key, int):
            node = node[key] if isinstance(node, tuple) and key < len(node) else None
        else:
            node = _fields(node).get(key) if isinstance(node, _NODES) else None
    return node


def _numbers(node: Any, path: Path) -> Iterator[Path]:
    """Go through the numbers of a node and of what it holds."""
    if _is_number(node):
        yield path
    elif isinstance(node, tuple):
        for index, item in enumerate(node):
            yield from _numbers(item, (*path, index))
    elif isinstance(node, _NODES):
        for name, value in _fields(node).items():
            yield from _numbers(value, (*path, name))


def _fields(node: Any) -> dict[str, Any]:
    """Return what a node says; where it came from is not of it."""
    if not dataclasses.is_dataclass(node):
        return {}
    return {one.name: getattr(node, one.name) for one in dataclasses.fields(node) if one.compare}


def _is_number(value: object) -> bool:
    """Return whether a value is a number to solve for."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _listed(paths: Sequence[Path]) -> str:
    """Return paths in words, the first few where there are many."""
    if not paths:
        return "it gives none"
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(spelled(path) for path in islice(paths, _SHOWN)) + more
