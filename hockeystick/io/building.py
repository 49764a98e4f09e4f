"""Objects made of the fields that files and calls give; errors are in the words of these."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Final, TypeVar

from hockeystick._suggest import hint
from hockeystick.errors import (
    HockeystickError,
    IncompatibleError,
    ParameterError,
)
from hockeystick.io.blanks import Blanks, starts
from hockeystick.io.places import HEADER, TOP_LEVEL, placed, spelled
from hockeystick.io.vocabulary import ENCODERS, GRAPHS, RUN_COUNTS, SCHEDULES, TOP_KEYS
from hockeystick.mechanisms import DPSGD
from hockeystick.mechanisms.base import A_MECHANISM
from hockeystick.mechanisms.decentralised.graphs import A_GRAPH
from hockeystick.mechanisms.federated.prifedsync import A_CLIENT
from hockeystick.mechanisms.selection.tuning import A_DISTRIBUTION
from hockeystick.mechanisms.training.dpsgd import AN_EXTRA
from hockeystick.mechanisms.training.schedules import A_SCHEDULE

_Built = TypeVar("_Built")
# So many unknown keys of one table are named.
_LISTED: Final = 5
# Which mechanism an inner one is that has this key.
_OF_INNER: Final = {"noise_multiplier": "Gaussian", "scale": "Laplace"}
_AT_RELEASE: Final = re.compile(r"\[\[release\]\] number \d+ \(\w+\)")


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
    kind = make.__qualname__
    refuse_unknown(where, fields, (*extra, *parameters_of(make)), dialect, kind=kind)
    required = required_by(make)
    if blanks is not None:
        fields = blanks.filled(make, fields, required)
    missing = [name for name in required if name not in fields]
    if missing:
        wrong = _wrong_already(make, fields, missing)
        if wrong is not None:
            raise placed(f"{where}: {_written(wrong, dialect)}", where, _key_of(wrong))
        raise placed(f"{where} needs {_needed(make, fields, missing, dialect)}", where, HEADER)
    try:
        return make(**fields)
    except ParameterError as error:
        if not set(error.name.split(", ")).isdisjoint(overrides):
            raise
        raise placed(f"{where}: {_written(error, dialect)}", where, _key_of(error)) from None
    except IncompatibleError as error:
        told = [key for key in fields if re.search(rf"\b{re.escape(key)}\b", str(error))]
        raise placed(f"{where}: {error}", where, ", ".join(told)) from None


def refuse_unknown(
    where: str,
    table: Mapping[str, object],
    allowed: tuple[str, ...],
    dialect: Dialect = FILE,
    *,
    kind: str = "",
) -> None:
    """Raise for the keys that are not allowed, of a class or of what has no name."""
    unknown = [key for key in table if key not in allowed]
    if not unknown:
        return
    hints = [_hint(where, key, table, allowed, dialect, kind) for key in unknown[:_LISTED]]
    named = [repr(key) for key in unknown[:_LISTED]]
    # What is said of two together is said once.
    hints = [hint if hint not in hints[:place] else "" for place, hint in enumerate(hints)]
    pairs = list(zip(named, hints, strict=True))
    listed = f"; allowed are {', '.join(allowed)}"
    each = [
        placed(f"unknown {dialect.field} {name} in {where}{hint}{listed}", where, key)
        for key, (name, hint) in zip(unknown, pairs, strict=False)
    ]
    if len(unknown) == 1:
        raise each[0]
    more = [f"and {len(unknown) - _LISTED} more"] if len(unknown) > _LISTED else []
    every = ", ".join([*(name + hint for name, hint in pairs), *more])
    said = f"unknown {dialect.field}s {every} in {where}{listed}"
    raise placed(said, where, ", ".join(unknown[:_LISTED]), each)


def _hint(
    where: str,
    key: str,
    table: Mapping[str, object],
    allowed: tuple[str, ...],
    dialect: Dialect,
    kind: str,
) -> str:
    """Return what is meant by a key that is not allowed, or where it belongs."""
    if dialect is FILE and where == TOP_LEVEL and key in parameters_of(DPSGD):
        return " (it belongs below [dpsgd])"
    plain = key.lower()
    if where == "[dpsgd]" and key == "release" and isinstance(table[key], dict | tuple):
        header = "[dpsgd.release]" if isinstance(table[key], dict) else "[[dpsgd.release]]"
        return f" (write [[release]] in place of {header})"
    if dialect is FILE and where != TOP_LEVEL and plain in TOP_KEYS and plain not in allowed:
        return " (it belongs at the top of the file, above all tables)"
    lacks_inner = "inner" in allowed and "inner" not in table
    if dialect is FILE and lacks_inner and key in _OF_INNER and _AT_RELEASE.fullmatch(where):
        inner = f'[release.inner], with mechanism = "{_OF_INNER[key]}"'
        return f" (inner is missing: it belongs below {inner})"
    return hint(key, [one for one in allowed if one not in table])


def _key_of(error: ParameterError) -> str:
    """Return the key that an error is about; the header of its table where that lacks it."""
    return HEADER if error.value is None else re.sub(r"\[\d+\]", "", error.name)


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
