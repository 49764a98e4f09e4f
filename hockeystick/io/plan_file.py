"""Plan files: TOML in, a checked plan out."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Final, TypeVar, final

from hockeystick import _validate
from hockeystick.errors import (
    HockeystickError,
    IncompatibleError,
    ParameterError,
    PlanFileError,
)
from hockeystick.io.guesses import did_you_mean, with_guess
from hockeystick.io.numbers import parse_real
from hockeystick.mechanisms import (
    DPSGD,
    MECHANISMS,
    BandedInverse,
    BufferedToeplitz,
    Composed,
    Encoder,
    Graph,
    Mechanism,
    SquareRoot,
    Toeplitz,
    schedules,
    tuning,
)
from hockeystick.mechanisms.base import A_MECHANISM, READ_FROM_A_FILE
from hockeystick.mechanisms.decentralised.graphs import A_GRAPH
from hockeystick.mechanisms.federated.prifedsync import A_CLIENT
from hockeystick.mechanisms.selection.tuning import A_DISTRIBUTION, RunCount
from hockeystick.mechanisms.streams.strategies import Strategy
from hockeystick.mechanisms.training.dpsgd import AN_EXTRA
from hockeystick.mechanisms.training.schedules import A_SCHEDULE, Schedule
from hockeystick.notions import NOTIONS

_MOST_BYTES: Final = 1_000_000
_DEEPEST: Final = 16
_TOP_LEVEL: Final = ("title", "source", "notes", "delta", "epsilon", "dpsgd", "release")
_IN_PYTHON_ONLY: Final = "FDP"
# What a file can describe: a trade-off function is no text.
RELEASES: Final[Mapping[str, type[Mechanism]]] = {
    name: kind for name, kind in {**MECHANISMS, **NOTIONS}.items() if name != _IN_PYTHON_ONLY
}
_ENCODERS: Final[Mapping[str, Callable[..., Encoder]]] = {
    "banded_inverse": Encoder.banded_inverse,
    "buffered_toeplitz": Encoder.buffered_toeplitz,
    "matrix": Encoder.of_matrix,
    "square_root": Encoder.square_root,
    "toeplitz": Encoder.toeplitz,
}
STRATEGIES: Final[Mapping[str, type[Strategy]]] = {
    "banded_inverse": BandedInverse,
    "buffered_toeplitz": BufferedToeplitz,
    "square_root": SquareRoot,
    "toeplitz": Toeplitz,
}
_GRAPHS: Final[Mapping[str, Callable[..., Graph]]] = {
    "complete": Graph.complete,
    "cycle": Graph.cycle,
    "edges": Graph,
    "path": Graph.path,
    "random-out": Graph.random_out,
}
SCHEDULES: Final[Mapping[str, type[Schedule]]] = {
    "constant": schedules.Constant,
    "cyclic": schedules.Cyclic,
    "exponential": schedules.Exponential,
    "linear": schedules.Linear,
    "piecewise": schedules.Piecewise,
    "staircase": schedules.Staircase,
    "values": schedules.Values,
}
RUN_COUNTS: Final[Mapping[str, type[RunCount]]] = {
    "poisson": tuning.Poisson,
    "truncated-negative-binomial": tuning.TruncatedNegativeBinomial,
}
# Fields that are tables of a kind, and the kinds that there are.
KINDS: Final[Mapping[str, Mapping[str, Callable[..., object]]]] = {
    "batch_schedule": SCHEDULES,
    "distribution": RUN_COUNTS,
    "encoder": _ENCODERS,
    "graph": _GRAPHS,
    "schedule": SCHEDULES,
}
# What Python takes, and how a file writes it.
_WRITTEN: Final[Mapping[str, str]] = {
    A_MECHANISM: "a table that names its mechanism",
    "one or more mechanisms, in a tuple": "an array of tables that name their mechanisms",
    "an Encoder": f"a table that names its kind, one of {', '.join(_ENCODERS)}",
    A_GRAPH: f"a table that names its kind, one of {', '.join(_GRAPHS)}",
    AN_EXTRA: "a table that names its mechanism, or an array of such tables",
    A_CLIENT: "a table whose mechanism is LocalTraining, or an array of such tables",
    A_DISTRIBUTION: f"a table that names its kind, one of {', '.join(RUN_COUNTS)}",
    A_SCHEDULE: f"a table that names its kind, one of {', '.join(SCHEDULES)}",
}
# Of a DPSGD, one of each pair is given: to set one is to take the other away.
ALTERNATIVES: Final = {
    "batch_size": "rate",
    "rate": "batch_size",
    "epochs": "steps",
    "steps": "epochs",
}
_Made = TypeVar("_Made")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan, with what its file says about it.

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
    ``kind`` ("matrix", "square_root", "toeplitz", "banded_inverse" or "buffered_toeplitz") and what
    the function of that name takes, and so are a schedule ("exponential", "piecewise", ...) and a
    distribution of runs ("poisson", "truncated-negative-binomial"). All of them together are the
    plan.

    Edge cases:
        An override of one of a pair of alternatives, such as ``rate``, also drops the other one,
        ``batch_size``, from the file's table.

    Args:
        path: The file.
        overrides: Fields that replace those of the table ``[dpsgd]``.

    Returns:
        The plan, with what the file says about it.

    Raises:
        PlanFileError: If the file cannot be read or does not describe a plan.
        ParameterError: If an override is outside its domain.

    Example:
        >>> from hockeystick.io import load_plan
        >>> print(load_plan("examples/abadi-2016-mnist.toml").plan)
        DP-SGD (poisson sampling, noise multiplier 4, rate 0.01, 10000 steps, add-remove)
    """
    name = os.fspath(path)
    try:
        return plan_file_of(document_of(name), overrides or {})
    except PlanFileError as error:
        raise PlanFileError(f"{shown(name)}: {error}") from None


