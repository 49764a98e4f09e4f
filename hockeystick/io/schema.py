"""The JSON schema of plan files, for editors, from what is registered."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from inspect import Parameter
from typing import Any, Final, TypeAlias

from hockeystick._validate import PARAMETERS
from hockeystick.io.building import parameters_of
from hockeystick.io.templates import meanings_of
from hockeystick.io.vocabulary import ALTERNATIVES, KINDS, RELEASES
from hockeystick.mechanisms import DPSGD

Schema: TypeAlias = dict[str, Any]

_DIALECT: Final = "http://json-schema.org/draft-07/schema#"
_ABOUT: Final[Mapping[str, str]] = {
    "title": "What to call the plan.",
    "source": "Where the plan comes from, such as a URL.",
    "notes": "What a reader should know besides.",
}
_WHOLE: Final[Schema] = {"type": "integer"}
# A file may also have a quotient, a root, a power or a fraction in quotes.
_COMPUTED: Final[Schema] = {
    "type": ["number", "string"],
    "pattern": r"\d\s*/\s*[\d.]|\*\*|(?:sqrt|log|ln|exp|Fraction)\(",
}
_PLAIN: Final[Mapping[str, Schema]] = {
    "float": _COMPUTED,
    "float | Fraction": _COMPUTED,
    "int": _WHOLE,
    "bool": {"type": "boolean"},
    "str": {"type": "string"},
}
_AN_INTEGER: Final = re.compile(r", an integer (?:from|>=) (\d+)(?: to 10\^(\d+)\b)?")
_NUMBERS: Final = ("float", "float | Fraction", "int")
_MECHANISM: Final[Schema] = {"$ref": "#/definitions/mechanism"}
_PAIRS: Final = sorted({tuple(sorted(pair)) for pair in ALTERNATIVES.items()})


def plan_schema() -> Schema:
    """Return the JSON schema (draft 7) of plan files.

    It knows each key, what it means, whether it is a number, a text or one of a few words, between
    which ends numbers of its name are, and that epochs and steps, or batch_size and rate, exclude
    one another; ``load_plan`` knows more: what a mechanism asks of its numbers, and what goes
    together. No number is required,
    since ``hockeystick solve`` finds the one that a file leaves out.

    Example:
        >>> from hockeystick.io.schema import plan_schema
        >>> sorted(plan_schema()["properties"])
        ['delta', 'dpsgd', 'epsilon', 'notes', 'release', 'source', 'title']
    """
    about = {
        **{name: {"type": "string", "description": text} for name, text in _ABOUT.items()},
        "delta": {**_number("delta"), "description": "Where to ask for epsilon."},
        "epsilon": {**_number("epsilon"), "description": "Where to ask for delta; what to meet."},
    }
    repeat = {**_number("count"), "description": "How often it runs."}
    plans: Schema = {
        "dpsgd": {**_table(DPSGD), "description": "Training by DP-SGD."},
        "release": {
            "type": "array",
            "items": _one_of("mechanism", RELEASES, repeat=repeat),
            "description": "Whatever else is released of the same data.",
        },
    }
    kinds = {key: _one_of("kind", known) for key, known in KINDS.items()}
    return {
        "$schema": _DIALECT,
        "title": "hockeystick plan file",
        "type": "object",
        "additionalProperties": False,
        "properties": {**about, **plans},
        "anyOf": [
            {"required": ["dpsgd"]},
            {"required": ["release"], "properties": {"release": {"minItems": 1}}},
        ],
        "definitions": {"mechanism": _one_of("mechanism", RELEASES), **kinds},
    }


def _one_of(tag: str, known: Mapping[str, Callable[..., object]], **more: Schema) -> Schema:
    """Return what a table may be whose name stands under a tag."""
    tables = [
        {**_table(make, **{tag: {"const": name}}, **more), "required": [tag]}
        for name, make in known.items()
    ]
    return {"oneOf": tables}


def _table(make: Callable[..., object], **first: Schema) -> Schema:
    """Return what a table may hold that something is made of."""
    meanings = meanings_of(make)
    fields = {
        name: _field(make, one)
        | _whole(meanings.get(name, ""))
        | ({"description": meanings[name]} if name in meanings else {})
        for name, one in parameters_of(make).items()
    }
    table = {"type": "object", "additionalProperties": False, "properties": {**first, **fields}}
    if make is DPSGD:
        table["allOf"] = [{"not": {"required": list(pair)}} for pair in _PAIRS]
    return table


def _number(name: str) -> Schema:
    """Return what numbers of a name may be: their domain, in which an end at infinity is none."""
    domain = PARAMETERS[name]
    lower = "exclusiveMinimum" if domain.low_open else "minimum"
    upper = "exclusiveMaximum" if domain.high_open else "maximum"
    ends = {lower: domain.low, upper: domain.high}
    finite = {end: value for end, value in ends.items() if math.isfinite(value)}
    return {**(_WHOLE if domain.whole else _COMPUTED), **finite}


def _whole(meaning: str) -> Schema:
    """Return the type and the ends of a whole number, as far as what is said of it has them."""
    found = _AN_INTEGER.search(meaning)
    if found is None:
        return {}
    high = found[2] and {"maximum": 10 ** int(found[2])}
    return {**_WHOLE, "minimum": int(found[1]), **(high or {})}


def _field(make: Callable[..., object], parameter: Parameter) -> Schema:
    """Return what one field may be; anything, where no more is known than its name."""
    name, kind = parameter.name, str(parameter.annotation).removesuffix(" | None")
    if name in KINDS:
        return {"allOf": [{"$ref": f"#/definitions/{name}"}]}
    if kind == "Mechanism":
        return {"allOf": [_MECHANISM]}
    if name in PARAMETERS and kind in _NUMBERS:
        return _number(name)
    words = _words(make, kind)
    return {"enum": words} if words else dict(_PLAIN.get(kind, {}))


def _words(make: Callable[..., object], kind: str) -> list[str]:
    """Return the few words that an enumeration has, which a type such as ``Sampling | str`` is."""
    found = re.fullmatch(r"(\w+) \| str", kind)
    known = vars(sys.modules[make.__module__]).get(found[1]) if found else None
    is_enumeration = isinstance(known, type) and issubclass(known, Enum)
    return [str(one) for one in known] if is_enumeration and known else []
