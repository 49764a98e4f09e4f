"""Plan files: TOML in, a checked plan out, and back; an error names a key by its path."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final, final

from hockeystick import _validate
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.io.call_text import computed_in, parse_real
from hockeystick.io.vocabulary import (
    KINDS,
    RELEASES,
    STRATEGIES,
    TOP_KEYS,
    Blanks,
    built,
    maker,
    parameters_of,
    refuse_overrides,
    refuse_unknown,
    training,
)
from hockeystick.mechanisms import DPSGD, Composed, Encoder, Graph, Mechanism, Repeated
from hockeystick.mechanisms.base import checked

MOST_BYTES: Final = 1_000_000
TABLES: Final = ("dpsgd", "release")
_DEEPEST: Final = 16
_LONG: Final = 1000


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
    that is itself a mechanism is a table of the same form; encoders, schedules, graphs and
    distributions of runs are tables that have a ``kind``. All of them together are the plan.

    Edge cases:
        An override of one of a pair of alternatives, such as ``rate``, also drops the other one,
        ``batch_size``, from the file's table.

    Args:
        path: The file.
        overrides: Fields that replace those of the table ``[dpsgd]``.

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
    if not content.strip():
        raise PlanFileError("this file is empty; hockeystick init writes one to begin with")
    if len(content) > MOST_BYTES:
        raise PlanFileError("a plan file must be at most 1 MB long; this is longer")
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            return _document_of_json(text)
        return dict(computed_in(tomllib.loads(text, parse_float=parse_real)))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PlanFileError(f"a plan file must be UTF-8 text; line {line} is not") from None
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        kind = "JSON" if isinstance(error, json.JSONDecodeError) else "TOML"
        raise PlanFileError(f"a plan file must be valid {kind}: {error}") from None
    except ValueError:
        raise PlanFileError("the file holds a number of too many digits") from None
    except RecursionError:
        raise PlanFileError("the file is nested too deeply") from None


def _document_of_json(text: str) -> dict[str, Any]:
    """Return the tables that JSON stands for.

    An answer stands for the plan that it is of, asked where it was; a solution for the plan with
    the value that was found; a description for its plan.
    """
    document = json.loads(text, parse_float=parse_real, object_pairs_hook=_once)
    if "description" not in document and "type" not in document:
        return dict(computed_in(document))
    from hockeystick.io.descriptions import read_description

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
    except HockeystickError as error:
        raise PlanFileError(str(error)) from None
    # Of a solution, the delta of its target.
    at = document.get("at") or {"delta": (document.get("budget") or {}).get("delta")}
    about = {key: document.get(key) for key in TOP_KEYS[:3]}
    for key in TOP_KEYS[3:]:
        about[key] = parse_real(at[key]) if isinstance(at.get(key), str) else at.get(key)
    return {**about, **tables_of(plan)}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are there once, or raise."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise PlanFileError(f"{key!r} is there twice")
        found[key] = value
    return found


def plan_file_of(
    document: Mapping[str, Any],
    overrides: Mapping[str, object],
    blanks: Blanks | None = None,
    problems: list[PlanFileError] | None = None,
) -> PlanFile:
    """Return the plan that a document describes; or raise, with what is wrong with each table."""
    releases = document.get("release", [])
    readers: list[Callable[[], Any]] = [
        partial(refuse_unknown, "", document, (*TOP_KEYS, *TABLES)),
        partial(_about, document),
    ]
    if "dpsgd" in document:
        readers.append(partial(_dpsgd, document["dpsgd"], overrides, blanks))
    for index, table in enumerate(releases if isinstance(releases, list) else [None]):
        readers.append(partial(_release, table, f"release[{index}]", blanks))
    found: list[Any] = []
    for read in readers:
        try:
            found.append(read())
        except PlanFileError as error:
            if problems is None:
                raise
            problems.append(error)
    if problems:
        raise problems[0]
    _, about, *parts = found
    if not parts:
        raise PlanFileError("a plan file needs a table [dpsgd], or [[release]] at least once")
    try:
        plan = parts[0] if len(parts) == 1 else Composed(parts)
    except HockeystickError as error:
        raise PlanFileError(str(error)) from None
    if "dpsgd" not in document:
        refuse_overrides(plan, overrides)
    return PlanFile(plan=plan, **about)


def problems_in(content: bytes) -> list[str]:
    """Return what is wrong first with the top and with each table of a plan file."""
    problems: list[PlanFileError] = []
    try:
        plan_file_of(document_of(content), {}, problems=problems)
    except PlanFileError as error:
        problems = problems or [error]
    return list(map(str, problems))


def _about(document: Mapping[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = {key: text_at(document, key) for key in TOP_KEYS[:3]}
    given = {key: document.get(key) for key in TOP_KEYS[3:]}
    try:
        numbers = {
            key: one if one is None else _validate.real(key, one) for key, one in given.items()
        }
    except ParameterError as error:
        raise PlanFileError(str(error)) from None
    return {**about, **numbers}


def text_at(document: Mapping[str, Any], key: str) -> str | None:
    """Return a text of the top level, or raise."""
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise PlanFileError(str(ParameterError(key, value, "a text in quotes")))
    return value


def _dpsgd(table: object, overrides: Mapping[str, object], blanks: Blanks | None) -> Mechanism:
    if not isinstance(table, dict):
        raise PlanFileError("dpsgd must be a table: write [dpsgd]")
    fields = {key: _value(key, one, f"dpsgd.{key}", blanks) for key, one in table.items()}
    return training(fields, overrides, "dpsgd", blanks)


def _release(table: object, where: str, blanks: Blanks | None) -> Mechanism:
    """Return the mechanism of a table [[release]], repeated as it says."""
    if not isinstance(table, dict):
        raise PlanFileError("release must be an array of tables: write [[release]]")
    rest = {key: value for key, value in table.items() if key != "repeat"}
    mechanism: Mechanism = _value("", rest, where, blanks)
    try:
        return mechanism ** table["repeat"] if "repeat" in table else mechanism
    except ParameterError as error:
        count = ParameterError(f"{where}.repeat", error.value, error.allowed)
        raise PlanFileError(str(count)) from None


def _value(key: str, value: Any, where: str, blanks: Blanks | None, depth: int = 0) -> Any:
    """Return a field's value, with the tables that describe something made into it."""
    if depth > _DEEPEST:
        raise PlanFileError(f"{where}: mechanisms may be nested at most {_DEEPEST} deep")
    if isinstance(value, list):
        listed = enumerate(value)
        return tuple(_value("", one, f"{where}[{i}]", blanks, depth) for i, one in listed)
    tag, known = ("kind", KINDS[key]) if key in KINDS else ("mechanism", RELEASES)
    if not isinstance(value, dict) and (key not in KINDS or value is None):
        return value
    if not isinstance(value, dict) or tag not in value:
        allowed = f"a table whose {tag} is one of {', '.join(known)}"
        raise PlanFileError(str(ParameterError(where, value, allowed)))
    make = maker(value[tag], known, f"{where}.{tag}")
    given = {name: one for name, one in value.items() if name != tag}
    # Before what is inside of them is asked for.
    refuse_unknown(where, given, parameters_of(make))
    made = {
        name: _value(name, one, f"{where}.{name}", blanks, depth + 1) for name, one in given.items()
    }
    return built(make, made, where, blanks=blanks)


