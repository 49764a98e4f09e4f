"""Plan files: TOML in, a checked plan out."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick._suggest import hint
from hockeystick.errors import IncompatibleError, ParameterError, PlanFileError
from hockeystick.io.blanks import Blanks
from hockeystick.io.building import TOP_LEVEL, built, parameters_of, refuse_unknown, spelled
from hockeystick.io.contents import content_of, document_of, shown
from hockeystick.io.vocabulary import (
    ALTERNATIVES,
    IN_PYTHON_ONLY,
    KINDS,
    NO_ADJACENCY,
    RELEASES,
    TOP_KEYS,
)
from hockeystick.mechanisms import DPSGD, Composed, FedSDP, Mechanism

_DEEPEST: Final = 16
# A step on a path: a key, or the index of one of several.
_STEP: Final = re.compile(r"\.?[^.\[\]]+|\[\d+\]")
# What sizes of DP-SGD are called where clients take the place of examples, and rounds of steps.
OF_CLIENTS: Final = {
    "examples": "total_clients",
    "batch_size": "clients_per_round",
    "steps": "rounds",
}
TABLES: Final = ("dpsgd", "release")
_TOP_LEVEL: Final = (*TOP_KEYS, *TABLES)
_AN_ARRAY: Final = "release must be an array of tables: write [[release]]"


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
    ``[[release]]`` has a ``mechanism`` by name, its fields, and optionally ``repeat``. A field
    that is itself a mechanism is a table of the same form. An ``Encoder`` is a table that has a
    ``kind`` ("tree", "square_root", "toeplitz", "banded_inverse", "buffered_toeplitz" or "matrix")
    and what the function of that name takes, and so are a schedule ("exponential", ...) and a
    distribution of runs ("binomial", "poisson", "truncated-negative-binomial"). All of them
    together are the plan.

    Edge cases:
        An override of one of a pair of alternatives, such as ``rate``, also drops the other one,
        ``batch_size``, from the file's table.

    Args:
        path: The file.
        overrides: Fields that replace those of the table ``[dpsgd]``.

    Returns:
        A ``PlanFile``: ``.plan``, and what the file says about it, ``.delta``, ``.epsilon``,
        ``.title``, ``.source`` and ``.notes``, each None where it says nothing.

    Raises:
        PlanFileError: If the file cannot be read or does not describe a plan.
        ParameterError: If an override is outside its domain.

    Example:
        >>> import hockeystick as hs
        >>> file = hs.load_plan("examples/abadi-2016-mnist.toml")
        >>> print(file.plan)
        DP-SGD (poisson sampling, noise multiplier 4, rate 0.01, 10000 steps, add-remove)
        >>> file.delta
        1e-05
        >>> print(f"{hs.epsilon(file.plan, file.delta):.4f}")
        0.9469
        >>> larger = hs.load_plan("examples/abadi-2016-mnist.toml", {"steps": 20_000})
        >>> larger.plan.steps, larger.delta
        (20000, 1e-05)

        ``hs.save_plan(hs.io.PlanFile(plan=plan, delta=1e-5), path)`` writes such a file.
    """
    name = os.fspath(path)
    return plan_in(content_of(name), shown(name), overrides)


def plan_in(
    content: bytes,
    name: str,
    overrides: Mapping[str, object] | None = None,
    numbers: Mapping[str, object] | None = None,
    blanks: Blanks | None = None,
) -> PlanFile:
    """Return the plan that the content of a plan file describes; errors begin with the name.

    Args:
        content: What the file holds.
        name: What to call it.
        overrides: Fields that replace those of the table ``[dpsgd]``.
        numbers: What replaces others, by paths such as ``release[0].inner.rate``.
        blanks: What collects the numbers that the file leaves out; they are errors by default.
    """
    try:
        document = document_of(content)
        for path, number in (numbers or {}).items():
            set_at(document, path, number)
        return plan_file_of(document, overrides or {}, blanks)
    except PlanFileError as error:
        raise PlanFileError(f"{name}: {error}") from None


def set_at(document: dict[str, Any], path: str, value: object) -> None:
    """Put a value into a document, at a path such as ``release[0].inner.rate``, or raise."""
    *steps, last = _STEP.findall(path)
    table: Any = document
    for done, step in enumerate(steps):
        table = _inside(table, step)
        if table is None:
            there = "".join(steps[: done + 1]).removeprefix(".")
            raise PlanFileError(f"{path} cannot be set: the file has no {there}")
    if isinstance(table, list) and _inside(table, last) is not None:
        table[int(last[1:-1])] = value
    elif isinstance(table, dict) and not last.startswith("["):
        table[last.removeprefix(".")] = value
    else:
        raise PlanFileError(f"{path} cannot be set: the file has no {path}")


