"""Plan files: TOML in, a checked plan out, and back; files to begin with; a schema for editors."""

from __future__ import annotations

import ast
import json
import math
import os
import re
import sys
import textwrap
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from doctest import DocTestParser
from enum import Enum
from importlib import resources
from inspect import cleandoc
from typing import Any, Final, final

import tomli_w

from hockeystick import _validate
from hockeystick._validate import PARAMETERS
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io import codec
from hockeystick.io.call_text import computed_in, parse_plan, parse_real
from hockeystick.io.codec import Blanks, plan_of, refuse_unknown, tables_of
from hockeystick.mechanisms import DPSGD, Composed, Mechanism
from hockeystick.mechanisms.base import checked
from hockeystick.mechanisms.scope import unit_of

MOST_BYTES: Final = 1_000_000
_TEXTS: Final = ("title", "source", "notes")
_NUMBERS: Final = ("delta", "epsilon")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan, with what its file says about it: what ``load_plan`` returns and ``save_plan`` takes.

    Args:
        plan: The mechanism or plan.
        title: What to call it.
        source: Where its numbers come from.
        notes: What a reader should know.
        delta: Where to ask for epsilon.
        epsilon: Where to ask for delta.
    """

    plan: Mechanism
    title: str | None = None
    source: str | None = None
    notes: str | None = None
    delta: float | None = None
    epsilon: float | None = None


def load_plan(
    path: str | os.PathLike[str], overrides: Mapping[str, object] | None = None
) -> PlanFile:
    """Read a plan file.

    A plan file is TOML. At the top it may have the texts ``title``, ``source`` and ``notes``, and
    the questions ``delta`` and ``epsilon``. A table ``[dpsgd]`` has the fields of ``DPSGD``; each
    ``[[release]]`` a ``mechanism`` by name, its fields, and perhaps ``repeat``. A field that is a
    mechanism is such a table too; encoders, schedules, graphs and distributions have a ``kind``.

    Args:
        path: The file.
        overrides: Fields that replace those of the table ``[dpsgd]``. One of a pair of
            alternatives, such as ``rate``, also drops the other one, ``batch_size``.

    Raises:
        PlanFileError: If the file cannot be read or does not describe a plan.
        ParameterError: If an override is outside its domain.

    Example:
        >>> import hockeystick as hs
        >>> file = hs.load_plan("examples/abadi-2016-mnist.toml", {"steps": 20_000})
        >>> print(file.plan)
        DP-SGD (poisson sampling, noise multiplier 4, rate 0.01, 20000 steps, add-remove)
        >>> file.delta
        1e-05
    """
    name = os.fspath(path)
    return plan_in(content_of(name), shown(name), overrides)


def plan_in(
    content: bytes,
    name: str,
    overrides: Mapping[str, object] | None = None,
    blanks: Blanks | None = None,
) -> PlanFile:
    """Return the plan that the content of a plan file describes; errors begin with the name."""
    try:
        return plan_file_of(document_of(content), overrides or {}, blanks)
    except PlanFileError as error:
        raise PlanFileError(f"{name}: {error}") from None


def shown(name: str) -> str:
    """Return the name of a file so that it can be seen, though it be blank."""
    return name if name.strip() else repr(name)


def content_of(name: str) -> bytes:
    """Return what a file holds, a little more than a plan file may hold at most."""
    try:
        with open(name, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        reason = getattr(error, "strerror", None) or error
        raise PlanFileError(f"{shown(name)}: the file cannot be read: {reason}") from None


def document_of(content: bytes) -> dict[str, Any]:
    """Return the tables that the content of a file has, or raise."""
    if len(content) > MOST_BYTES:
        raise PlanFileError("a plan file must be at most 1 MB long; this is longer")
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            return _document_of_json(text)
        return dict(computed_in(tomllib.loads(text, parse_float=parse_real)))
    except ValueError as error:
        raise PlanFileError(f"a plan file must be valid TOML or JSON: {error}") from None
    except RecursionError:
        raise PlanFileError("the file is nested too deeply") from None


def _document_of_json(text: str) -> dict[str, Any]:
    """Return the tables that JSON stands for; those of the plan of an answer or a description."""
    document = json.loads(text, parse_float=parse_real, object_pairs_hook=_once)
    if "description" not in document and "type" not in document:
        return dict(computed_in(document))
    group, old = document.get("group"), document.get("plan")
    if isinstance(old, dict) and old.get("mechanism") == "OfGroup":
        group = old.get("size")
    if group is not None:
        raise PlanFileError(f"this answer is for a group: give what it is of, and --group {group}")
    at, budget = (document.get(key) or {} for key in ("at", "budget"))
    if not (isinstance(at, dict) and isinstance(budget, dict)):
        raise PlanFileError("at and budget must be objects")
    # Of a solution, the delta of its target.
    at = at or {"delta": budget.get("delta")}
    about = {key: document.get(key) for key in _TEXTS}
    for key in _NUMBERS:
        about[key] = parse_real(at[key]) if isinstance(at.get(key), str) else at.get(key)
    plan = plan_of(document.get("description", document), "description", {})
    return {**about, **tables_of(plan)}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are there once, or raise."""
    keys = [key for key, _ in pairs]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise PlanFileError(f"{twice[0]!r} is there twice")
    return dict(pairs)


