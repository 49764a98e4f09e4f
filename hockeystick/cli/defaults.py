"""What neither a flag nor the plan says, from the environment or the nearest ``pyproject.toml``.

Two numbers and names may come from there, no others: the delta to ask at, and the neighbours of a
plan that flags alone describe. The order is: flag, plan file, ``HOCKEYSTICK_DELTA`` or
``HOCKEYSTICK_ADJACENCY``, the table ``[tool.hockeystick]``, what is built in. Whatever was taken is
kept with the command's context, and printed with the answer: nobody is promised by a file that they
do not know of something else than what they read.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import click

from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.io import parse
from hockeystick.numerics.numerals import plain

_FILE: Final = "pyproject.toml"
_TABLE: Final = "[tool.hockeystick]"
_TAKEN: Final = "hockeystick.defaults"
_TOLD: Final = "hockeystick.defaults.told"


def _adjacency(value: object) -> str:
    """Return the name of an adjacency, or raise."""
    return _validate.one_of("adjacency", value, tuple(Adjacency))


_CHECKED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "delta": lambda value: _validate.real("delta", value),
    "adjacency": _adjacency,
}


@final
@dataclass(frozen=True, slots=True)
class Default:
    """A value that was not given, and where it comes from."""

    name: str
    value: Any
    source: str

    @property
    def line(self) -> str:
        """The same in words."""
        shown = self.value if isinstance(self.value, str) else plain(self.value)
        return f"{self.name} = {shown}: not given, taken from {self.source}"

    def as_dict(self) -> dict[str, Any]:
        """Return the same, ready for JSON."""
        return {"name": self.name, "value": self.value, "source": self.source}


def default(name: str) -> Any:
    """Return what the environment, or else the nearest ``pyproject.toml``, says; None for neither.

    Raises:
        click.UsageError: That is no such value, or the table has a key that means nothing.
    """
    found = _of_environment(name) or _of_project(name)
    if found is None:
        return None
    _taken()[name] = found
    return found.value


def taken() -> tuple[Default, ...]:
    """Return what was taken for the command that is under way."""
    return tuple(_taken().values())


def lines_once() -> tuple[str, ...]:
    """Return in words what was taken, the first time that it is asked for."""
    context = click.get_current_context(silent=True)
    if context is None or context.meta.get(_TOLD):
        return ()
    found = tuple(one.line for one in taken())
    context.meta[_TOLD] = bool(found)
    return found


def tell() -> None:
    """Say on standard error what was taken, where the answer has no room for it."""
    for line in lines_once():
        click.echo(f"hockeystick: {line}", err=True)


def _taken() -> dict[str, Default]:
    """Return what was taken, by its name, to be added to."""
    context = click.get_current_context(silent=True)
    kept: dict[str, Default] = {} if context is None else context.meta.setdefault(_TAKEN, {})
    return kept


def _of_environment(name: str) -> Default | None:
    """Return the value of the environment."""
    variable = f"HOCKEYSTICK_{name.upper()}"
    text = os.environ.get(variable)
    if not text:
        return None
    value = parse(text) if name == "delta" else text
    return Default(name, _checked(name, value, variable), f"{variable} in the environment")


def _of_project(name: str) -> Default | None:
    """Return the value of the nearest ``pyproject.toml``, here or above."""
    here = Path.cwd()
    path = next((one / _FILE for one in (here, *here.parents) if (one / _FILE).is_file()), None)
    table = {} if path is None else _table(path)
    if name not in table:
        return None
    where = f"{_TABLE} of {path}"
    return Default(name, _checked(name, table[name], where), where)


def _table(path: Path) -> Mapping[str, Any]:
    """Return the project's table, or raise for a key that means nothing."""
    try:
        told = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} is no TOML: {error}") from None
    tools = told.get("tool", {})
    table = tools.get("hockeystick", {}) if isinstance(tools, dict) else {}
    keys = ", ".join(_CHECKED)
    if not isinstance(table, dict):
        raise click.UsageError(f"{path}: tool.hockeystick must be a table of {keys}; got {table!r}")
    for key, value in table.items():
        if key not in _CHECKED:
            raise click.UsageError(
                f"{_TABLE} of {path}: its keys must be of {keys}; got {key} = {value!r}"
            )
    return table


def _checked(name: str, value: object, where: str) -> Any:
    """Return a value that may be, or raise with where it stands."""
    try:
        return _CHECKED[name](value)
    except ParameterError as error:
        raise click.UsageError(f"{where}: {error}") from None
