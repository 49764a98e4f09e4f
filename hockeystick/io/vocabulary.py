"""What can be described outside of Python: its names, and the numbers that a plan may leave out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from types import ModuleType
from typing import Any, Final, TypeAlias, TypeVar

from hockeystick._suggest import hint
from hockeystick._validate import PARAMETERS
from hockeystick.errors import HockeystickError, PlanFileError
from hockeystick.mechanisms import DPSGD, MECHANISMS, Encoder, Graph, Mechanism, schedules, tuning
from hockeystick.mechanisms.streams import strategies
from hockeystick.notions import NOTIONS

Maker: TypeAlias = Callable[..., Any]
_Known = TypeVar("_Known")


def _kinds(module: ModuleType, base: type, join: str = "-") -> dict[str, Maker]:
    """Return the classes of a module by their names in small letters, the words joined."""
    return {
        re.sub(r"\B(?=[A-Z])", join, name).lower(): kind
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, base) and kind is not base
    }


# What a text can describe: a trade-off function is none.
IN_PYTHON_ONLY: Final = "FDP"
RELEASES: Final[Mapping[str, type[Mechanism]]] = {
    name: kind for name, kind in {**MECHANISMS, **NOTIONS}.items() if name != IN_PYTHON_ONLY
}
STRATEGIES: Final = _kinds(strategies, strategies.Strategy, "_")
SCHEDULES: Final = _kinds(schedules, schedules.Schedule)
RUN_COUNTS: Final = _kinds(tuning, tuning.RunCount)
_ENCODERS: Final[Mapping[str, Maker]] = {
    "matrix": Encoder.of_matrix,
    "tree": Encoder.tree,
    **{name: getattr(Encoder, name) for name in STRATEGIES},
}
_GRAPHS: Final[Mapping[str, Maker]] = {
    "complete": Graph.complete,
    "cycle": Graph.cycle,
    "edges": Graph,
    "path": Graph.path,
    "random-out": Graph.random_out,
}
# Fields that are tables of a kind, and the kinds that there are.
KINDS: Final[Mapping[str, Mapping[str, Maker]]] = {
    "batch_schedule": SCHEDULES,
    "distribution": RUN_COUNTS,
    "encoder": _ENCODERS,
    "graph": _GRAPHS,
    "schedule": SCHEDULES,
}
# Of a DPSGD, one of each pair is given: to set one is to take the other away.
ALTERNATIVES: Final = {
    "batch_size": "rate",
    "rate": "batch_size",
    "epochs": "steps",
    "steps": "epochs",
}


def parameters_of(make: Maker) -> dict[str, Parameter]:
    """Return what can be given for an object: where it came from is not of it."""
    return {name: one for name, one in signature(make).parameters.items() if name != "origin"}


def required_by(make: Maker) -> list[str]:
    """Return what must be given for an object."""
    found = parameters_of(make).items()
    return [name for name, one in found if one.default is Parameter.empty]


def maker(name: object, known: Mapping[str, _Known], where: str) -> _Known:
    """Return what makes the objects of a name, or raise."""
    if isinstance(name, str) and name in known:
        return known[name]
    if name == IN_PYTHON_ONLY:
        raise PlanFileError(f"{where}: no text can hold a trade-off function; use Python for FDP")
    few = f"must be one of {', '.join(known)}"
    allowed = few if len(known) < len(RELEASES) else "hockeystick init --list has all"
    raise PlanFileError(f"unknown {where} {name!r:.80}{hint(name, known) or f'; {allowed}'}")


def refuse_unknown(where: str, table: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise for the first key that is not allowed."""
    names = list(allowed)
    for key in table:
        if key not in names:
            path = f"{where}.{key}" if where else key
            near = hint(key, [one for one in names if one not in table])
            raise PlanFileError(f"unknown key {path}{near}; allowed are {', '.join(names)}")


# Numbers to begin with, of a DPSGD (the likelier to be left out the earlier) and of others.
_STARTS: Final[Mapping[str, float]] = {
    "noise_multiplier": 1,
    "epochs": 1,
    "steps": 1000,
    "batch_size": 1,
    "rate": 0.01,
    "examples": 1_000_000,
}
_ANY: Final = (1.0625, 1, 2, 0.53125, 101, 0.010009765625, 1009, 1_000_003)


def start_for(make: Callable[..., Mechanism], fields: Mapping[str, Any], name: str) -> float:
    """Return the first number for a field with which a mechanism can be made; else the likeliest.

    What is wrong with the other fields is then said by making it.
    """
    starts: tuple[float, ...] = _ANY
    if make is DPSGD and name in _STARTS:
        starts = (_STARTS[name], *_ANY)
    elif name in PARAMETERS:
        starts = (math.sqrt(math.prod(PARAMETERS[name].typical)), *_ANY)
    return next((one for one in starts if _is_made(make, {**fields, name: one})), starts[0])


def _is_made(make: Callable[..., Mechanism], fields: Mapping[str, Any]) -> bool:
    try:
        make(**fields)
    except (HockeystickError, TypeError):
        return False
    return True


@dataclass(slots=True)
class Blanks:
    """The numbers that a plan leaves out, and the mechanisms that are made with others instead.

    ``wanted`` is what is to be solved for, where that is said: of epochs and steps the one meant.
    """

    wanted: str | None = None
    names: list[str] = field(default_factory=list)
    owners: list[object] = field(default_factory=list)

    def filled(self, make: Any, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return fields, with a number to begin with in place of one that is left out."""
        if not (isinstance(make, type) and issubclass(make, Mechanism)):
            return fields
        given = {name: value for name, value in fields.items() if value is not None}
        missing = [name for name in required_by(make) if name not in given]
        if make is DPSGD and not missing and not _is_made(make, given):
            length = "epochs" if "examples" in given else "steps"
            likely = [one for one in (self.wanted, length, *_STARTS) if one and one not in given]
            begun = ({one: start_for(make, given, one)} for one in likely)
            missing = [*next((one for one in begun if _is_made(make, given | one)), ())]
        if len(missing) != 1:
            return fields
        (name,) = missing
        self.names.append(name)
        return {**fields, name: start_for(make, given, name)}