def plan_file_of(
    document: Mapping[str, Any], overrides: Mapping[str, object], blanks: Blanks | None = None
) -> PlanFile:
    """Return the plan that a document describes; or raise, with what is wrong with each table."""
    releases = document.get("release", [])
    tables = {"dpsgd": document["dpsgd"]} if "dpsgd" in document else {}
    for index, table in enumerate(releases if isinstance(releases, list) else [None]):
        tables[f"release[{index}]"] = table
    about: dict[str, Any] = {}
    parts: list[Mechanism] = []
    problems: list[str] = []
    try:
        about = _about(document)
    except HockeystickError as error:
        problems.append(str(error))
    for where, table in tables.items():
        try:
            parts.append(_part(table, where, {} if parts else overrides, blanks))
        except PlanFileError as error:
            problems.append(str(error))
    if not tables:
        problems.append("the file needs a table [dpsgd], or [[release]]: see hockeystick init")
    if problems:
        raise PlanFileError(*problems)
    try:
        return PlanFile(plan=parts[0] if len(parts) == 1 else Composed(parts), **about)
    except HockeystickError as error:
        raise PlanFileError(str(error)) from None


def problems_in(content: bytes) -> tuple[str, ...]:
    """Return what is wrong first with the top and with each table of a plan file."""
    try:
        plan_file_of(document_of(content), {})
    except PlanFileError as error:
        return error.args
    return ()