def shown(name: str) -> str:
    """Return the name of a file so that it can be seen, though it be blank."""
    return name if name.strip() else repr(name)


def document_of(name: str) -> dict[str, Any]:
    """Return the contents of a TOML file."""
    try:
        with open(name, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise PlanFileError("no such file; give the path of a plan file") from None
    except IsADirectoryError:
        raise PlanFileError("this is a directory; give the path of a plan file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PlanFileError(f"the file cannot be read: {reason}") from None
    if len(content) > _MOST_BYTES:
        raise PlanFileError(f"a plan file must be at most {_MOST_BYTES} bytes long; this is longer")
    return _parsed(content)


def _parsed(content: bytes) -> dict[str, Any]:
    """Return the contents of a TOML text."""
    try:
        return tomllib.loads(content.decode("utf-8-sig"), parse_float=parse_real)
    except UnicodeDecodeError as error:
        raise PlanFileError(f"a plan file must be UTF-8 text; byte {error.start} is not") from None
    except tomllib.TOMLDecodeError as error:
        raise PlanFileError(f"a plan file must be valid TOML: {error}") from None
    except ValueError:
        raise PlanFileError("the file holds a number of too many digits") from None
    except RecursionError:
        raise PlanFileError("the file is nested too deeply") from None


def plan_file_of(document: Mapping[str, Any], overrides: Mapping[str, object]) -> PlanFile:
    """Return the plan that a document describes."""
    refuse_unknown("the top level", document, _TOP_LEVEL)
    return PlanFile(
        plan=_plan(document, overrides),
        title=text_at(document, "title"),
        source=text_at(document, "source"),
        notes=text_at(document, "notes"),
        delta=_question(document, "delta"),
        epsilon=_question(document, "epsilon"),
    )


def _plan(document: Mapping[str, Any], overrides: Mapping[str, object]) -> Mechanism:
    """Return the composition of all that a document describes."""
    parts = []
    if "dpsgd" in document:
        parts.append(_dpsgd(document["dpsgd"], overrides))
    elif overrides:
        flags = ", ".join(overrides)
        raise PlanFileError(f"there is no table [dpsgd] in which to override {flags}")
    releases = document.get("release", [])
    if not isinstance(releases, list):
        raise PlanFileError("release must be an array of tables: write [[release]]")
    for index, table in enumerate(releases, 1):
        parts.append(_release(table, f"[[release]] number {index}"))
    if not parts:
        raise PlanFileError("a plan file needs a table [dpsgd], or [[release]] at least once")
    try:
        return parts[0] if len(parts) == 1 else Composed(parts)
    except IncompatibleError as error:
        raise PlanFileError(str(error)) from None


def _dpsgd(table: object, overrides: Mapping[str, object]) -> Mechanism:
    """Return the plan of a table [dpsgd]."""
    if not isinstance(table, dict):
        raise PlanFileError("dpsgd must be a table: write [dpsgd]")
    dropped = {ALTERNATIVES.get(name) for name in overrides}
    kept = {name: value for name, value in table.items() if name not in dropped}
    described = {key: _field(key, value, f"[dpsgd].{key}", 0) for key, value in kept.items()}
    return _made(DPSGD, {**described, **overrides}, "[dpsgd]", overrides)


def _release(table: object, where: str) -> Mechanism:
    """Return the mechanism of a table [[release]], repeated as it says."""
    if not isinstance(table, dict):
        raise PlanFileError("release must be an array of tables: write [[release]]")
    repeat = table.get("repeat", 1)
    rest = {key: value for key, value in table.items() if key != "repeat"}
    mechanism = _mechanism(rest, where, extra=("repeat",))
    try:
        count = _validate.count("repeat", repeat, _validate.PARAMETERS["count"])
        return mechanism if "repeat" not in table else mechanism**count
    except ParameterError as error:
        raise PlanFileError(f"{where}: {error}") from None


def _mechanism(
    table: Mapping[str, Any], where: str, *, extra: tuple[str, ...] = (), depth: int = 0
) -> Mechanism:
    """Return the mechanism that a table describes by name and fields."""
    if depth > _DEEPEST:
        raise PlanFileError(f"{where}: mechanisms may be nested at most {_DEEPEST} deep")
    if table.get("mechanism") == _IN_PYTHON_ONLY:
        raise PlanFileError(f"{where}: no file can hold a trade-off function; use Python for FDP")
    name = _named("mechanism", table, where, RELEASES)
    fields = {
        key: _field(key, value, f"{where}, {key}", depth)
        for key, value in table.items()
        if key != "mechanism"
    }
    return _made(RELEASES[name], fields, f"{where} ({name})", extra=("mechanism", *extra))


def _of_a_kind(key: str, table: Mapping[str, Any], where: str) -> object:
    """Return what a table describes by its kind and parameters: an encoder, a schedule."""
    kinds = KINDS[key]
    kind = _named("kind", table, where, kinds)
    fields = {name: value for name, value in table.items() if name != "kind"}
    return _made(kinds[kind], fields, f"{where} ({kind})", extra=("kind",))


def _named(key: str, table: Mapping[str, Any], where: str, known: Mapping[str, object]) -> str:
    """Return the name that a table has under a key, or raise if it is none of the known ones."""
    listed = ", ".join(known)
    if key not in table:
        raise PlanFileError(f"{where} needs {key}, one of {listed}")
    name = table[key]
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(name, known) if isinstance(name, str) else ""
        raise PlanFileError(f"{where}: {key} must be one of {listed}; got {name!r}{hint}")
    return name


def _field(key: str, value: object, where: str, depth: int) -> object:
    """Return a field's value, with the tables that describe something made into it."""
    if isinstance(value, dict) and key in KINDS:
        return _of_a_kind(key, value, where)
    if isinstance(value, dict) and "mechanism" in value:
        return _mechanism(value, where, depth=depth + 1)
    if isinstance(value, list):
        return tuple(_field("", item, f"{where}[{i}]", depth) for i, item in enumerate(value))
    return value


def _made(
    make: Callable[..., _Made],
    fields: Mapping[str, object],
    where: str,
    overrides: Iterable[str] = (),
    *,
    extra: tuple[str, ...] = (),
) -> _Made:
    """Return what is made of these fields; say where the file is wrong if it is."""
    parameters = {name: one for name, one in signature(make).parameters.items() if name != "origin"}
    refuse_unknown(where, fields, (*extra, *parameters))
    required = (name for name, one in parameters.items() if one.default is Parameter.empty)
    missing = [name for name in required if name not in fields]
    if missing:
        raise PlanFileError(f"{where} needs {_needed(make, fields, missing)}")
    try:
        return make(**fields)
    except ParameterError as error:
        if not set(error.name.split(", ")).isdisjoint(overrides):
            raise
        raise PlanFileError(f"{where}: {_written(error)}") from None
    except IncompatibleError as error:
        raise PlanFileError(f"{where}: {error}") from None


def _needed(make: Callable[..., object], fields: Mapping[str, object], missing: list[str]) -> str:
    """Return one of the missing parameters, and what it may be: that is what NaN never is."""
    try:
        make(**fields, **dict.fromkeys(missing, math.nan))
    except ParameterError as error:
        if error.name in missing:
            return f"{error.name}, {_WRITTEN.get(error.allowed, error.allowed)}"
    except HockeystickError:
        pass
    return missing[0]


def _written(error: ParameterError) -> str:
    """Return an error in the words of a file."""
    meant = error.allowed.removesuffix(READ_FROM_A_FILE)
    allowed = _WRITTEN.get(meant, meant)
    return with_guess(ParameterError(error.name, error.value, allowed))


def refuse_unknown(where: str, table: Mapping[str, object], allowed: tuple[str, ...]) -> None:
    """Raise for the first key that is not allowed."""
    for key in table:
        if key not in allowed:
            listed = ", ".join(allowed)
            hint = did_you_mean(key, allowed)
            raise PlanFileError(f"unknown key {key!r} in {where}{hint}; allowed are {listed}")


def text_at(document: Mapping[str, Any], key: str) -> str | None:
    """Return a text of the top level, or raise."""
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise PlanFileError(str(ParameterError(key, value, "a text in quotes")))
    return value


def _question(document: Mapping[str, Any], key: str) -> float | None:
    """Return the delta or epsilon to ask at, or raise."""
    try:
        return _validate.real(key, document[key]) if key in document else None
    except ParameterError as error:
        raise PlanFileError(str(error)) from None
