"""What is wrong with a text that is no TOML: the line where it stops, and what to write instead."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from hockeystick._synonyms import share_of
from hockeystick._validate import PARAMETERS
from hockeystick.io.arithmetic import number_of
from hockeystick.io.building import parameters_of
from hockeystick.io.guesses import WHOLE
from hockeystick.io.vocabulary import RELEASES, TOP_KEYS

_PLACE: Final = re.compile(r"\(at line (\d+), column \d+\)")
_TWICE: Final = re.compile(r"Cannot (?:overwrite a value|mutate immutable)")
_DECLARED: Final = re.compile(r"Cannot declare \((.*)\) twice")
_KEY: Final = re.compile(r"""\s*([\w."'-]+)\s*=""")
_COLON: Final = re.compile(r"\s*(?:- )?[\w-]+\s*:(?:\s|$)")
_TABLE: Final = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]")
_HEADER: Final = re.compile(r"(?m)^\s*\[[\w .-]+\]\s*$")
_DPSGD: Final = re.compile(r"(?m)^\s*\[dpsgd\]")
_TABLE_TWICE: Final = re.compile(r"\[.*\] is there twice")
# A line that begins an array or a text, and has no end of it.
_OPEN: Final = re.compile(
    r"""\s*[\w."'-]+\s*=\s*(?:\[[^\]]*|'[^']*|"{3}(?!.*"{3}).*|'{3}(?!.*'{3}).*)$"""
)
_CONFLICT: Final = re.compile(r"(?m)^(?:<{7}|>{7})(?: .*)?$")
_BETWEEN: Final = "======="
_COMMA: Final = re.compile(r",\s*([}\]])")
_SEPARATORS: Final = ",;\t"
# What the answers that --json prints have, and no plan.
_OF_ANSWERS: Final = ("schema", "plan")
_LONGEST: Final = 60
# A longer line is no number, and patterns that go back and forth would take long on it.
_HINTED: Final = 1000
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


