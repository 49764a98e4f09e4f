"""Flags with several values, ``--epochs 10,20,30``: which they are, and their combinations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final, final

import click

from hockeystick.io import parse
from hockeystick.numerics.numerals import jsonable

# The flags whose value is a name.
_NAMES: Final = ("sampling", "clipping", "adjacency")
_SETTINGS: Final = "settings"
_MOST_ROWS: Final = 1000
# Two whole numbers with a comma between may be one number that is written as elsewhere.
_TWO_WHOLE: Final = re.compile(r"\d+,\d+")
_THOUSANDS: Final = re.compile(r"\d{1,3},\d{3}")
_COUNTED: Final = ("examples", "steps")
_WHOLE: Final = (*_COUNTED, "batch_size", "epochs", "batch_cap", "examples_per_user", "group")
# With zeros in front, what follows a comma is no value of its own.
_ZEROS_IN_FRONT: Final = re.compile(r"0\d+")


@final
@dataclass(frozen=True, slots=True)
class Several:
    """What has several values.

    Args:
        name: The flag's parameter, or the path of a number of ``--set``.
        values: The values, as they were written, each once.
        place: Where in ``--set`` it stands; None where it is a flag of its own.
    """

    name: str
    values: tuple[str, ...]
    place: int | None = None

    def given(self, flags: Mapping[str, Any], value: str) -> dict[str, Any]:
        """Return flags with one of the values."""
        if self.place is None:
            return {**flags, self.name: value}
        settings = list(flags[_SETTINGS])
        settings[self.place] = f"{self.name}={value}"
        return {**flags, _SETTINGS: tuple(settings)}

    def told(self, value: str) -> Any:
        """Return one of the values ready for JSON: the number, or the name."""
        found = parse(value)
        return jsonable(found) if isinstance(found, int | float) else value


@final
@dataclass(frozen=True, slots=True)
class Cell:
    """One value of each flag that has several.

    Args:
        values: The values by what they are of, as they were written.
        told: The same, ready for JSON.
        flags: All flags, with these.
    """

    values: Mapping[str, str]
    told: Mapping[str, Any]
    flags: Mapping[str, Any]


def several_in(flags: Mapping[str, Any]) -> tuple[Several, ...]:
    """Return which flags have several values, in the order in which they are listed, or raise."""
    found = [
        Several(name, values)
        for name, text in flags.items()
        if isinstance(text, str) and (values := _values(name, text))
    ]
    for place, text in enumerate(flags.get(_SETTINGS, ())):
        path, _, numbers = (part.strip() for part in text.partition("="))
        if path and (values := _values(path, numbers)):
            found.append(Several(path, values, place))
    return tuple(found)


def cells(several: Sequence[Several], flags: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Return every combination of values, the last of which changes fastest, or raise."""
    rows = prod(len(one.values) for one in several)
    if rows > _MOST_ROWS:
        raise click.UsageError(
            f"these are {rows:,} combinations: up to {_MOST_ROWS:,} are printed, and hockeystick "
            "sweep writes any number to a file"
        )
    return tuple(_cells(several, flags))


def _cells(several: Sequence[Several], flags: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield every combination of values."""
    for values in product(*(one.values for one in several)):
        known: dict[str, Any] = dict(flags)
        for one, value in zip(several, values, strict=True):
            known = one.given(known, value)
        pairs = list(zip(several, values, strict=True))
        shown = {one.name: value for one, value in pairs}
        yield Cell(shown, {one.name: one.told(value) for one, value in pairs}, known)


def _values(name: str, text: str) -> tuple[str, ...]:
    """Return the values in a text with commas, none where it is one value, or raise."""
    listed = text.strip()
    if listed[:1] + listed[-1:] in ("[]", "()"):
        listed = listed[1:-1]
    parts = tuple(part.strip() for part in listed.split(","))
    if len(parts) == 1 or any(_ZEROS_IN_FRONT.fullmatch(part) for part in parts):
        return ()
    _refuse_one_number(name, listed)
    wrong = [one for one in parts if not one or (name not in _NAMES and _is_text(one))]
    if wrong:
        raise click.UsageError(
            f"{_shown(name)} takes one value, or several with commas between, such as "
            f"{_example(name)}; got {text!r}"
        )
    return tuple(dict.fromkeys(parts))


def _refuse_one_number(name: str, text: str) -> None:
    """Raise where two whole numbers may be one with a comma."""
    if name in _COUNTED and _THOUSANDS.fullmatch(text):
        one = text.replace(",", "")
    elif name not in _WHOLE and _TWO_WHOLE.fullmatch(text):
        one = text.replace(",", ".")
    else:
        return
    raise click.UsageError(
        f"{_shown(name)}: {text} is one number with a comma, or two numbers: write {one} for the "
        f"one, or '{text.replace(',', ', ')}' for the two"
    )


def _is_text(part: str) -> bool:
    """Return whether a part is no number."""
    return isinstance(parse(part), str)


def _shown(name: str) -> str:
    """Return what the flag is called; of ``--set``, with the path."""
    known = (*_WHOLE, *_NAMES, "rate", "noise_multiplier", "delta", "epsilon")
    return f"--{name.replace('_', '-')}" if name in known else f"--set {name}"


def _example(name: str) -> str:
    """Return how several values of a flag are given; of ``--set``, with the path."""
    examples = {"delta": "1e-5,1e-6", "rate": "0.01,0.02", "noise_multiplier": "0.8,1.0,1.2"}
    named = "A,B" if name in _NAMES else "10,20,30" if name in _WHOLE else "1.0,2.0"
    values, shown = examples.get(name, named), _shown(name)
    return f"--set '{name}={values}'" if shown.startswith("--set") else f"{shown} {values}"
