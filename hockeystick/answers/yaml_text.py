"""Texts, numbers, lists and tables as YAML: the little of it that needs no library.

Every text is quoted, or a block of lines, so that none is taken for a number, a date or a word such
as "no". Numbers have a point and a sign in their exponent, without which YAML 1.1 takes ``1e-05``
for a text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

_STEP: Final = "  "


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A number, by its decimal digits."""

    digits: str

    def __str__(self) -> str:
        mantissa, mark, exponent = self.digits.partition("e")
        point = "" if "." in mantissa or not mark else ".0"
        return f"{mantissa}{point}{mark}{exponent}"


def yaml_text(table: Mapping[str, Any], head: str = "") -> str:
    """Return a table as YAML.

    Args:
        table: Plain names to texts, ``Number``s, lists of texts, or tables.
        head: Lines of comment before it.

    Example:
        >>> from hockeystick.answers.yaml_text import Number, yaml_text
        >>> print(yaml_text({"name": "no", "numbers": {"delta": Number("1e-05")}}), end="")
        name: "no"
        numbers:
          delta: 1.0e-05
    """
    comment = [f"# {line}" for line in head.splitlines()]
    return "\n".join([*comment, *_table(table, "")]) + "\n"


def _table(table: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield the lines of a table."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _table(value, indent + _STEP)
        elif isinstance(value, list):
            yield f"{indent}{key}:"
            yield from (f"{indent}{_STEP}- {_quoted(item)}" for item in value)
        elif isinstance(value, str) and _is_block(value):
            yield f"{indent}{key}: |-"
            yield from (indent + _STEP + line for line in value.split("\n"))
        else:
            yield f"{indent}{key}: {value if isinstance(value, Number) else _quoted(value)}"


def _is_block(text: str) -> bool:
    """Return whether a text can be written line by line, as it is."""
    lines = text.split("\n")
    return len(lines) > 1 and all(
        line and line.isprintable() and line == line.strip() for line in lines
    )


def _quoted(text: str) -> str:
    """Return a text in quotes; what is no visible letter is escaped."""
    return "".join(
        letter if letter.isprintable() else _escaped(letter)
        for letter in json.dumps(text, ensure_ascii=False)
    )


def _escaped(letter: str) -> str:
    """Return the escape of a letter, of which JSON leaves some as they are."""
    return f"\\U{ord(letter):08x}" if ord(letter) > 0xFFFF else f"\\u{ord(letter):04x}"
