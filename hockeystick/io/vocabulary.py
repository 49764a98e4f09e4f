"""What can be described outside of Python: its names, and objects made of given fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, Final, TypeVar

from hockeystick._suggest import hint
from hockeystick._validate import PARAMETERS
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError
from hockeystick.mechanisms import (
    DPSGD,
    MECHANISMS,
    BandedInverse,
    BufferedToeplitz,
    Encoder,
    Graph,
    Mechanism,
    Sampling,
    SquareRoot,
    Toeplitz,
    schedules,
    tuning,
)
from hockeystick.mechanisms.selection.tuning import RunCount
from hockeystick.mechanisms.streams.strategies import Strategy
from hockeystick.mechanisms.training.schedules import Schedule
from hockeystick.notions import NOTIONS

# What a plan file says beside its tables.
TOP_KEYS: Final = ("title", "source", "notes", "delta", "epsilon")
# Keys of texts, in which nothing is computed.
TEXTS: Final = (*TOP_KEYS[:3], "split")
IN_PYTHON_ONLY: Final = "FDP"
_NO_ADJACENCY: Final = (
    "this plan has no adjacency: its numbers are those of the neighbours meant, as noise is over "
    "the sensitivity for them; leave adjacency out"
)
# What a file can describe: a trade-off function is no text.
RELEASES: Final[Mapping[str, type[Mechanism]]] = {
    name: kind for name, kind in {**MECHANISMS, **NOTIONS}.items() if name != IN_PYTHON_ONLY
}
ENCODERS: Final[Mapping[str, Callable[..., Encoder]]] = {
    "banded_inverse": Encoder.banded_inverse,
    "buffered_toeplitz": Encoder.buffered_toeplitz,
    "matrix": Encoder.of_matrix,
    "square_root": Encoder.square_root,
    "toeplitz": Encoder.toeplitz,
    "tree": Encoder.tree,
}
STRATEGIES: Final[Mapping[str, type[Strategy]]] = {
    "banded_inverse": BandedInverse,
    "buffered_toeplitz": BufferedToeplitz,
    "square_root": SquareRoot,
    "toeplitz": Toeplitz,
}
GRAPHS: Final[Mapping[str, Callable[..., Graph]]] = {
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
    "binomial": tuning.Binomial,
    "poisson": tuning.Poisson,
    "truncated-negative-binomial": tuning.TruncatedNegativeBinomial,
}
# Fields that are tables of a kind, and the kinds that there are.
KINDS: Final[Mapping[str, Mapping[str, Callable[..., object]]]] = {
    "batch_schedule": SCHEDULES,
    "distribution": RUN_COUNTS,
    "encoder": ENCODERS,
    "graph": GRAPHS,
    "schedule": SCHEDULES,
}
# Of a DPSGD, one of each pair is given: to set one is to take the other away.
ALTERNATIVES: Final = {
    "batch_size": "rate",
    "rate": "batch_size",
    "epochs": "steps",
    "steps": "epochs",
}

_Built = TypeVar("_Built")
# Numbers to begin with, of a DPSGD and of others.
_STARTS: Final[Mapping[str, float]] = {
    "noise_multiplier": 1,
    "examples": 1_000_000,
    "batch_size": 1,
    "rate": 0.01,
    "epochs": 1,
    "steps": 1000,
}
_ANY: Final = (1.0625, 1, 2, 0.53125, 101, 0.010009765625, 1009, 1_000_003)


def parameters_of(make: Callable[..., object]) -> dict[str, Parameter]:
    """Return what can be given for an object: where it came from is not of it."""
    return {name: one for name, one in signature(make).parameters.items() if name != "origin"}


def required_by(make: Callable[..., object]) -> list[str]:
    """Return what must be given for an object."""
    found = parameters_of(make).items()
    return [name for name, one in found if one.default is Parameter.empty]


def start_for(make: Callable[..., Mechanism], fields: Mapping[str, Any], name: str) -> float:
    """Return the first number for a field with which a mechanism can be made.

    Where none will do, it is the likeliest: what is wrong with the fields is said by making it.
    """
    starts: tuple[float, ...] = _ANY
    if make is DPSGD and name in _STARTS:
        starts = (_STARTS[name], *_ANY)
    elif name in PARAMETERS:
        starts = (math.sqrt(math.prod(PARAMETERS[name].typical)), *_ANY)
    for start in starts:
        try:
            make(**fields, **{name: start})
        except ParameterError as error:
            if name not in error.name.replace(" or ", ", ").split(", "):
                break
        except (HockeystickError, TypeError):
            break
        else:
            return start
    return starts[0]


@dataclass(slots=True)
class Blanks:
    """The numbers that a plan leaves out, collected while it is read.

    Args:
        wanted: What is to be solved for, where that is said: of two alternatives, as epochs and
            steps, it is the one that is meant.
        names: What is left out, once for each place.
        owners: The mechanisms that are made with another number in its place.
    """

    wanted: str | None = None
    names: list[str] = field(default_factory=list)
    owners: list[object] = field(default_factory=list)

    def filled(self, make: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields, with a number to begin with in place of one that is left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        missing: list[str] = []
        if make is DPSGD:
            missing = self._missing_of_dpsgd(given)
        elif isinstance(make, type) and issubclass(make, Mechanism):
            missing = [name for name in required_by(make) if name not in given]
        if len(missing) != 1:
            return dict(fields)
        (name,) = missing
        self.names.append(name)
        return {**fields, name: start_for(make, given, name)}

    def _missing_of_dpsgd(self, given: Mapping[str, Any]) -> list[str]:
        """Return what a DPSGD lacks of noise, length and batches, of which one size is enough."""
        sized = "examples" in given
        missing = [] if "noise_multiplier" in given else ["noise_multiplier"]
        if given.keys().isdisjoint(("epochs", "steps")):
            missing.append(self._meant("epochs" if sized else "steps"))
        whole = given.get("sampling") == Sampling.FULL_BATCH
        if not whole and given.keys().isdisjoint(("batch_size", "rate")):
            missing.append(self._meant("batch_size" if sized else "rate"))
        elif "batch_size" in given and not sized:
            missing.append("examples")
        return missing

    def _meant(self, name: str) -> str:
        other = ALTERNATIVES[name]
        return other if self.wanted == other else name


def training(
    fields: Mapping[str, object], overrides: Mapping[str, object], where: str, blanks: Blanks | None
) -> DPSGD:
    """Return a DPSGD of fields, of which overrides take the place, or that of an alternative."""
    dropped = {ALTERNATIVES.get(name) for name in overrides}
    kept = {name: value for name, value in fields.items() if name not in dropped}
    return built(DPSGD, {**kept, **overrides}, where, overrides=overrides, blanks=blanks)


def refuse_overrides(plan: Mechanism, overrides: Iterable[str]) -> None:
    """Raise where a plan that is not one DPSGD is to have other fields."""
    names = ", ".join(overrides)
    if names == "adjacency" and plan.adjacency is None:
        raise PlanFileError(_NO_ADJACENCY)
    if names:
        raise PlanFileError(f"there is no DPSGD alone in which to override {names}")


def maker(name: object, known: Mapping[str, Callable[..., Any]], where: str) -> Callable[..., Any]:
    """Return what makes the objects of a name, or raise."""
    if name == IN_PYTHON_ONLY:
        raise PlanFileError(f"{where}: no text can hold a trade-off function; use Python for FDP")
    if isinstance(name, str) and name in known:
        return known[name]
    listed = len(known) < len(RELEASES)
    allowed = f"must be one of {', '.join(known)}" if listed else "hockeystick init --list has all"
    raise PlanFileError(f"unknown {where} {name!r:.80}{hint(name, known) or f'; {allowed}'}")


def built(
    make: Callable[..., _Built],
    fields: Mapping[str, object],
    where: str,
    *,
    overrides: Iterable[str] = (),
    blanks: Blanks | None = None,
) -> _Built:
    """Return what is made of these fields; an error says by a path where the plan is wrong."""
    refuse_unknown(where, fields, parameters_of(make))
    given = dict(fields) if blanks is None else blanks.filled(make, fields)
    for name in required_by(make):
        if name not in given:
            allowed = f", {PARAMETERS[name].allowed}" if name in PARAMETERS else ""
            raise PlanFileError(f"{where} needs {name}{allowed}")
    try:
        made = make(**given)
    except HockeystickError as error:
        name = error.name if isinstance(error, ParameterError) else ""
        if not set(name.split(", ")).isdisjoint(overrides):
            raise
        raise PlanFileError(f"{where}{'.' if name in given else ': '}{error}") from None
    if blanks is not None and given.keys() != fields.keys():
        blanks.owners.append(made)
    return made


def refuse_unknown(where: str, table: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise for the first key that is not allowed."""
    names = list(allowed)
    for key in table:
        if key not in names:
            path = f"{where}.{key}" if where else key
            near = hint(key, [one for one in names if one not in table])
            raise PlanFileError(f"unknown key {path}{near}; allowed are {', '.join(names)}")
