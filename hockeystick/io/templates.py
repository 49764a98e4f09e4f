"""What is registered, for people: plan files to begin with, and a JSON schema for editors."""

from __future__ import annotations

import ast
import math
import re
import sys
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from doctest import DocTestParser
from enum import Enum
from importlib import resources
from inspect import Parameter, cleandoc
from typing import Any, Final, TypeAlias

import tomli_w

from hockeystick._validate import PARAMETERS
from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.io.call_text import parse_plan
from hockeystick.io.codec import tables_of
from hockeystick.io.plan_file import PlanFile
from hockeystick.io.vocabulary import ALTERNATIVES, KINDS, RELEASES, Maker, parameters_of
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.mechanisms.scope import unit_of

Schema: TypeAlias = dict[str, Any]

_WIDTH: Final = 88
# Where to ask: of 60,000 examples, as the file for training has them, the largest sensible one.
_DELTA: Final = "1e-6"
_REPEAT: Final = "How often it runs."
# What the example in its docstring does not write out in one call.
_CALLS: Final[Mapping[str, str]] = {
    "BatchClipped": "BatchClipped(PoissonSubsampled(Gaussian(1.1), 0.01, 'zero-out'), 1000)",
    "Composed": "Composed((Gaussian(1), Gaussian(2)))",
    "FedAlphaCDP": "FedAlphaCDP(noise_multiplier=15, total_clients=1000, clients_per_round=100, "
    "examples_per_client=50, batch_size=5, local_steps=100, rounds=100, sampling='poisson')",
    "FedCDP": "FedCDP(noise_multiplier=1, total_clients=100, clients_per_round=10, "
    "examples_per_client=100, batch_size=10, local_steps=10, rounds=10, sampling='two-stage')",
    "GOPA": "GOPA(0.4, 2, Graph.complete(100))",
    "GossipAveraging": "GossipAveraging(5, Graph.cycle(6), 9, party=2, observers=[0])",
    "PriFedSync": "PriFedSync(clients=LocalTraining(examples=600, batch_size=16, "
    "noise_multiplier=2, local_steps=38), rounds=93)",
    "RandomStopping": "RandomStopping(Gaussian(5), Poisson(10))",
    "Repeated": "Repeated(Gaussian(2), 30)",
    "RevealedRound": "RevealedRound(FixedSizeSubsampled(Gaussian(3), 5, 500)**100, rate=0.1)",
}


def template_of(mechanism: str, name: str = "plan.toml") -> str:
    """Return the text of a plan file for one mechanism or notion, to be filled in."""
    if mechanism == DPSGD.__name__:
        return _training("My training run", name, "examples", _DELTA)
    return template_of_plan(_example(mechanism), name)


def template_of_plan(plan: Mechanism, name: str = "plan.toml", delta: str = _DELTA) -> str:
    """Return the text of a plan file that holds a plan, each key under what it means."""
    tables = tables_of(plan)
    every = [("release", "[[release]]", one) for one in tables.get("release", [])]
    if "dpsgd" in tables:
        every.insert(0, ("dpsgd", "[dpsgd]", tables["dpsgd"]))
    title = f"My {every[0][2].get('mechanism', 'DPSGD') if len(every) == 1 else 'plan'}"
    head = _training(title, name, f"{unit_of(plan)}s", delta).partition("\n[dpsgd]")[0]
    return "\n".join([head, *(_table(*one) for one in every)])


def _table(above: str, heading: str, table: Mapping[str, Any]) -> str:
    meanings = meanings_of(RELEASES[table.get("mechanism", "DPSGD")])
    lines, inner = [heading], []
    for key, value in table.items():
        text = tomli_w.dumps({key: value}).strip()
        if text.startswith("["):
            inner.append("\n" + tomli_w.dumps({above: {key: value}}).strip())
            continue
        meaning = _REPEAT if key == "repeat" else meanings.get(key, "")
        comment = textwrap.wrap(meaning, _WIDTH - 2, break_on_hyphens=False)
        lines += [*(f"# {line}" for line in comment), text]
    return "\n".join([*lines, *inner, ""])


