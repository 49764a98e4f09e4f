"""Objects made of the fields that files and calls give; errors are in the words of these."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Final, TypeVar

from hockeystick._suggest import hint
from hockeystick.errors import HockeystickError, IncompatibleError, ParameterError, PlanFileError
from hockeystick.io.blanks import Blanks, starts
from hockeystick.io.vocabulary import ENCODERS, GRAPHS, RUN_COUNTS, SCHEDULES, TOP_KEYS
from hockeystick.mechanisms import DPSGD
from hockeystick.mechanisms.base import A_MECHANISM
from hockeystick.mechanisms.decentralised.graphs import A_GRAPH
from hockeystick.mechanisms.federated.prifedsync import A_CLIENT
from hockeystick.mechanisms.selection.tuning import A_DISTRIBUTION
from hockeystick.mechanisms.training.dpsgd import AN_EXTRA
from hockeystick.mechanisms.training.schedules import A_SCHEDULE

_Built = TypeVar("_Built")
TOP_LEVEL: Final = "the top level"
# So many unknown keys of one table are named.
_LISTED: Final = 5


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a way of writing plans speaks of them.

    Args:
        field: What it calls a field.
        written: How it writes what Python takes.
    """

    field: str
    written: Mapping[str, str]


FILE: Final = Dialect(
    field="key",
    written={
        A_MECHANISM: (
            "a table that names its mechanism, such as "
            '{mechanism = "Gaussian", noise_multiplier = 2}'
        ),
        "one or more mechanisms, in a tuple": "an array of tables that name their mechanisms",
        "an Encoder": f"a table that names its kind, one of {', '.join(ENCODERS)}",
        A_GRAPH: f"a table that names its kind, one of {', '.join(GRAPHS)}",
        AN_EXTRA: "a table that names its mechanism, or an array of such tables",
        A_CLIENT: "a table whose mechanism is LocalTraining, or an array of such tables",
        A_DISTRIBUTION: f"a table that names its kind, one of {', '.join(RUN_COUNTS)}",
        A_SCHEDULE: f"a table that names its kind, one of {', '.join(SCHEDULES)}",
        "True or False": "true or false",
    },
)
CALL: Final = Dialect(
    field="parameter",
    written={
        A_MECHANISM: "a mechanism such as Gaussian(4)",
        "an Encoder": "an Encoder, as encoder=Encoder.square_root(99) or encoder=Encoder.tree(99)",
    },
)


def parameters_of(make: Callable[..., object]) -> dict[str, Parameter]:
    """Return what can be given for an object: where it came from is not of it."""
    return {name: one for name, one in signature(make).parameters.items() if name != "origin"}


def required_by(make: Callable[..., object]) -> list[str]:
    """Return what must be given for an object."""
    found = parameters_of(make).items()
    return [name for name, one in found if one.default is Parameter.empty]


def built(
    make: Callable[..., _Built],
    fields: Mapping[str, object],
    where: str,
    overrides: Iterable[str] = (),
    *,
    extra: tuple[str, ...] = (),
    dialect: Dialect = FILE,
    blanks: Blanks | None = None,
) -> _Built:
    """Return what is made of these fields; say where the plan is wrong if it is."""
    refuse_unknown(where, fields, (*extra, *parameters_of(make)), dialect)
    required = required_by(make)
    if blanks is not None:
        fields = blanks.filled(make, fields, required)
    missing = [name for name in required if name not in fields]
    if missing:
        wrong = _wrong_already(make, fields, missing)
        if wrong is not None:
            raise PlanFileError(f"{where}: {_written(wrong, dialect)}")
        raise PlanFileError(f"{where} needs {_needed(make, fields, missing, dialect)}")
    try:
        return make(**fields)
    except ParameterError as error:
        if not set(error.name.split(", ")).isdisjoint(overrides):
            raise
        raise PlanFileError(f"{where}: {_written(error, dialect)}") from None
    except IncompatibleError as error:
        raise PlanFileError(f"{where}: {error}") from None


def refuse_unknown(
    where: str, table: Mapping[str, object], allowed: tuple[str, ...], dialect: Dialect = FILE
) -> None:
    """Raise for the keys that are not allowed."""
    unknown = [key for key in table if key not in allowed]
    if not unknown:
        return
    hints = [_hint(where, key, table, allowed, dialect) for key in unknown[:_LISTED]]
    every = ", ".join(f"{key!r}{near}" for key, near in zip(unknown, hints, strict=False))
    more = f", and {len(unknown) - _LISTED} more" if len(unknown) > _LISTED else ""
    named = f"{dialect.field}{'s' if len(unknown) > 1 else ''} {every}{more}"
    raise PlanFileError(f"unknown {named} in {where}; allowed are {', '.join(allowed)}")


def _hint(
    where: str, key: str, table: Mapping[str, object], allowed: tuple[str, ...], dialect: Dialect
) -> str:
    """Return what is meant by a key that is not allowed, or where it belongs."""
    if dialect is FILE and where == TOP_LEVEL and key in parameters_of(DPSGD):
        return " (it belongs below [dpsgd])"
    if dialect is FILE and where != TOP_LEVEL and key.lower() in TOP_KEYS and key not in allowed:
        return " (it belongs at the top of the file, above all tables)"
    return hint(key, [one for one in allowed if one not in table])


def _wrong_already(
    make: Callable[..., object], fields: Mapping[str, object], missing: list[str]
) -> ParameterError | None:
    """Return what is wrong with what is given, whatever the one missing number may be."""
    if len(missing) > 1:
        return None
    found: dict[str, ParameterError] = {}
    for start in starts(make, missing[0]):
        try:
            make(**fields, **{missing[0]: start})
        except ParameterError as error:
            if missing[0] not in error.name.split(", "):
                found[str(error)] = error
        except (HockeystickError, TypeError):
            return None
        else:
            return None
    return next(iter(found.values())) if len(found) == 1 else None


def _needed(
    make: Callable[..., object], fields: Mapping[str, object], missing: list[str], dialect: Dialect
) -> str:
    """Return one of the missing parameters, and what it may be: that is what NaN never is."""
    try:
        make(**fields, **dict.fromkeys(missing, math.nan))
    except ParameterError as error:
        if error.name in missing:
            return f"{error.name}, {dialect.written.get(error.allowed, error.allowed)}"
    except HockeystickError:
        pass
    return missing[0]


def _written(error: ParameterError, dialect: Dialect) -> str:
    """Return an error in the words of a dialect."""
    allowed = dialect.written.get(error.allowed, error.allowed)
    if dialect is FILE:
        return str(spelled(error, allowed))
    return str(ParameterError(error.name, error.value, allowed))


class _Spelled:
    """A value whose text is what TOML writes for it."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return in_toml(self._value)


def in_toml(value: object) -> str:
    """Return a value as TOML has it, as far as it is one of what Python writes in another way."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {in_toml(one)}' for key, one in value.items())}}}"
    return repr(value)


def spelled(error: ParameterError, allowed: str | None = None) -> ParameterError:
    """Return an error whose value is spelled as files have it."""
    value = error.value
    if isinstance(value, bool | dt.date | dt.time | list | tuple | Mapping):
        value = _Spelled(value)
    return ParameterError(error.name, value, error.allowed if allowed is None else allowed)