def _inside(node: Any, step: str) -> Any:
    """Return what is one step inside of a node, None where there is nothing."""
    if step.startswith("["):
        index = int(step[1:-1])
        return node[index] if isinstance(node, list) and index < len(node) else None
    return node.get(step.removeprefix(".")) if isinstance(node, dict) else None


def plan_file_of(
    document: Mapping[str, Any], overrides: Mapping[str, object], blanks: Blanks | None = None
) -> PlanFile:
    """Return the plan that a document describes."""
    for check in TOP_CHECKS:
        check(document)
    return PlanFile(
        plan=_plan(document, overrides, blanks),
        title=text_at(document, "title"),
        source=text_at(document, "source"),
        notes=text_at(document, "notes"),
        delta=question_at(document, "delta"),
        epsilon=question_at(document, "epsilon"),
    )


def _refuse_tables(document: Mapping[str, Any]) -> None:
    """Raise for a table that a plan file cannot have."""
    for name, table in document.items():
        if name in _TOP_LEVEL or not is_table(table):
            continue
        if name == "grid":
            raise PlanFileError("this is a grid file: hockeystick sweep")
        is_array = isinstance(table, list)
        said = f"unknown table {f'[[{name}]]' if is_array else f'[{name}]'}{hint(name, TABLES)}"
        raise PlanFileError(f"{said}; allowed are [dpsgd] and [[release]]")