def _training(title: str, name: str, many: str, delta: str) -> str:
    """Return the text of a file for training, with what is said at its top."""
    text = (resources.files("hockeystick.io") / "plan.toml").read_text("utf-8")
    return text.format(title=title, name=name, many=many, delta=delta)


def _example(name: str) -> Mechanism:
    """Return a plan to begin with: the one of the table, or else of the docstring."""
    documented = DocTestParser().get_examples(RELEASES[name].__doc__ or "")
    for text in [_CALLS[name]] if name in _CALLS else [one.source for one in documented]:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(name):
                with suppress(HockeystickError):
                    return parse_plan(ast.unparse(node))
    raise PlanFileError(f"there is no template for {name}")


def meanings_of(kind: object) -> dict[str, str]:
    """Return what the docstring of a class says of each argument."""
    found = re.search(r"(?s)\nArgs:\n(.*?)(?:\n\S|\Z)", cleandoc(kind.__doc__ or ""))
    pairs = re.findall(r"(?ms)^    (\w+): (.*?)(?=^    \w|\Z)", found[1] if found else "")
    return {name: " ".join(text.replace("``", "").split()) for name, text in pairs}


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
    "Mechanism": {"allOf": [{"$ref": "#/definitions/mechanism"}]},
}


def plan_schema() -> Schema:
    """Return the JSON schema (draft 7) of plan files; ``load_plan`` knows more.

    No number is required, since ``hockeystick solve`` finds one that is left out.
    """
    repeat = {**_number("count"), "description": _REPEAT}
    tables = {
        "dpsgd": _object_of(DPSGD),
        "release": {"type": "array", "items": _one_of("mechanism", RELEASES, repeat=repeat)},
    }
    top = _object_of(PlanFile)
    del top["properties"]["plan"]
    some = {"required": ["release"], "properties": {"release": {"minItems": 1}}}
    kinds = {key: _one_of("kind", known) for key, known in KINDS.items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hockeystick plan file",
        **top,
        "properties": {**top["properties"], **tables},
        "anyOf": [{"required": ["dpsgd"]}, some],
        "definitions": {"mechanism": _one_of("mechanism", RELEASES), **kinds},
    }


def _one_of(tag: str, known: Mapping[str, Maker], **more: Schema) -> Schema:
    """Return what a table may be whose name stands under a tag."""
    tables = [
        {**_object_of(make, **{tag: {"const": name}}, **more), "required": [tag]}
        for name, make in known.items()
    ]
    return {"oneOf": tables}


def _object_of(make: Maker, **first: Schema) -> Schema:
    """Return what a table may hold that something is made of."""
    meanings = meanings_of(make)
    fields = {name: _field(make, one) for name, one in parameters_of(make).items()}
    for name in fields.keys() & meanings.keys():
        fields[name]["description"] = meanings[name]
    table = {"type": "object", "additionalProperties": False, "properties": {**first, **fields}}
    if make is DPSGD:
        table["allOf"] = [{"not": {"required": list(pair)}} for pair in ALTERNATIVES.items()]
    return table


def _number(name: str) -> Schema:
    """Return what numbers of a name may be: their domain, in which an end at infinity is none."""
    domain = PARAMETERS[name]
    lower = "exclusiveMinimum" if domain.low_open else "minimum"
    upper = "exclusiveMaximum" if domain.high_open else "maximum"
    ends = {lower: domain.low, upper: domain.high}
    finite = {end: value for end, value in ends.items() if math.isfinite(value)}
    return {**(_WHOLE if domain.whole else _COMPUTED), **finite}


def _field(make: Maker, parameter: Parameter) -> Schema:
    """Return what one field may be; anything, where no more is known than its name."""
    name, kind = parameter.name, str(parameter.annotation).removesuffix(" | None")
    if name in KINDS:
        return {"allOf": [{"$ref": f"#/definitions/{name}"}]}
    if name in PARAMETERS and kind in ("float", "float | Fraction", "int"):
        return _number(name)
    # The few words of an enumeration, which a type such as ``Sampling | str`` is.
    words = vars(sys.modules[make.__module__]).get(kind.removesuffix(" | str"))
    if isinstance(words, type) and issubclass(words, Enum):
        return {"enum": [str(one) for one in words]}
    return dict(_PLAIN.get(kind, {}))
