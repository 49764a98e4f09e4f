"""What stands in a description: its fields, each of its type and in its range."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, TypeAlias

from .balls import NotCovered

Fields: TypeAlias = Mapping[str, Any]

MOST: Final = 10**300
_DECIMAL: Final = re.compile(r"\d{1,20}(\.\d{1,400})?(e[+-]?\d{1,4})?", re.ASCII)
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "adjacency": ("add-remove", "replace-one", "zero-out"),
    "clipping": ("individual", "batch"),
}


class AnswerError(ValueError):
    """The text is no answer of a known form."""


def field(fields: Fields, name: str, kind: type) -> Any:
    """Return a field of a type, or raise."""
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        wanted = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}[kind]
        raise AnswerError(f"{name}: {value!r:.60} is not allowed; {wanted} is")
    if isinstance(value, int) and not 0 <= value <= 10**15:
        raise AnswerError(f"{name}: {value!r:.60} is not allowed; from 0 to 1e15 is")
    return value


def among(fields: Fields, name: str) -> str:
    """Return a field that is one of the words that there are for it, or raise."""
    value = field(fields, name, str)
    if value not in WORDS[name]:
        raise AnswerError(f"{name}: {value!r:.60} is not allowed; {', '.join(WORDS[name])} are")
    return str(value)


def exact(value: Any, name: str) -> Any:
    """Return a number of at least 0 exactly, infinity as a float."""
    if isinstance(value, Mapping) and set(value) == {"fraction"}:
        parts = re.fullmatch("0x([0-9a-f]+)/0x([0-9a-f]+)", str(value["fraction"]))
        if parts and int(parts[2], 16):
            return Fraction(int(parts[1], 16), int(parts[2], 16))
    if value in ("inf", {"float": "inf"}):
        return math.inf
    if isinstance(value, int | Fraction) and not isinstance(value, bool) and value >= 0:
        if value < MOST:
            return Fraction(value)
        raise NotCovered(f"{name}: numbers from 1e300 on are not verified")
    raise AnswerError(f"{name}: {value!r:.60} is not allowed; a number >= 0 is")


def number(fields: Fields, name: str) -> Any:
    """Return a field that is a number of at least 0, infinity as a float."""
    return exact(fields.get(name), name)


def end_of(fields: Fields, name: str) -> Any:
    """Return an end of an answer, which more digits than a float has make a text."""
    value = fields.get(name)
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = Fraction(value)
    return exact(value, name)


def finite(value: Any) -> Fraction:
    """Return a number that is not infinite."""
    if value == math.inf:
        raise NotCovered("what is infinite is not verified")
    return Fraction(value)


def integer(value: Fraction) -> int:
    """Return a number that is whole."""
    if value.denominator > 1:
        raise NotCovered("batches of fixed size that are no whole numbers are not verified")
    return int(value)


def limited(name: str, value: Any, least: Any, most: Any) -> Any:
    """Return a value that lies between two, or raise."""
    if not least <= value <= most:
        raise AnswerError(f"{name}: {float(value):g} is not allowed; {least} to {most} is")
    return value


def positive(value: Any) -> Fraction:
    """Return a number that is neither 0 nor infinite."""
    if not value:
        raise NotCovered("releases without noise are not verified")
    return finite(value)