def is_table(value: object) -> bool:
    """Return whether a value is a table, or an array of tables."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict)


def _refuse_keys(document: Mapping[str, Any]) -> None:
    """Raise for the keys of the top level that a plan file cannot have, tables aside."""
    keys = {key: one for key, one in document.items() if not is_table(one)}
    refuse_unknown(TOP_LEVEL, keys, _TOP_LEVEL)


def refuse_release(document: Mapping[str, Any]) -> None:
    """Raise where the releases are no array of tables."""
    given = document.get("release", [])
    if not isinstance(given, list):
        raise PlanFileError(_AN_ARRAY)


TOP_CHECKS: Final = (_refuse_tables, _refuse_keys)


def _set_by_path(document: Mapping[str, Any], overrides: Mapping[str, object]) -> str:
    """Return how what a [[release]] has, or may have, is set; nothing if none has any of it."""
    releases = document.get("release")
    for index, table in enumerate(releases if isinstance(releases, list) else ()):
        if not isinstance(table, dict):
            continue
        kind = RELEASES.get(str(table.get("mechanism")))
        known = {*table, *(() if kind is None else parameters_of(kind))}
        of_clients = OF_CLIENTS if kind is FedSDP else {}
        its = {name: name if name in known else of_clients.get(name) for name in overrides}
        settings = [
            f"'release[{index}].{path}={overrides[name]}'"
            for name, path in its.items()
            if path is not None
        ]
        if settings:
            has = "has it" if len(settings) == 1 else "has them"
            return f"; a [[release]] {has}: {' '.join(settings)}"
    return ""


def _plan(
    document: Mapping[str, Any], overrides: Mapping[str, object], blanks: Blanks | None
) -> Mechanism:
    """Return the composition of all that a document describes."""
    parts = []
    if "dpsgd" in document:
        parts.append(dpsgd_of(document["dpsgd"], overrides, blanks))
    elif list(overrides) == ["adjacency"] and _plan(document, {}, blanks).adjacency is None:
        raise PlanFileError(NO_ADJACENCY)
    elif overrides:
        flags = ", ".join(overrides)
        how = _set_by_path(document, overrides)
        raise PlanFileError(f"there is no table [dpsgd] in which to override {flags}{how}")
    refuse_release(document)
    for index, table in enumerate(document.get("release", []), 1):
        parts.append(release_of(table, f"[[release]] number {index}", blanks))
    if not parts:
        raise PlanFileError("a plan file needs a table [dpsgd], or [[release]] at least once")
    try:
        return parts[0] if len(parts) == 1 else Composed(parts)
    except IncompatibleError as error:
        raise PlanFileError(str(error)) from None


def dpsgd_of(table: object, overrides: Mapping[str, object], blanks: Blanks | None) -> Mechanism:
    """Return the plan of a table [dpsgd]."""
    if not isinstance(table, dict):
        raise PlanFileError("dpsgd must be a table: write [dpsgd]")
    dropped = {ALTERNATIVES.get(name) for name in overrides}
    kept = {name: value for name, value in table.items() if name not in dropped}
    described = {
        key: _field(key, value, f"[dpsgd].{key}", blanks, 0) for key, value in kept.items()
    }
    return built(DPSGD, {**described, **overrides}, "[dpsgd]", overrides, blanks=blanks)


def release_of(table: object, where: str, blanks: Blanks | None) -> Mechanism:
    """Return the mechanism of a table [[release]], repeated as it says."""
    if not isinstance(table, dict):
        raise PlanFileError(_AN_ARRAY)
    repeat = table.get("repeat", 1)
    rest = {key: value for key, value in table.items() if key != "repeat"}
    mechanism = _mechanism(rest, where, blanks, extra=("repeat",))
    try:
        count = _validate.count("repeat", repeat, _validate.PARAMETERS["count"])
        return mechanism if "repeat" not in table else mechanism**count
    except ParameterError as error:
        raise PlanFileError(f"{where}: {spelled(error)}") from None


def _mechanism(
    table: Mapping[str, Any],
    where: str,
    blanks: Blanks | None,
    *,
    extra: tuple[str, ...] = (),
    depth: int = 0,
) -> Mechanism:
    """Return the mechanism that a table describes by name and fields."""
    if depth > _DEEPEST:
        raise PlanFileError(f"{where}: mechanisms may be nested at most {_DEEPEST} deep")
    if table.get("mechanism") == IN_PYTHON_ONLY:
        raise PlanFileError(f"{where}: no file can hold a trade-off function; use Python for FDP")
    name = _named("mechanism", table, where, RELEASES)
    kind, extra = RELEASES[name], ("mechanism", *extra)
    named = f"{where} ({name})"
    # Before what is inside of them is asked for.
    refuse_unknown(named, table, (*extra, *parameters_of(kind)))
    fields = {
        key: _field(key, value, f"{where}, {key}", blanks, depth)
        for key, value in table.items()
        if key != "mechanism"
    }
    return built(kind, fields, named, extra=extra, blanks=blanks)


def _of_a_kind(key: str, table: Mapping[str, Any], where: str) -> object:
    """Return what a table describes by its kind and parameters: an encoder, a schedule."""
    kinds = KINDS[key]
    kind = _named("kind", table, where, kinds)
    fields = {name: value for name, value in table.items() if name != "kind"}
    return built(kinds[kind], fields, f"{where} ({kind})", extra=("kind",))


def _named(key: str, table: Mapping[str, Any], where: str, known: Mapping[str, object]) -> str:
    """Return the name that a table has under a key, or raise if it is none of the known ones."""
    listed = ", ".join(known)
    if key not in table:
        raise PlanFileError(f"{where} needs {key}, one of {listed}")
    name = table[key]
    if not isinstance(name, str) or name not in known:
        near = hint(name, known)
        told = (
            f"unknown {key} {name!r}{near}"
            if near
            else f"{key} must be one of {listed}; got {name!r}"
        )
        raise PlanFileError(f"{where}: {told}")
    return name


def _field(key: str, value: object, where: str, blanks: Blanks | None, depth: int) -> object:
    """Return a field's value, with the tables that describe something made into it."""
    if isinstance(value, dict) and key in KINDS:
        return _of_a_kind(key, value, where)
    if isinstance(value, dict) and "mechanism" in value:
        return _mechanism(value, where, blanks, depth=depth + 1)
    if isinstance(value, list):
        return tuple(
            _field("", item, f"{where}[{i}]", blanks, depth) for i, item in enumerate(value)
        )
    return value


def text_at(document: Mapping[str, Any], key: str) -> str | None:
    """Return a text of the top level, or raise."""
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        wrong = ParameterError(key, value, "a text in quotes")
        raise PlanFileError(str(spelled(wrong)))
    return value


def question_at(document: Mapping[str, Any], key: str) -> float | None:
    """Return the delta or epsilon to ask at, or raise."""
    try:
        return _validate.real(key, document[key]) if key in document else None
    except ParameterError as error:
        raise PlanFileError(str(spelled(error))) from None
