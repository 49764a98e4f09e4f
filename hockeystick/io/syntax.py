"""What is wrong with a text that is no TOML: the line where it stops, and what to write instead."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from decimal import Decimal
from typing import Final

_PLACE: Final = re.compile(r"\(at line (\d+), column \d+\)")
_TWICE: Final = re.compile(r"Cannot (?:overwrite a value|mutate immutable|declare)")
_KEY: Final = re.compile(r"""\s*([\w."'-]+)\s*=""")
_TABLE: Final = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]")
_LONGEST: Final = 60
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


def syntax_error(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Return what is wrong with a text, its line in quotes, and a hint where there is one."""
    return f"a plan file must be valid TOML: {error}{_shown(text, str(error))}"


def encoding_error(content: bytes, error: UnicodeDecodeError) -> str:
    """Return what is wrong with the content of a file that is no UTF-8 text."""
    if content.startswith(_UTF_16):
        return "a plan file must be UTF-8 text; this is UTF-16: save it as UTF-8"
    line = content.count(b"\n", 0, error.start) + 1
    return f"a plan file must be UTF-8 text; byte {error.start} is not (line {line})"


def _shown(text: str, said: str) -> str:
    """Return the line where a text stops to be TOML, and a hint."""
    if text.lstrip().startswith("{"):
        return "; this looks like JSON: write key = value, and tables as [dpsgd]"
    if "\r" in text.replace("\r\n", ""):
        return "; its lines end in CR alone: save it with LF, or with CR and LF"
    place = _PLACE.search(said)
    if place is None:
        return ""
    lines = text.replace("\r\n", "\n").split("\n")
    line = lines[min(int(place[1]), len(lines)) - 1]
    hint = _of_a_line(line, said)
    if len(line) > _LONGEST:
        line = line[: _LONGEST - 3] + "..."
    return f", in {line.strip()!r}{hint and ': '}{hint}"


def _of_a_line(line: str, said: str) -> str:
    """Return what to write instead of a line; nothing where that is unknown."""
    named = _TABLE.match(line) or _KEY.match(line)
    if _TWICE.match(said) and named is not None:
        return f"{named[1]} is there twice"
    before_comment = line.partition("#")[0]
    for pattern, hint in _HINTS:
        found = pattern.search(before_comment)
        if found is not None:
            return hint(found)
    return ""


def _number(value: Decimal) -> str:
    """Return a number as TOML has it."""
    return f"{float(value):.15g}"


def _quotient(found: re.Match[str]) -> str:
    """Return what to write for one number over another."""
    above, below = Decimal(found[1]), Decimal(found[2])
    return f"write the number itself, {_number(above / below)}" if below else ""


def _value(rest: str) -> re.Pattern[str]:
    """Return what finds a value of this form behind a key."""
    return re.compile(rf"""^\s*[\w."'-]+\s*=\s*{rest}\s*$""")


_DIGITS: Final = r"(\d[\d_]*(?:\.\d+)?)"
_HINTS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (re.compile("[“”„‘’]"), lambda _: 'write straight quotes, "'),
    (re.compile("[−–—]"), lambda _: "write a plain minus, -"),
    (re.compile("[\u00a0\u2000-\u200b\u202f\ufeff]"), lambda _: "write plain spaces"),
    (_value(rf"{_DIGITS}\s*%"), lambda it: f"write it as {_number(Decimal(it[1]) / 100)}"),
    (_value(rf"{_DIGITS}\s*/\s*{_DIGITS}"), _quotient),
    (_value(r"10\s*(?:\^|\*\*)\s*(-?\d+)"), lambda it: f"write it as 1e{it[1]}"),
    (
        _value(r"([1-9]\d{0,2}(?:,\d{3})+)"),
        lambda it: f"write {it[1].replace(',', '')}, or a point where the comma is a decimal one",
    ),
    (_value(r"(-?\d+),(\d+)"), lambda it: f"write {it[1]}.{it[2]}, with a point"),
    (_value("True|False"), lambda it: f"write {it[0].split()[-1].lower()}"),
    (_value(r"([A-Za-z][\w-]*)"), lambda it: f'a text is in quotes: "{it[1]}"'),
    (re.compile(r"^\s*[\w.-]+\s*:"), lambda it: f"write {it[0].strip(' :')} = ..., with = for :"),
    (re.compile(r"^\s*(\[+)\s*([\w.]+)\s*$"), lambda it: f"write {it[1]}{it[2]}{']' * len(it[1])}"),
    (
        re.compile(r"^\s*[A-Za-z][\w.]*\s*\("),
        lambda _: "this is a plan as in Python: give the text itself, or write TOML",
    ),
)
