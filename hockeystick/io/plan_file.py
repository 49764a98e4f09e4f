"""Plan files: TOML in, a checked plan out."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick._synonyms import meant, told
from hockeystick.errors import IncompatibleError, ParameterError, PlanFileError
from hockeystick.io.blanks import Blanks
from hockeystick.io.building import built, parameters_of, refuse_unknown
from hockeystick.io.guesses import did_you_mean
from hockeystick.io.headers import (
    PARTS,
    TABLES,
    hint_of,
    is_table,
    mended,
    said_of_release,
)
from hockeystick.io.numbers import computed_in, parse_real
from hockeystick.io.places import (
    HEADER,
    TOP_LEVEL,
    by_line,
    each_of,
    in_toml,
    place_of,
    placed,
    said_at,
    spelled,
)
from hockeystick.io.syntax import encoding_error, syntax_error
from hockeystick.io.vocabulary import ALTERNATIVES, IN_PYTHON_ONLY, KINDS, RELEASES, TOP_KEYS
from hockeystick.mechanisms import DPSGD, Composed, Mechanism

MOST_BYTES: Final = 1_000_000
_DEEPEST: Final = 16
# How much alike the name of a file is to another one that may be meant.
_A_PAGE: Final = re.compile(rb"\s*<(!doctype|html)", re.IGNORECASE)
_LEAST_ALIKE: Final = 0.8
# A step on a path: a key, or the index of one of several.
_STEP: Final = re.compile(r"\.?[^.\[\]]+|\[\d+\]")
_TOP_LEVEL: Final = (*TOP_KEYS, *TABLES)


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
        document = _parsed(content)
        for path, number in (numbers or {}).items():
            set_at(document, path, number)
        return plan_file_of(document, overrides or {}, blanks)
    except PlanFileError as error:
        line, said = (None, str(error)) if numbers else said_at(content, error)
        raise PlanFileError(f"{name if line is None else f'{name}:{line}'}: {said}") from None


def problems_in(content: bytes) -> list[str]:
    """Return all that is wrong with the content of a plan file, as far as it can be told apart."""
    try:
        document = _parsed(content)
    except PlanFileError as error:
        return [str(error)]
    found, changed = _problems(document, content), mended(content, document)
    if changed is not None:
        with suppress(PlanFileError):
            found += _problems(_parsed(changed), changed)
    return by_line(found)


def _problems(document: Mapping[str, Any], content: bytes) -> list[str]:
    """Return all that is wrong with a document."""
    unknown: list[Callable[[], object]] = [
        partial(check, {key: one}) for key, one in document.items() for check in _TOP_CHECKS
    ]
    texts = [partial(text_at, document, key) for key in TOP_KEYS[:3]]
    places = [partial(_question, document, key) for key in TOP_KEYS[3:]]
    given = document.get("release")
    tables = enumerate(given, 1) if isinstance(given, list) else ()
    whole_release = partial(_refuse_release, document)
    checks: list[Callable[[], object]] = [*unknown, *texts, *places, whole_release]
    found = [problem for check in checks if (problem := _problem(check, content))]
    if "dpsgd" in document:
        found += _problems_of(document["dpsgd"], "[dpsgd]", content)
        clashes = (_told(one, content) for one in _clashes(document["dpsgd"]))
        found += [one for one in clashes if one not in found]
    for i, one in tables:
        found += _problems_of(one, f"[[release]] number {i}", content)
    whole = _problem(partial(plan_file_of, document, {}), content)
    return found or ([whole] if whole else [])


def _problems_of(table: Any, where: str, content: bytes) -> list[str]:
    """Return what is wrong with a table: what is, is left out, and the rest looked at again."""
    found: list[str] = []
    rest = table
    while True:
        blanks = Blanks() if found else None
        try:
            if where == "[dpsgd]":
                _dpsgd(rest, {}, blanks)
            else:
                _release(rest, where, blanks)
        except PlanFileError as error:
            each = each_of(error)
            keys = {key for place, key in map(place_of, each) if _without_kind(place) == where}
            about_a_field = isinstance(rest, dict) and not keys.isdisjoint(rest)
            # What is left out may be what others need.
            is_of_its_own = not isinstance(error.__context__, IncompatibleError)
            if found and not (about_a_field and is_of_its_own):
                return found
            found += [_told(one, content) for one in each]
            if not about_a_field:
                return found
            rest = {name: value for name, value in rest.items() if name not in keys}
        else:
            return found


def _without_kind(place: str) -> str:
    """Return where a table is, without the name of its mechanism."""
    return re.sub(r" \(\w+\)$", "", place)


def _clashes(table: Any) -> Iterator[PlanFileError]:
    """Yield what is wrong where both of two alternatives are in a table."""
    for one, other in (("batch_size", "rate"), ("epochs", "steps")):
        if isinstance(table, dict) and one in table and other in table:
            got = ", ".join(f"{key} = {in_toml(table[key])}" for key in (one, other))
            said = f"[dpsgd]: give {one} or {other}, not both; got {got}"
            yield placed(said, "[dpsgd]", f"{one}, {other}")


def _told(error: PlanFileError, content: bytes) -> str:
    """Return an error, and on which line it is."""
    line, said = said_at(content, error)
    return said if line is None else f"line {line}: {said}"


def _problem(check: Callable[[], object], content: bytes) -> str:
    """Return what is wrong, and on which line; nothing where nothing is."""
    try:
        check()
    except PlanFileError as error:
        return _told(error, content)
    return ""


def shown(name: str) -> str:
    """Return the name of a file so that it can be seen, though it be blank."""
    return name if name.strip() else repr(name)


def document_of(content: bytes) -> dict[str, Any]:
    """Return the tables that the content of a TOML file has."""
    return _parsed(content)


def content_of(name: str) -> bytes:
    """Return what a file holds, a little more than a plan file may hold at most."""
    try:
        return _read(name)
    except PlanFileError as error:
        raise PlanFileError(f"{shown(name)}: {error}") from None


def _read(name: str) -> bytes:
    """Return what a file holds, or raise."""
    try:
        with open(name, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        hint = _meant_by(name)
        raise PlanFileError(f"no such file; give the path of a plan file{hint}") from None
    except IsADirectoryError:
        raise PlanFileError("this is a directory; give the path of a plan file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PlanFileError(f"the file cannot be read: {reason}") from None


def _meant_by(name: str) -> str:
    """Return which file or mechanism was meant by a name, to follow an error."""
    folder, last = os.path.split(name)
    with suppress(OSError):
        beside = [one for one in os.listdir(folder or ".") if one.endswith(".toml")]
        close = difflib.get_close_matches(last, beside, n=1, cutoff=_LEAST_ALIKE)
        if close:
            return told(os.path.join(folder, close[0]))
    found = None if folder or "." in last else meant(last, RELEASES)
    return "" if found is None else f", or write out the mechanism, '{found}(...)'"


def _parsed(content: bytes) -> dict[str, Any]:
    """Return the contents of a TOML text."""
    if not content.strip():
        raise PlanFileError("this file is empty; hockeystick init writes one to begin with")
    if _A_PAGE.match(content):
        raise PlanFileError("this is a page, no plan file: hockeystick verify judges a report")
    if len(content) > MOST_BYTES:
        raise PlanFileError("a plan file must be at most 1 MB long; this is longer")
    text = ""
    try:
        text = content.decode("utf-8-sig")
        document = tomllib.loads(text, parse_float=parse_real)
        return dict(computed_in(document, but=TOP_KEYS[:3]))
    except UnicodeDecodeError as error:
        raise PlanFileError(encoding_error(content, error)) from None
    except tomllib.TOMLDecodeError as error:
        raise PlanFileError(syntax_error(text, error)) from None
    except ValueError:
        raise PlanFileError("the file holds a number of too many digits") from None
    except RecursionError:
        raise PlanFileError("the file is nested too deeply") from None


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
    for check in _TOP_CHECKS:
        check(document)
    return PlanFile(
        plan=_plan(document, overrides, blanks),
        title=text_at(document, "title"),
        source=text_at(document, "source"),
        notes=text_at(document, "notes"),
        delta=_question(document, "delta"),
        epsilon=_question(document, "epsilon"),
    )


def _refuse_tables(document: Mapping[str, Any]) -> None:
    """Raise for a table that a plan file cannot have."""
    for name, table in document.items():
        if name in _TOP_LEVEL or not is_table(table):
            continue
        if name == "grid":
            raise placed("this is a grid file: hockeystick sweep", TOP_LEVEL, name)
        hint = _one_level_up(name) or hint_of(name, table)
        is_array = isinstance(table, list)
        said = f"unknown table {f'[[{name}]]' if is_array else f'[{name}]'}{hint}"
        place = (f"[[{name}]] number 1", HEADER) if is_array else (TOP_LEVEL, name)
        raise placed(f"{said}; allowed are [dpsgd] and [[release]]", *place)


def _one_level_up(name: str) -> str:
    """Return where a table belongs that describes part of a mechanism; nothing if it is none."""
    if name not in PARTS:
        return ""
    key = "kind" if name in KINDS else "mechanism"
    within = "dpsgd" if name in parameters_of(DPSGD) else "release"
    return f" (write [{within}.{name}] with {key} = ...)"


def _refuse_keys(document: Mapping[str, Any]) -> None:
    """Raise for the keys of the top level that a plan file cannot have, tables aside."""
    keys = {key: one for key, one in document.items() if not is_table(one)}
    refuse_unknown(TOP_LEVEL, keys, _TOP_LEVEL)


def _refuse_release(document: Mapping[str, Any]) -> None:
    """Raise where the releases are no array of tables."""
    given = document.get("release", [])
    if not isinstance(given, list):
        raise placed(said_of_release(given), TOP_LEVEL, "release")


_TOP_CHECKS: Final = (_refuse_tables, _refuse_keys)


def _set_by_path(document: Mapping[str, Any], overrides: Mapping[str, object]) -> str:
    """Return how the first of the numbers that a [[release]] has is set; nothing if none has."""
    releases = document.get("release")
    for index, table in enumerate(releases if isinstance(releases, list) else ()):
        for name in overrides:
            if isinstance(table, dict) and name in table:
                path = f"release[{index}].{name}"
                return f"; a [[release]] has it: --set '{path}={overrides[name]}'"
    return ""


def _plan(
    document: Mapping[str, Any], overrides: Mapping[str, object], blanks: Blanks | None
) -> Mechanism:
    """Return the composition of all that a document describes."""
    parts = []
    if "dpsgd" in document:
        parts.append(_dpsgd(document["dpsgd"], overrides, blanks))
    elif overrides:
        flags = ", ".join(overrides)
        how = _set_by_path(document, overrides)
        raise PlanFileError(f"there is no table [dpsgd] in which to override {flags}{how}")
    _refuse_release(document)
    for index, table in enumerate(document.get("release", []), 1):
        parts.append(_release(table, f"[[release]] number {index}", blanks))
    if not parts:
        raise PlanFileError("a plan file needs a table [dpsgd], or [[release]] at least once")
    try:
        return parts[0] if len(parts) == 1 else Composed(parts)
    except IncompatibleError as error:
        raise PlanFileError(str(error)) from None


def _dpsgd(table: object, overrides: Mapping[str, object], blanks: Blanks | None) -> Mechanism:
    """Return the plan of a table [dpsgd]."""
    if not isinstance(table, dict):
        raise placed("dpsgd must be a table: write [dpsgd]", TOP_LEVEL, "dpsgd")
    dropped = {ALTERNATIVES.get(name) for name in overrides}
    kept = {name: value for name, value in table.items() if name not in dropped}
    described = {
        key: _field(key, value, f"[dpsgd].{key}", blanks, 0) for key, value in kept.items()
    }
    return built(DPSGD, {**described, **overrides}, "[dpsgd]", overrides, blanks=blanks)


def _release(table: object, where: str, blanks: Blanks | None) -> Mechanism:
    """Return the mechanism of a table [[release]], repeated as it says."""
    if not isinstance(table, dict):
        raise placed(said_of_release(table), TOP_LEVEL, "release")
    repeat = table.get("repeat", 1)
    rest = {key: value for key, value in table.items() if key != "repeat"}
    mechanism = _mechanism(rest, where, blanks, extra=("repeat",))
    try:
        count = _validate.count("repeat", repeat, _validate.PARAMETERS["count"])
        return mechanism if "repeat" not in table else mechanism**count
    except ParameterError as error:
        raise placed(f"{where}: {spelled(error)}", where, "repeat") from None


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
    fields = {
        key: _field(key, value, f"{where}, {key}", blanks, depth)
        for key, value in table.items()
        if key != "mechanism"
    }
    kind, extra = RELEASES[name], ("mechanism", *extra)
    return built(kind, fields, f"{where} ({name})", extra=extra, blanks=blanks)


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
        raise placed(f"{where} needs {key}, one of {listed}", where, HEADER)
    name = table[key]
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(name, known) if isinstance(name, str) else ""
        told = f"{key} must be one of {listed}; got {name!r}"
        raise placed(f"{where}: {f'unknown {key} {name!r}{hint}' if hint else told}", where, key)
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
        raise placed(str(spelled(wrong)), TOP_LEVEL, key)
    return value


def _question(document: Mapping[str, Any], key: str) -> float | None:
    """Return the delta or epsilon to ask at, or raise."""
    try:
        return _validate.real(key, document[key]) if key in document else None
    except ParameterError as error:
        raise placed(str(spelled(error)), TOP_LEVEL, key) from None
