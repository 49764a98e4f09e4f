"""Plan files: TOML in, a checked plan out, and back. ``plan.toml`` is one to begin with."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import tomli_w

from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io.call_text import parse_real
from hockeystick.io.codec import Blanks, parameters_of, plan_of, refuse_unknown, tables_of
from hockeystick.mechanisms import DPSGD, Composed, Mechanism
from hockeystick.mechanisms.base import set_fields

MOST_BYTES: Final = 1_000_000
_TEXTS: Final = ("title", "source", "notes")
_NUMBERS: Final = ("delta", "epsilon")
_ABOUT: Final = (*_TEXTS, *_NUMBERS)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan, with what its file says about it: what ``load_plan`` returns and ``save_plan`` takes.

    Args:
        plan: The mechanism or plan.
        title, source, notes: What to call it, where its numbers come from, what to know.
        delta, epsilon: Where to ask for the other one.

    Example:
        >>> import hockeystick as hs
        >>> hs.io.PlanFile(plan=hs.Gaussian(2.0), delta=1e-5).delta
        1e-05
    """

    plan: Mechanism
    title: str | None = None
    source: str | None = None
    notes: str | None = None
    delta: float | None = None
    epsilon: float | None = None

    def __post_init__(self) -> None:
        set_fields(self)


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
    """
    name = os.fspath(path)
    return plan_in(content_of(name), name, overrides or {})


def plan_in(
    content: bytes, name: str, overrides: Mapping[str, object], blanks: Blanks | None = None
) -> PlanFile:
    """Return the plan that the content of a plan file describes; errors begin with the name."""
    try:
        return plan_file_of(document_of(content), overrides, blanks)
    except PlanFileError as error:
        raise PlanFileError(f"{name}: {error}") from None


def content_of(name: str) -> bytes:
    """Return what a file holds, a little more than a plan file may hold at most."""
    try:
        with open(name, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        reason = getattr(error, "strerror", None) or error
        raise PlanFileError(f"the file {name!r} cannot be read: {reason}") from None


def document_of(content: bytes) -> dict[str, Any]:
    """Return the tables that the content of a file has, or raise."""
    if len(content) > MOST_BYTES:
        raise PlanFileError("a plan file must be at most 1 MB long; this is longer")
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            told = json.loads(text, parse_float=parse_real, object_pairs_hook=_once)
            return _document_of_answer(told)
        return tomllib.loads(text, parse_float=parse_real)
    except ValueError as error:
        raise PlanFileError(f"a plan file must be valid TOML or JSON: {error}") from None
    except RecursionError:
        raise PlanFileError("the file is nested too deeply") from None


def _document_of_answer(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of the plan of an answer, as ``--json`` prints it, or of a description."""
    group, old = told.get("group"), told.get("plan")
    if isinstance(old, dict) and old.get("mechanism") == "OfGroup":
        group = old.get("size")
    if group is not None:
        raise PlanFileError(f"this answer is for a group: give what it is of, and --group {group}")
    if not told.keys() & {"description", "type"}:
        raise PlanFileError("the JSON is no answer and no description of a plan")
    about = {key: told[key] for key in _TEXTS if told.get(key) is not None}
    at = told.get("at")
    plan = plan_of(told.get("description", told), "description", {})
    return {**about, **(at if isinstance(at, dict) else {}), **tables_of(plan)}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise PlanFileError(f"{twice[0]!r} is there twice")
    return dict(pairs)


def plan_file_of(
    document: Mapping[str, Any], overrides: Mapping[str, object], blanks: Blanks | None = None
) -> PlanFile:
    """Return the plan that a document describes, or raise."""
    refuse_unknown("", document, (*_ABOUT, "dpsgd", "release"))
    releases = document.get("release", [])
    tables = {"dpsgd": document["dpsgd"]} if "dpsgd" in document else {}
    for index, table in enumerate(releases if isinstance(releases, list) else [None]):
        tables[f"release[{index}]"] = table
    if not tables:
        raise PlanFileError("the file needs a table [dpsgd], or [[release]]: see hockeystick init")
    parts: list[Mechanism] = []
    for where, table in tables.items():
        parts.append(_part(table, where, {} if parts else overrides, blanks))
    about = {key: one for key, one in document.items() if key in _ABOUT}
    about |= {key: parse_real(about[key]) for key in _NUMBERS if isinstance(about.get(key), str)}
    try:
        return PlanFile(plan=parts[0] if len(parts) == 1 else Composed(parts), **about)
    except HockeystickError as error:
        raise PlanFileError(str(error)) from None


def _part(
    table: object, where: str, overrides: Mapping[str, object], blanks: Blanks | None
) -> Mechanism:
    if not isinstance(table, dict):
        raise PlanFileError(f"{where} must be a table: write [dpsgd] or [[release]]")
    if where == "dpsgd":
        refuse_unknown(where, table, parameters_of(DPSGD))
        table = {**table, "mechanism": DPSGD.__name__}
    once = {key: value for key, value in table.items() if key != "repeat"}
    mechanism = plan_of(once, where, overrides, blanks)
    try:
        return mechanism ** table["repeat"] if "repeat" in table else mechanism
    except ParameterError as error:
        raise PlanFileError(str(error).replace("count", f"{where}.repeat", 1)) from None


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
        reason = getattr(error, "strerror", error)
        raise PlanFileError(f"the file {os.fspath(path)!r} cannot be written: {reason}") from None


def plan_text(plan: Mechanism | PlanFile) -> str:
    """Return what a file holds that describes a plan."""
    file = plan if isinstance(plan, PlanFile) else PlanFile(plan=plan)
    about = {name: one for name in _ABOUT if (one := getattr(file, name)) is not None}
    try:
        tables = tables_of(file.plan)
        releases = ({"release": one} for one in tables.pop("release"))
        texts = filter(None, map(tomli_w.dumps, ({**about, **tables}, *releases)))
        text = "\n".join(texts).replace("[release]\n", "[[release]]\n")
        text.encode()
    except ValueError as error:  # half a character, or a fraction of thousands of digits
        raise PlanFileError(f"no file can hold this plan: {error}") from None
    return text