def save_plan(plan: Mechanism | PlanFile, path: str | os.PathLike[str]) -> None:
    """Write a plan as a file that ``load_plan`` reads.

    Guarantees:
        ``load_plan(path).plan`` equals the plan.

    Edge cases:
        A file that exists is replaced. What no file can hold is refused: trade-off functions, and
        encoders made from a whole matrix, of which they keep the sensitivity alone.

    Args:
        plan: A mechanism or plan; or a ``hockeystick.io.PlanFile``, which besides has a title,
            notes, and the delta or epsilon at which to ask.
        path: Where to write it. JSON is written and read by ``hockeystick.calibration.describe``
            and ``read_description``, which keep the plan alone.

    Raises:
        ParameterError: If it is no plan.
        PlanFileError: If a file cannot hold it, or cannot be written.

    Example:
        >>> import hockeystick as hs
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=2.0)
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder) / "plan.toml"
        ...     hs.save_plan(hs.io.PlanFile(plan=plan, delta=1e-5), file)
        ...     print(file.read_text().strip())
        ...     again = hs.load_plan(file)
        delta = 1e-05
        <BLANKLINE>
        [dpsgd]
        noise_multiplier = 2.0
        rate = 0.01
        steps = 1000
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
    about = {name: getattr(file, name) for name in TOP_KEYS}
    known = {name: value for name, value in about.items() if value is not None}
    text = tomli_w.dumps({**known, **tables_of(file.plan)})
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PlanFileError(f"no file can hold the text {error.object[error.start]!r}") from None
    return text


def tables_of(plan: Mechanism) -> dict[str, Any]:
    """Return the tables of a plan: ``[dpsgd]`` where that comes first, and releases."""
    parts = plan.parts if isinstance(plan, Composed) else (plan,)
    training = {"dpsgd": _fields(parts[0])} if isinstance(parts[0], DPSGD) else {}
    releases = [
        {**_written("", part.inner), "repeat": part.count}
        if isinstance(part, Repeated)
        else _written("", part)
        for part in parts[len(training) :]
    ]
    return {**training, **({"release": releases} if releases else {})}


def _written(key: str, value: Any) -> Any:
    match value:
        case str():
            return str(value)
        case Fraction():
            # Of decimals, Python reads a few thousand digits.
            form = "#x" if len(f"{value.numerator * value.denominator:x}") > _LONG else "d"
            return f"Fraction({value.numerator:{form}}, {value.denominator:{form}})"
        case frozenset():
            return sorted(value)
        case tuple() | list():
            return [_written(key, one) for one in value]
        case Graph():
            whole = {"kind": "complete", "parties": value.parties}
            listed = {"kind": "edges", "parties": value.parties, "edges": value.pairs.tolist()}
            return whole if value.whole else listed
        case Encoder():
            return _encoder(value)
        case Mechanism():
            return {"mechanism": _name_of(key, value, RELEASES), **_fields(value)}
        case _ if is_dataclass(value):
            return {"kind": _name_of(key, value, KINDS.get(key, {})), **_fields(value)}
        case _:
            return value


def _fields(value: Any) -> dict[str, Any]:
    """Return what a description is made of, leaving out what a file has by default."""
    taken = parameters_of(type(value))
    found = {one.name: getattr(value, one.name) for one in fields(value) if one.name in taken}
    return {
        name: _written(name, part)
        for name, part in found.items()
        if part is not None and part != taken[name].default
    }


def _encoder(encoder: Encoder) -> dict[str, Any]:
    strategy, kind, own = encoder.strategy, encoder.words, {}
    if strategy is not None:
        kind, own = _name_of("encoder", strategy, STRATEGIES), _fields(strategy)
    elif kind != "tree":
        raise PlanFileError("encoder: no file can hold one made from a matrix; use Python")
    pattern = {"participations": encoder.participations, "separation": encoder.separation}
    often = {name: value for name, value in pattern.items() if value != 1}
    return {"kind": kind, **own, "rounds": encoder.rounds, **often}


def _name_of(key: str, value: object, known: Mapping[str, object]) -> str:
    for name, make in known.items():
        if make is type(value):
            return name
    kind = type(value).__name__
    raise PlanFileError(f"{key}{': ' if key else ''}no file can hold a {kind}; use Python")
