"""Plan files: TOML in, a checked plan out, and back; an error names a key by its path."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io.call_text import computed_in, parse_real
from hockeystick.io.codec import plan_of, read_description, tables_of
from hockeystick.io.vocabulary import Blanks, parameters_of, refuse_unknown
from hockeystick.mechanisms import DPSGD, Composed, Mechanism
from hockeystick.mechanisms.base import checked

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
    kind = "UTF-8 text"
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            kind = "valid JSON"
            return _document_of_json(text)
        kind = "valid TOML"
        return dict(computed_in(tomllib.loads(text, parse_float=parse_real)))
    except ValueError as error:
        raise PlanFileError(f"a plan file must be {kind}: {error}") from None
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
        flag = f"--group {group}"
        raise PlanFileError(f"this answer is for a group: give the plan that it is of, and {flag}")
    for key in ("at", "budget"):
        if not isinstance(document.get(key) or {}, dict):
            raise PlanFileError(f"{key} must be an object; got {document[key]!r:.80}")
    try:
        plan = read_description(document.get("description", document))
    except ParameterError as error:
        raise PlanFileError(str(error)) from None
    # Of a solution, the delta of its target.
    at = document.get("at") or {"delta": (document.get("budget") or {}).get("delta")}
    about = {key: document.get(key) for key in _TEXTS}
    for key in _NUMBERS:
        about[key] = parse_real(at[key]) if isinstance(at.get(key), str) else at.get(key)
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
    for where, table in {"": document, **tables}.items():
        try:
            if where:
                parts.append(_part(table, where, {} if parts else overrides, blanks))
            else:
                about = _about(document)
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
    about: dict[str, Any] = {key: text_at(document, key) for key in _TEXTS}
    try:
        for key in _NUMBERS:
            given = document.get(key)
            about[key] = None if given is None else _validate.real(key, given)
    except ParameterError as error:
        raise PlanFileError(str(error)) from None
    return about


def text_at(document: Mapping[str, Any], key: str) -> str | None:
    """Return a text of the top level, or raise."""
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise PlanFileError(str(ParameterError(key, value, "a text in quotes")))
    return value


def _part(
    table: object, where: str, overrides: Mapping[str, object], blanks: Blanks | None
) -> Mechanism:
    """Return the mechanism of a table, repeated as it says."""
    if not isinstance(table, dict):
        raise PlanFileError(f"{where} must be a table: write [dpsgd] or [[release]]")
    if where == "dpsgd":
        refuse_unknown(where, table, parameters_of(DPSGD))
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
        plan: A mechanism or plan; or a ``hockeystick.io.PlanFile``, which besides has a title,
            notes, and the delta or epsilon at which to ask.
        path: Where to write it. JSON is written and read by ``hockeystick.calibration.describe``
            and ``read_description``.

    Raises:
        ParameterError: If it is no plan.
        PlanFileError: If the file cannot be written, or cannot hold it: trade-off functions, and
            encoders made from a whole matrix, of which they keep the sensitivity alone.

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=2.0)
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder) / "plan.toml"
        ...     hs.save_plan(hs.io.PlanFile(plan=plan, delta=1e-5), file)
        ...     again = hs.load_plan(file)
        >>> again.plan == plan, again.delta
        (True, 1e-05)
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
    import tomli_w

    file = plan if isinstance(plan, PlanFile) else PlanFile(plan=checked("plan", plan))
    about = {name: getattr(file, name) for name in (*_TEXTS, *_NUMBERS)}
    known = {name: value for name, value in about.items() if value is not None}
    text = tomli_w.dumps({**known, **tables_of(file.plan)})
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PlanFileError(f"no file can hold the text {error.object[error.start]!r}") from None
    return text