def syntax_error(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Return what is wrong with a text, its line in quotes, and a hint where there is one."""
    said = _DECLARED.sub(_declared, str(error))
    return f"a plan file must be valid TOML: {said}{_shown(text, said)}"


def json_error(error: json.JSONDecodeError) -> tuple[int, str]:
    """Return on which line a text stops to be JSON, and what is wrong there.

    Example:
        >>> import json
        >>> from hockeystick.io.syntax import json_error
        >>> try:
        ...     json.loads('{"rate": 0.1,}')
        ... except json.JSONDecodeError as error:
        ...     print(json_error(error)[1])
        what begins with { must be valid JSON: leave out the comma before }, in '{"rate": 0.1,}'
    """
    text, place = error.doc, error.pos
    comma = _COMMA.match(text, max(0, text.rfind(",", 0, place + 1)))
    if comma is not None and comma.end() > place:
        place, said = comma.start(), f"leave out the comma before {comma[1]}"
    elif not text[place:].strip():
        place, said = len(text.rstrip()), "the text ends before the JSON does"
    else:
        said = f"{error.msg[:1].lower()}{error.msg[1:]}"
    number = text.count("\n", 0, place) + 1
    line = _shortened(text.split("\n")[number - 1])
    return number, f"what begins with {{ must be valid JSON: {said}, in {line.strip()!r}"


def encoding_error(content: bytes, error: UnicodeDecodeError) -> str:
    """Return what is wrong with the content of a file that is no UTF-8 text."""
    if content.startswith(_UTF_16):
        return "a plan file must be UTF-8 text; this is UTF-16: save it as UTF-8"
    if b"\0" in content:
        return "a plan file must be UTF-8 text; this is no text"
    line = content.count(b"\n", 0, error.start) + 1
    return (
        f"a plan file must be UTF-8 text; byte {error.start} is not (line {line}): save it as UTF-8"
    )


def _declared(found: re.Match[str]) -> str:
    """Return in words that a table is there twice."""
    names = re.findall("'([^']*)'", found[1])
    return f"[{'.'.join(names)}] is there twice"


def _shown(text: str, said: str) -> str:
    """Return the line where a text stops to be TOML, and a hint."""
    conflict = _CONFLICT.search(text)
    if conflict is not None:
        number = text.count("\n", 0, conflict.start()) + 1
        return f"; a merge conflict is left in the file, {conflict[0].strip()!r} on line {number}"
    if text.lstrip().startswith("{"):
        return f"; {_of_json(text)}"
    if text.lstrip().startswith("<"):
        return "; this looks like XML or HTML: write key = value, and tables as [dpsgd]"
    if "\0" in text:
        return "; this is UTF-16, or no text: save it as UTF-8"
    if text.startswith("---") or _is_mostly_yaml(text):
        return f"; {_of_yaml(text)}"
    if _is_csv(text):
        return f"; this looks like CSV; {_INIT}"
    if "\r" in text.replace("\r\n", ""):
        return "; its lines end in CR alone: save it with LF, or with CR and LF"
    place = _PLACE.search(said)
    lines = text.replace("\r\n", "\n").rstrip().split("\n")
    # Without a place, the document ends before something does that one of the lines begins.
    number = min(int(place[1]), len(lines)) if place else _left_open(lines)
    line = lines[number - 1]
    where = "" if place else f" on line {number}"
    hint = _of_a_line(line, said, text)
    return f", in {_shortened(line).strip()!r}{where}{hint and ': '}{hint}"


def _left_open(lines: list[str]) -> int:
    """Return the number of the last line that begins a value and does not end it, else the last."""
    found = [number for number, line in enumerate(lines, 1) if _OPEN.match(line)]
    return found[-1] if found else len(lines)


def _shortened(line: str) -> str:
    """Return the beginning of a line."""
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _of_json(text: str) -> str:
    """Return what to write in place of an object in JSON, or that it is an answer."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = {}
    if all(key in told for key in _OF_ANSWERS):
        return (
            "this is an answer of hockeystick, not a plan: hockeystick init plan.toml --like "
            "ANSWER.json writes its plan (hockeystick verify ANSWER.json verifies it)"
        )
    return "this looks like JSON: write key = value, and tables as [dpsgd]"


def _is_csv(text: str) -> bool:
    """Return whether all lines have equally many separators, and none an equals sign."""
    lines = [one for one in text.splitlines() if one.strip() and not one.startswith("#")]
    if len(lines) < len(("names", "values")) or "=" in text:
        return False
    return any(
        len(found := {line.count(one) for line in lines}) == 1 and 0 not in found
        for one in _SEPARATORS
    )


def _is_mostly_yaml(text: str) -> bool:
    """Return whether most lines are a key before a colon, and none before an equals sign."""
    lines = [one for one in text.splitlines() if one.strip() and not one.lstrip().startswith("#")]
    with_colon = sum(_COLON.match(one) is not None for one in lines)
    return 2 < len(lines) < 2 * with_colon and not any(map(_KEY.match, lines))


def _of_yaml(text: str) -> str:
    """Return what to write in place of YAML or INI, and which tables are meant."""
    if _HEADER.search(text):
        return _INI
    tables = [table for key, table in _TABLES_OF_YAML if key.search(text)] or ["[dpsgd]"]
    return f"this looks like YAML: write key = value, and tables as {' and '.join(tables)}"


def _of_a_line(line: str, said: str, text: str) -> str:
    """Return what to write instead of a line of a text; nothing where that is unknown."""
    named = _TABLE.match(line) or _KEY.match(line)
    if _TWICE.match(said) and named is not None:
        return f"{named[1]} is there twice"
    if _TABLE_TWICE.match(said):
        return _of_two_tables(said, text)
    if line.strip() == _BETWEEN:
        return "a merge conflict is left in the file"
    if len(line) > _HINTED:
        return ""
    before_comment = line if "\\" in line else line.partition("#")[0]
    for pattern, hint in _HINTS:
        found = pattern.search(before_comment)
        if found is not None:
            return hint(found)
    return ""


def _of_two_tables(said: str, text: str) -> str:
    """Return what to write where a table is there twice."""
    if said.startswith("[release]"):
        return "write [[release]] above each release"
    if not said.startswith("[dpsgd]"):
        return ""
    return _ONE_PLAN if len(_DPSGD.findall(text)) > 1 else _DOTTED


def _header(name: str) -> str:
    """Return the header of a table, which stands alone or in an array."""
    return f"write [[{name}]]" if name == "release" else f"write [{name}]"


def _python(found: re.Match[str]) -> str:
    """Return what to write in place of Python: a plan can be given as it is."""
    if RELEASES.keys() & set(re.findall(r"\w+", found[0])):
        return "this is a plan as in Python: give the text itself, or write TOML"
    return f"this looks like Python; {_INIT}"


def _inline(found: re.Match[str]) -> str:
    """Return what to write in place of an inline table over several lines."""
    said = "an inline table is on one line"
    return f"{said}: write [{found[1]}] and its keys below" if found[1] in _TOP_TABLES else said


def _table_for(name: str) -> str:
    """Return the table that may stand in place of an inline one, to follow a hint."""
    return f", or a [{name}] table" if name in _TOP_TABLES else ""


def _number(value: Decimal) -> str:
    """Return a number as TOML has it."""
    return f"{float(value):.15g}"


def _quotient(found: re.Match[str]) -> str:
    """Return what to write for one number over another."""
    above, below = Decimal(found[1]), Decimal(found[2])
    itself = f"write the number itself, {_number(above / below)}" if below else ""
    return itself and f'{itself}, or the quotient in quotes, "{found[1]}/{found[2]}"'


def _product(found: re.Match[str]) -> str:
    """Return what to write for one number times another."""
    return f"write the number itself, {_number(Decimal(found[1]) * Decimal(found[2]))}"


def _in_quotes(found: re.Match[str]) -> str:
    """Return what to write for a root, a logarithm or a power of numbers."""
    return f'write it in quotes, "{found[1]}"' if number_of(found[1]) is not None else ""


def _value(rest: str) -> re.Pattern[str]:
    """Return what finds a value of this form behind a key."""
    return re.compile(rf"""^\s*[\w."'-]+\s*=\s*{rest}\s*$""")


def _boolean(found: re.Match[str]) -> str:
    """Return what to write for a truth value of Python: a number where the key holds one."""
    key, _, value = map(str.strip, found[0].partition("="))
    kinds = [parameters_of(kind) for kind in RELEASES.values()]
    held = {str(one[key].annotation) for one in kinds if key in one}
    if key in _QUESTIONS or (held and all(map(_REAL.fullmatch, held))):
        return "write a number"
    return f"write {value.lower()}"


def _times_a_unit(found: re.Match[str]) -> str:
    """Return what to write for a number of thousands or millions."""
    times = {"k": 1000, "m": 10**6, "b": 10**9}[found[2].lower()]
    return f"write {_number(Decimal(found[1]) * times)}"


def _per_cent(found: re.Match[str]) -> str:
    """Return what to write for a number in per cent: of a batch, the rate that it stands for."""
    share = _number(Decimal(found[1]) / 100)
    return share_of(_key(found), float(share)).strip(" ()") or f"write it as {share}"


def _thousands(found: re.Match[str]) -> str:
    """Return what to write for a number with a comma before three digits."""
    whole = f"write {found[1].replace(',', '')}"
    domain = PARAMETERS.get(_key(found))
    is_count = domain is not None and domain.allowed.startswith(WHOLE)
    return whole if is_count else f"{whole}, or a point where the comma is a decimal one"


def _key(found: re.Match[str]) -> str:
    """Return the key of a line."""
    return found[0].partition("=")[0].strip()


_INI: Final = (
    "this looks like INI: write = in place of :, texts in quotes, and what is below [DEFAULT] at "
    "the top, without a header"
)
_ONE_PLAN: Final = "one plan per file; another release of the same data is a [[release]]"
_DOTTED: Final = "write what begins with dpsgd. below [dpsgd], without that"
_TABLES_OF_YAML: Final = (
    (re.compile(r"(?m)^\s*dpsgd\s*:"), "[dpsgd]"),
    (re.compile(r"(?m)^\s*(?:releases?|-\s+mechanism)\s*:"), "[[release]]"),
)
_INIT: Final = "a plan file is TOML, and hockeystick init writes one"
_TOP_TABLES: Final = ("dpsgd", "grid", "ask")
_QUESTIONS: Final = TOP_KEYS[3:]
_REAL: Final = re.compile(r"(?:<class ')?(?:float|int)(?:'>)?(?: \| (?:float|int|None))*")
# Of an array or an inline table.
_ONE_VALUE: Final = r"""(?:"[^"]*"|'[^']*'|[^\s,"'{}\[\]=]+)"""
_DIGITS: Final = r"(\d[\d_]*(?:\.\d+)?)"
_HINTS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (re.compile("[“”„‘’]"), lambda _: 'write straight quotes, "'),
    (re.compile("[−–—]"), lambda _: "write a plain minus, -"),
    (re.compile("[\u00a0\u2000-\u200b\u202f\ufeff]"), lambda _: "write plain spaces"),
    (re.compile(r"^\s*[\w.-]+\s*=\s*$"), lambda _: "the value behind = is missing"),
    (
        re.compile(r"^\s*([\w.-]+)\s*==\s*(.+?)\s*$"),
        lambda it: f"write {it[1]} = {it[2]}, with one =",
    ),
    (_value(r"""("{3}|'{3})(?!.*\1).*"""), lambda it: f"end the text with {it[1]}"),
    (_value(r"""("[^"]*|'[^']*)"""), lambda it: f"end the text with {it[1][0]}, on the same line"),
    (_value(r"""([^\s"'][^"']*)(["'])"""), lambda it: f"begin the text with {it[2]}"),
    (_value(r'"[^"]*\\[^"]*"'), lambda _: r"write each \ twice, or the text in single quotes"),
    (_value(r"(\S.*?)\s*//.*"), lambda _: "a comment begins with #"),
    (re.compile(r"^\s*(?://|;)"), lambda _: "a comment begins with #"),
    (
        re.compile(r"""^\s*([\w.-]+)\s*=\s*\{\s*["']?[\w-]+["']?\s*:"""),
        lambda it: f"write = in place of :{_table_for(it[1])}",
    ),
    (re.compile(r"^\s*([\w.-]+)\s*=\s*\{[^}]*$"), _inline),
    (re.compile(r",\s*\}"), lambda _: "leave out the comma before }"),
    (re.compile(r"^\s*\{[^}]*$"), lambda _: "an inline table is on one line"),
    (
        re.compile(rf"""\{{.*=\s*{_ONE_VALUE}\s+([\w-]+)\s*="""),
        lambda it: f"write a comma before {it[1]}",
    ),
    (
        re.compile(r"^\s*\{.*\}\s*,?\s*$"),
        lambda _: "write a comma between the tables of an array, and ] behind the last",
    ),
    (
        re.compile(rf"\[\s*(?:{_ONE_VALUE}\s*,\s*)*{_ONE_VALUE}\s+{_ONE_VALUE}"),
        lambda _: "write a comma between the values of an array",
    ),
    (re.compile(r"^\s*[\w.-]+\s*=\s*\[[^\]]*$"), lambda _: "write ] where the array ends"),
    (
        re.compile(r"^\s*(?:\[\[\s*([\w.]+)\s*\]|\[\s*([\w.]+)\s*\]\]|\[\s+\[\s*([\w.]+).*)\s*$"),
        lambda it: _header(it[1] or it[2] or it[3]),
    ),
    (re.compile(r"^\s*\[+[\w.]+\]+\s*$"), lambda _: "an array above it lacks its ]"),
    (_value(r"(\S.*?)\s*[;,]+"), lambda it: f"write {it[1]}, and nothing behind it"),
    (
        _value(r"""("[^"]*"|[^\s"'\[{,]+)[\s,;]+[\w.-]+\s*=.*"""),
        lambda _: "write each key on a line of its own",
    ),
    (_value(r"(\S.*?)\s+;.*"), lambda _: "a comment begins with #"),
    (_value(r"([+-]?)(\.\d[\d_]*(?:[eE][+-]?\d+)?)"), lambda it: f"write {it[1]}0{it[2]}"),
    (
        _value(r"([+-]?\d[\d_]*)\.((?:[eE][+-]?\d+)?)"),
        lambda it: f"write {it[1]}.0{it[2]}, or {it[1]}{it[2]}",
    ),
    (_value(rf"{_DIGITS}\s*([kKmMbB])"), _times_a_unit),
    (_value(r"0[0_]*([1-9][\d_]*)"), lambda it: f"write {it[1]}, without a zero before it"),
    (_value(r"(\d[\d_]*?)_+"), lambda it: f"write {it[1]}"),
    (
        _value(r"([1-9]\d{0,2}(?: \d{3})+)"),
        lambda it: f"write {it[1].replace(' ', '')}, or {it[1].replace(' ', '_')}",
    ),
    (_value(r"([+-]?[\d._]+)[eE]\^(-?\d+)"), lambda it: f"write {it[1]}e{it[2]}"),
    (_value(r"([+-]?[\d._]+)[eE]"), lambda it: f"write {it[1]}, or an exponent behind the e"),
    (
        _value("(?:None|null|nil|NULL|NA|N/A)"),
        lambda _: "leave the line out where there is no value",
    ),
    (_value(rf"{_DIGITS}\s*%"), _per_cent),
    (_value(rf"{_DIGITS}\s*/\s*{_DIGITS}"), _quotient),
    (_value(r"10\s*(?:\^|\*\*)\s*\(?(-?\d+)\)?"), lambda it: f"write it as 1e{it[1]}"),
    (
        _value(rf"{_DIGITS}\s*[*x×·]\s*10\s*(?:\^|\*\*|(?=-))\s*\(?(-?\d+)\)?"),
        lambda it: f"write it as {it[1]}e{it[2]}",
    ),
    (_value(rf"{_DIGITS}\s*[*x×·]\s*{_DIGITS}"), _product),
    (_value(r"([^\"'{\[]*(?:\b(?:sqrt|log|ln|exp)\(|\*\*)[^\"']*)"), _in_quotes),
    (_value(rf"{_DIGITS}\s+([A-Za-z]+)"), lambda it: f"write {it[1]}, without {it[2]}"),
    (_value(r"([1-9]\d{0,2}(?:,\d{3})+)"), _thousands),
    (_value(r"(-?\d+),(\d+)"), lambda it: f"write {it[1]}.{it[2]}, with a point"),
    (_value("(?:True|False)"), _boolean),
    (_value("([+-]?)(?i:inf|infinity)"), lambda it: f"write {it[1]}inf, in lower case"),
    (_value("[+-]?(?i:nan)"), lambda _: "nan is no number to plan with: write a number"),
    (_value(r"([A-Za-z][\w-]*)"), lambda it: f'a text is in quotes: "{it[1]}"'),
    (_value(r"([A-Za-z][^\"'=]* [^\"'=]*)"), lambda it: f'a text is in quotes: "{it[1].strip()}"'),
    (re.compile(r"^\s*(dpsgd|release|grid|ask)\s*:\s*$"), lambda it: _of_yaml(it[0])),
    (re.compile(r"^\s*[\w.-]+\s*:"), lambda it: f"write {it[0].strip(' :')} = ..., with = for :"),
    (re.compile(r"^\s*(\[+)\s*([\w.]+)\s*$"), lambda it: f"write {it[1]}{it[2]}{']' * len(it[1])}"),
    (
        re.compile(r"^\s*([A-Za-z_]\w*)\s+([-+.\d\"'\[{]\S*)\s*$"),
        lambda it: f"write {it[1]} = {it[2]}",
    ),
    (
        re.compile(r"^\s*(?:[A-Za-z][\w.]*\s*\(.*|(?:import|from|def|class|if|for)\s+\w.*)"),
        _python,
    ),
    (
        re.compile(r"^\s*([A-Za-z_]\w*(?:[ \t]+[A-Za-z_]\w*)+)\s*="),
        lambda it: f"write {'_'.join(it[1].split())}",
    ),
)