def _about(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the top level says about the plan, or raise."""
    refuse_unknown("", document, (*_TEXTS, *_NUMBERS, "dpsgd", "release"))
    numbers = {key: document[key] for key in _NUMBERS if document.get(key) is not None}
    texts = {key: text_at(document, key) for key in _TEXTS}
    return {**texts, **{key: _validate.real(key, one) for key, one in numbers.items()}}


def text_at(document: Mapping[str, Any], key: str) -> str | None:
    """Return a text of the top level, or raise."""
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise ParameterError(key, value, "a text in quotes")
    return value


def _part(
    table: object, where: str, overrides: Mapping[str, object], blanks: Blanks | None
) -> Mechanism:
    """Return the mechanism of a table, repeated as it says."""
    if not isinstance(table, dict):
        raise PlanFileError(f"{where} must be a table: write [dpsgd] or [[release]]")
    if where == "dpsgd":
        refuse_unknown(where, table, codec.parameters_of(DPSGD))
        return plan_of({**table, "mechanism": DPSGD.__name__}, where, overrides, blanks)
    once = {key: value for key, value in table.items() if key != "repeat"}
    mechanism = plan_of(once, where, overrides, blanks)
    try:
        return mechanism ** table["repeat"] if "repeat" in table else mechanism
    except ParameterError as error:
        count = ParameterError(f"{where}.repeat", error.value, error.allowed)
        raise PlanFileError(str(count)) from None


def save_plan(plan: Mechanism | PlanFile, path: str | os.PathLike[str]) -> None:
    """Write a plan as a file that ``load_plan`` reads as an equal plan, in place of any other.

    Args:
        plan: A mechanism or plan; or a ``hockeystick.io.PlanFile``, which says more of it.
        path: Where to write it. For JSON there is ``hockeystick.calibration.describe``.

    Raises:
        ParameterError: If it is no plan.
        PlanFileError: If the file cannot be written, or cannot hold it: trade-off functions, and
            encoders made from a whole matrix.

    Example:
        >>> import hockeystick as hs
        >>> from tempfile import TemporaryDirectory
        >>> file = hs.io.PlanFile(plan=hs.Gaussian(2.0) ** 3, delta=1e-5)
        >>> with TemporaryDirectory() as folder:
        ...     hs.save_plan(file, f"{folder}/plan.toml")
        ...     hs.load_plan(f"{folder}/plan.toml") == file
        True
    """
    text = plan_text(plan)
    try:
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    except (OSError, ValueError) as error:
        reason, name = getattr(error, "strerror", error), shown(os.fspath(path))
        raise PlanFileError(f"{name}: the file cannot be written: {reason}") from None


def plan_text(plan: Mechanism | PlanFile) -> str:
    """Return what a file holds that describes a plan."""
    file = plan if isinstance(plan, PlanFile) else PlanFile(plan=checked("plan", plan))
    about = {name: getattr(file, name) for name in (*_TEXTS, *_NUMBERS)}
    known = {name: value for name, value in about.items() if value is not None}
    try:
        text = tomli_w.dumps({**known, **tables_of(file.plan)})
        text.encode()
    except ValueError as error:  # half a character, or a fraction of thousands of digits
        raise PlanFileError(f"no file can hold this plan: {error}") from None
    return text


# Where to ask: of 60,000 examples, as the file for training has them, the largest sensible one.
_DELTA: Final = "1e-6"
_REPEAT: Final = "How often it runs."


def template_of(mechanism: str, name: str = "plan.toml") -> str:
    """Return the text of a plan file for one mechanism or notion, to be filled in."""
    if mechanism == DPSGD.__name__:
        return _training(name, "examples", _DELTA)
    return template_of_plan(_example(codec.RELEASES[mechanism]), name)


def template_of_plan(plan: Mechanism, name: str = "plan.toml", delta: str = _DELTA) -> str:
    """Return the text of a plan file that holds a plan, each key under what it means."""
    lines = [_training(name, f"{unit_of(plan)}s", delta).partition("[dpsgd]")[0].rstrip(), ""]
    meanings: dict[str, str] = {}
    tables = tables_of(plan)
    releases = ({"release": one} for one in tables.pop("release", ()))
    text = "\n".join(map(tomli_w.dumps, filter(None, (tables, *releases))))
    for line in text.replace("[release]\n", "[[release]]\n").splitlines():
        key, _, value = line.partition(" = ")
        if line.startswith("["):
            meanings = _meanings_of(DPSGD) if line == "[dpsgd]" else {}
        elif key == "mechanism":
            meanings = {"repeat": _REPEAT, **_meanings_of(codec.RELEASES[value.strip('"')])}
        lines += [f"# {one}" for one in textwrap.wrap(meanings.get(key, ""), 86)]
        lines.append(line)
    return "\n".join([*lines, ""])


def _training(name: str, many: str, delta: str) -> str:
    """Return the text of a file for training, with what is said at its top."""
    text = (resources.files("hockeystick.io") / "plan.toml").read_text("utf-8")
    return text.format(name=name, many=many, delta=delta)


def _example(kind: type[Mechanism]) -> Mechanism:
    """Return the first plan of a class in the examples of its docstring, with names written out."""
    known: dict[str, str] = {}
    for one in DocTestParser().get_examples(kind.__doc__ or ""):
        text = re.sub(r"(?<![\w.])\w+\b(?!=)", lambda x: known.get(x[0], x[0]), one.source)
        text = re.sub(r"\*\*dict\(([^()]*)\)", r"\1", text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign):
                known[ast.unparse(node.targets[0])] = ast.unparse(node.value)
            with suppress(HockeystickError):
                if type(plan := parse_plan(ast.unparse(node))) is kind:
                    return plan
    raise PlanFileError(f"there is no template for {kind.__name__}")


def _meanings_of(kind: object) -> dict[str, str]:
    """Return what the docstring of a class says of each argument."""
    found = re.search(r"(?s)\nArgs:\n(.*?)(?:\n\S|\Z)", cleandoc(kind.__doc__ or ""))
    pairs = re.findall(r"(?ms)^    (\w+): (.*?)(?=^    \w|\Z)", found[1] if found else "")
    return {name: " ".join(text.replace("``", "").split()) for name, text in pairs}


def plan_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 7) of plan files: their keys, names and ends of numbers.

    ``load_plan`` knows more. No number is required, as ``hockeystick solve`` finds one left out.
    """
    top = _object_of(PlanFile)
    del top["properties"]["plan"]
    releases = _one_of("mechanism", codec.RELEASES, repeat={"description": _REPEAT, "minimum": 0})
    top["properties"] |= {
        "dpsgd": _object_of(DPSGD),
        "release": {"type": "array", "items": releases},
    }
    kinds = {key: _one_of("kind", known) for key, known in codec.KINDS.items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "hockeystick plan file",
        **top,
        "definitions": {"Mechanism": _one_of("mechanism", codec.RELEASES), **kinds},
    }


def _one_of(tag: str, known: Mapping[str, codec.Maker], **more: Any) -> dict[str, Any]:
    """Return what a table may be whose name stands under a tag."""
    every = ((make, {tag: {"const": name}, **more}) for name, make in known.items())
    return {"oneOf": [{**_object_of(make, **own), "required": [tag]} for make, own in every]}


def _object_of(make: codec.Maker, **fields: Any) -> dict[str, Any]:
    """Return what a table may hold that something is made of, and the fields that are given."""
    meanings, module = _meanings_of(make), vars(sys.modules[make.__module__])
    for name, one in codec.parameters_of(make).items():
        kind = str(one.annotation).removesuffix(" | None").removesuffix(" | str")
        fields[name] = {"description": meanings.get(name, "")}
        # The few words of an enumeration, which a type such as ``Sampling | str`` is.
        words = module.get(kind)
        if name in codec.KINDS or kind == "Mechanism":
            fields[name] = {"$ref": f"#/definitions/{name if name in codec.KINDS else kind}"}
        elif isinstance(words, type) and issubclass(words, Enum):
            fields[name]["enum"] = [str(word) for word in words]
        elif name in PARAMETERS:
            ends = {"minimum": PARAMETERS[name].low, "maximum": PARAMETERS[name].high}
            fields[name] |= {end: value for end, value in ends.items() if math.isfinite(value)}
    table = {"type": "object", "additionalProperties": False, "properties": fields}
    pairs = codec.ALTERNATIVES.items() if make is DPSGD else ()
    return {**table, "allOf": [{"not": {"required": list(pair)}} for pair in pairs]}
