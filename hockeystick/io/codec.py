"""Plans and what they are made of as trees of tables, lists, texts and numbers, and back.

An object is a table with its name and its fields. A description has the name under ``type`` and
gives every field exactly, as JSON keeps it. A plan file has it under ``mechanism``, or ``kind`` for
encoders, graphs, schedules and numbers of runs, and leaves out what is so by default. Reading
calls what makes the object, so that nothing comes in unchecked, by names of the registries alone.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cache
from inspect import Parameter, signature
from types import ModuleType
from typing import Any, Final, TypeAlias

import numpy as np

from hockeystick import _validate, tradeoffs
from hockeystick._validate import PARAMETERS, whole_numbers
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.errors import HockeystickError, ParameterError, PlanFileError, hint
from hockeystick.mechanisms import DPSGD, MECHANISMS, Composed, Encoder, Graph, Mechanism, Repeated
from hockeystick.mechanisms.base import Plan, checked
from hockeystick.mechanisms.selection import tuning
from hockeystick.mechanisms.streams import strategies
from hockeystick.mechanisms.streams.sensitivity import Pattern, Squares
from hockeystick.mechanisms.training import schedules
from hockeystick.notions import NOTIONS, Origin
from hockeystick.tradeoffs import PiecewiseLinearTradeOff, ProfileTradeOff, TradeOff
from hockeystick.tradeoffs.functions.piecewise import Corners, IdentityTradeOff, polyline_tradeoff
from hockeystick.tradeoffs.functions.renyi import RenyiTradeOff
from hockeystick.tradeoffs.operations.group import GroupTradeOff
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiCurve, RenyiLine, RenyiPoints

Json: TypeAlias = Any
Maker: TypeAlias = Callable[..., Any]

_FRACTION: Final = re.compile(r"Fraction\((-?\d+), *(\d+)\)")
# How deep mechanisms of a file may be in one another.
_DEEPEST: Final = 16


def _kinds(module: ModuleType, base: type, join: str = "-") -> dict[str, type]:
    """Return the classes of a module by their names in small letters, the words joined."""
    return {
        re.sub(r"\B(?=[A-Z])", join, name).lower(): kind
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, base) and kind is not base
    }


# What a text can describe: a trade-off function is none.
RELEASES: Final[Mapping[str, type[Mechanism]]] = {
    name: kind for name, kind in {**MECHANISMS, **NOTIONS}.items() if name != "FDP"
}
_STRATEGIES: Final = _kinds(strategies, strategies.Strategy, "_")
_SCHEDULES: Final = _kinds(schedules, schedules.Schedule)
_RUN_COUNTS: Final = _kinds(tuning, tuning.RunCount)
# Fields that are tables of a kind, and the kinds that there are.
KINDS: Final[Mapping[str, Mapping[str, Maker]]] = {
    "batch_schedule": _SCHEDULES,
    "distribution": _RUN_COUNTS,
    "encoder": {name: getattr(Encoder, name) for name in ("tree", *_STRATEGIES)}
    | {"matrix": Encoder.of_matrix},
    "graph": {name: getattr(Graph, name) for name in ("complete", "cycle", "path")}
    | {"edges": Graph, "random-out": Graph.random_out},
    "schedule": _SCHEDULES,
}
_KNOWN: Final = {**RELEASES, **_STRATEGIES, **_SCHEDULES, **_RUN_COUNTS}
_NAMES: Final[Mapping[Any, str]] = {kind: name for name, kind in _KNOWN.items()}
# Of a DPSGD, one of each pair is given: to set one is to take the other away.
_PAIRS: Final = (("batch_size", "rate"), ("epochs", "steps"))
ALTERNATIVES: Final = {one: other for a, b in _PAIRS for one, other in ((a, b), (b, a))}


def parameters_of(make: Maker) -> dict[str, Parameter]:
    """Return what can be given for an object: where it came from is not of it."""
    return {name: one for name, one in signature(make).parameters.items() if name != "origin"}


def required_by(make: Maker) -> list[str]:
    """Return what must be given for an object."""
    return [name for name, one in parameters_of(make).items() if one.default is Parameter.empty]


def maker(name: object, known: Mapping[str, Any], where: str) -> Any:
    """Return what makes the objects of a name, or raise."""
    if isinstance(name, str) and name in known:
        return known[name]
    few = f"must be one of {', '.join(known)}"
    allowed = few if len(known) < len(RELEASES) else "hockeystick init --list has all"
    raise PlanFileError(f"unknown {where} {name!r:.80}{hint(name, known) or f'; {allowed}'}")


def refuse_unknown(where: str, table: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise for the first key that is not allowed."""
    names = list(allowed)
    for key in table:
        if key not in names:
            near = hint(key, [one for one in names if one not in table])
            few = near or f"; allowed are {', '.join(names)}"
            raise PlanFileError(f"unknown key {where}{'.' if where else ''}{key}{few}")


# Where to begin with a number that a DPSGD leaves out.
_STARTS: Final = {"noise_multiplier": 1, "epochs": 1, "steps": 1000, "batch_size": 1, "rate": 0.01}


def start_for(make: Maker, name: str) -> float:
    """Return a number to begin with for a field that is left out."""
    usual = math.sqrt(math.prod(PARAMETERS[name].typical)) if name in PARAMETERS else 1
    return _STARTS.get(name, usual) if make is DPSGD else usual


@dataclass(slots=True)
class Blanks:
    """The numbers that a plan leaves out, by name, each with one to begin with instead."""

    # What is to be solved for, if that is said: of epochs and steps the one that is meant.
    wanted: str | None = None
    begun: list[tuple[str, float]] = field(default_factory=list)

    def filled(self, make: Maker, parts: Mapping[str, Any]) -> dict[str, float]:
        """Return a number to begin with for a mechanism's field, if one alone is left out."""
        given = {name for name, one in parts.items() if one is not None}
        missing = [name for name in required_by(make) if name not in given]
        if make is DPSGD and not missing:
            pairs = (pair for pair in _PAIRS if given.isdisjoint(pair))
            usual = int("examples" not in given)
            missing = [self.wanted if self.wanted in pair else pair[usual] for pair in pairs]
        begun = [(name, start_for(make, name)) for name in missing if len(missing) == 1]
        self.begun += begun
        return dict(begun)


def describe(plan: Mechanism) -> dict[str, Any]:
    """Return a plan as JSON keeps it exactly: the form in which answers say what they are of.

    An object has the name of its ``type`` (schedules, distributions of runs and trade-off
    functions after that of their module) and its fields. What JSON does not have is an object of
    one key: ``{"float": "inf"}``, ``{"fraction": "0x1/0x3"}`` with hexadecimal integers. Nothing is
    rounded, and equal plans give the same description; one of a class that is none of the
    package's is described by the mechanism that it comes down to.

    Raises:
        ParameterError: If it is no plan, or holds what has no such form, as a trade-off function
            that only a program knows.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.calibration import describe
        >>> describe(hs.Gaussian(2.0) ** 10)
        {'type': 'Repeated', 'inner': {'type': 'Gaussian', 'noise_multiplier': 2.0}, 'count': 10}
    """
    return _described(checked("plan", plan))


def read_description(document: Json) -> Mechanism:
    """Return the plan that a description says, equal to what ``describe`` was given.

    Raises:
        ParameterError: If it is no description, or of an unknown type, or has other fields.

    Example:
        >>> from hockeystick.calibration import read_description
        >>> read_description({"type": "Gaussian", "noise_multiplier": 2.0})
        Gaussian(noise_multiplier=2.0)
    """
    try:
        return checked("description", plan_of(document, "", {}))
    except PlanFileError as error:
        raise ParameterError("description", document, f"as describe writes it: {error}") from None


def _made(tree: Any, where: str, blanks: Blanks | None, key: str = "") -> Any:
    """Return what a tree stands for, found at a path as a field; or raise for what is wrong."""
    if isinstance(tree, list):
        return tuple(_made(one, f"{where}[{i}]", blanks) for i, one in enumerate(tree))
    if isinstance(tree, str) and (exact := _FRACTION.fullmatch(tree)):
        return _number({"fraction": f"{exact[1]}/{exact[2]}"})
    if not isinstance(tree, dict):
        return tree
    if tree.keys() in ({"float"}, {"fraction"}):
        return _number(tree)
    if "type" in tree:
        tag, known = "type", _TYPES
    elif where.count(".") > _DEEPEST:
        raise PlanFileError(f"{where}: mechanisms may be nested at most {_DEEPEST} deep")
    else:
        tag, known = "kind" if key in KINDS else "mechanism", KINDS.get(key, RELEASES)
    make = maker(tree.get(tag), known, f"{where}.{tag}".lstrip("."))
    names = _names(make) if tag == "type" else tuple(parameters_of(make))
    # Encoders were written without their strategy at first.
    needed = [one for one in names if one != "strategy"] if tag == "type" else required_by(make)
    given = {name: one for name, one in tree.items() if name != tag}
    path = where or tree[tag]
    refuse_unknown(path, given, names)  # before what is inside of them is asked for
    parts = {name: _made(one, f"{path}.{name}", blanks, name) for name, one in given.items()}
    if blanks is not None and tag == "mechanism":
        parts |= blanks.filled(make, parts)
    return _built(make, parts, path, needed)


def _number(tree: Mapping[str, Any]) -> float | Fraction:
    """Return a number that neither JSON nor TOML has."""
    if tree.get("float") in ("inf", "-inf"):
        return float(tree["float"])
    try:
        numerator, denominator = tree["fraction"].split("/")
        return Fraction(int(numerator, 0), int(denominator, 0))
    except (KeyError, AttributeError, ValueError, ZeroDivisionError):
        raise PlanFileError(f"{tree!r:.80} is no number") from None


def _built(make: Maker, parts: Mapping[str, Any], where: str, needed: Iterable[str]) -> Any:
    """Return what is made of these fields; an error says by a path where the plan is wrong."""
    for name in needed:
        if name not in parts:
            allowed = f", {PARAMETERS[name].allowed}" if name in PARAMETERS else ""
            raise PlanFileError(f"{where} needs {name}{allowed}")
    try:
        return make(**parts)
    except (HockeystickError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        name = error.name if isinstance(error, ParameterError) else ""
        raise PlanFileError(f"{where}{'.' if name in parts else ': '}{error}") from None


def plan_of(
    tree: dict[str, Any], where: str, overrides: Mapping[str, object], blanks: Blanks | None = None
) -> Mechanism:
    """Return the plan of a table, in which overrides take the place of a DPSGD's fields."""
    if overrides:
        if tree.get("mechanism") != DPSGD.__name__:
            raise PlanFileError(f"no DPSGD alone in which to override {', '.join(overrides)}")
        dropped = {ALTERNATIVES.get(name) for name in overrides}
        tree = {name: one for name, one in tree.items() if name not in dropped} | dict(overrides)
    try:
        plan: Mechanism = _made(tree, where, blanks)
    except PlanFileError as error:
        cause = error.__context__
        if isinstance(cause, ParameterError) and {*cause.name.split(", ")} & {*overrides}:
            raise cause from None
        raise
    except RecursionError:
        raise PlanFileError("the plan is nested too deeply") from None
    return plan


def tables_of(plan: Mechanism) -> dict[str, Any]:
    """Return the tables of a plan: ``[dpsgd]`` where that comes first, and releases."""
    parts = plan.parts if isinstance(plan, Composed) else (plan,)
    first = {"dpsgd": _without_defaults(parts[0])} if isinstance(parts[0], DPSGD) else {}
    releases = [
        _in_file(one.inner) | {"repeat": one.count} if isinstance(one, Repeated) else _in_file(one)
        for one in parts[len(first) :]
    ]
    return first | {"release": releases}


def _tree(value: Any, exactly: bool) -> Json:
    """Return the tree of a value, as descriptions have it or as plan files do."""
    match value:
        case str() | int() | None:
            return value
        case Fraction() if exactly:
            # Hexadecimal, since Python reads no decimals of more than a few thousand digits.
            return {"fraction": f"{value.numerator:#x}/{value.denominator:#x}"}
        case Fraction():
            return repr(value)
        case float():
            return {"float": repr(value)} if exactly and not math.isfinite(value) else value
        case frozenset():
            return sorted(value)
        case tuple() | list():
            return [_tree(one, exactly) for one in value]
        case _:
            return _described(value) if exactly else _in_file(value)


def _described(value: Any) -> dict[str, Any]:
    if name := _TYPE_NAMES.get(type(value)):
        parts = _parts(value)
        return {"type": name} | {key: _tree(parts[key], True) for key in _names(_TYPES[name])}
    if isinstance(value, Plan):
        return _described(value.mechanism)
    allowed = "made of what has a form in JSON: numbers, texts and the registered types"
    raise ParameterError("state", value, allowed)


@cache
def _names(make: Maker) -> tuple[str, ...]:
    taken = signature(make).parameters
    own = [one for one in getattr(make, "__dataclass_fields__", ()) if one in taken]
    return tuple(own or taken)


def _parts(value: Any) -> Mapping[str, Any]:
    match value:
        case Graph():
            edges = None if value.whole else base64.b64encode(value.stored).decode("ascii")
            return {"parties": value.parties, "edges": edges, "words": value.words}
        case tradeoffs.ApproxTradeOff():
            return dict(zip(("epsilon", "delta"), value.guarantee, strict=True))
        case PiecewiseLinearTradeOff():
            return _parts(value.corners)
        case ProfileTradeOff():
            return {"plan": checked("the release of a trade-off function", value.release)}
        case _:
            return {one.name: getattr(value, one.name) for one in fields(value)}


def _in_file(value: Any) -> Json:
    """Return the table of an object in a plan file, or raise."""
    if isinstance(value, Graph):
        edges = {} if value.whole else {"edges": value.pairs.tolist()}
        return {"kind": "edges" if edges else "complete", "parties": value.parties, **edges}
    if isinstance(value, Encoder):
        if value.strategy is None and value.words != "tree":
            raise PlanFileError("encoder: no file can hold one made from a matrix; use Python")
        own = {"kind": "tree"} if value.strategy is None else _in_file(value.strategy)
        pattern = ("rounds", "participations", "separation")
        return own | {name: getattr(value, name) for name in pattern}
    if type(value) not in _NAMES:
        raise PlanFileError(f"no file can hold a {type(value).__name__}; use Python")
    tag = "mechanism" if isinstance(value, Mechanism) else "kind"
    return {tag: _NAMES[type(value)], **_without_defaults(value)}


def _without_defaults(value: Any) -> dict[str, Any]:
    taken = parameters_of(type(value))
    return {
        name: _tree(part, False)
        for name, part in _parts(value).items()
        if name in taken and part is not None and part != taken[name].default
    }


_WHOLE: Final = whole_numbers("k", 1, (1, 100))
# How far the square of an encoder may be from its strategy's: other versions may round otherwise.
_ROUNDED: Final = Fraction(1, 2**200)


def _of_type(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ParameterError(name, value, "a text" if kind is str else f"a {kind.__name__}")
    return value


def _origin(kind: Any, theorem: str) -> Origin:
    """Return an origin, of which the lower end is not kept."""
    _validate.one_of("kind", kind, ("exact", "bound"))
    return Origin(kind, _of_type("theorem", theorem, str))


def _encoder(
    words: str,
    rounds: int,
    participations: int,
    separation: int,
    least_square: Fraction,
    square: Fraction,
    strategy: Any = None,
) -> Encoder:
    """Return an encoder of known sensitivity, which is what its strategy, if it has one, says."""
    pattern = {"participations": participations, "separation": separation}
    for name, value in {"rounds": rounds, **pattern}.items():
        _validate.count(name, value, _WHOLE)
    _of_type("words", words, str)
    ends = _of_type("least_square", least_square, Fraction), _of_type("square", square, Fraction)
    if not 0 <= least_square <= square:
        raise ParameterError("square", square, "a fraction >= least_square, which is >= 0")
    if strategy is None:
        return Encoder(words, rounds, Pattern(**pattern), Squares(*ends))
    found = Encoder.of(strategy, rounds, **pattern)
    owns = zip(ends, (found.least_square, found.square), strict=True)
    if found.words != words or any(abs(one - own) > own * _ROUNDED for one, own in owns):
        raise ParameterError("square", square, f"that of the strategy, {found.square}")
    return found


def _graph(parties: int, edges: object, words: object) -> Graph:
    """Return the graph with these edges; None stands for all that there are."""
    name = _of_type("words", words, str)
    if edges is None:
        return Graph.complete(parties).named(name)
    text = base64.b64decode(_of_type("edges", edges, str), validate=True)
    return Graph(parties, np.frombuffer(text, dtype="<i8").reshape(-1, 2)).named(name)


def _polygon(
    alphas: Any, powers: Any, rests: Any, betas: Any, ratios: Any, slack: Any
) -> PiecewiseLinearTradeOff:
    given = {"alphas": alphas, "powers": powers, "rests": rests, "betas": betas}
    rates = {name: _validate.reals(name, each, PARAMETERS["rate"]) for name, each in given.items()}
    sides = _validate.reals("ratios", ratios, PARAMETERS["scale"])
    error = _validate.real("slack", slack, PARAMETERS["rate"])
    corners = Corners(**rates, ratios=sides, slack=error)
    in_order = list(alphas) == sorted(alphas) and list(betas) == sorted(betas, reverse=True)
    if {*map(len, rates.values())} != {len(sides) + 1} or not in_order:
        raise ParameterError("tradeoff", corners, "as many rates of each kind, in order")
    return polyline_tradeoff(corners, None)


# What can be described, by what stands before the name of a type.
_DESCRIBED: Final[Mapping[str, Iterable[type]]] = {
    "": (*MECHANISMS.values(), *NOTIONS.values(), *_STRATEGIES.values(), Encoder, Graph, Origin),
    "schedules.": _SCHEDULES.values(),
    "tuning.": _RUN_COUNTS.values(),
    "tradeoffs.": (
        tradeoffs.ApproxTradeOff,
        tradeoffs.GaussianTradeOff,
        tradeoffs.LaplaceTradeOff,
        tradeoffs.SampledGaussianTradeOff,
        GroupTradeOff,
        IdentityTradeOff,
        PiecewiseLinearTradeOff,
        RenyiLine,
        RenyiPoints,
        RenyiTradeOff,
    ),
}
_TYPE_NAMES: Final[Mapping[type, str]] = {
    **{kind: f"{room}{kind.__name__}" for room, kinds in _DESCRIBED.items() for kind in kinds},
    ProfileTradeOff: "tradeoffs.of_plan",
}
# What makes an object of its fields, where that is not its class.
_MAKERS: Final[Mapping[type, Maker]] = {
    Encoder: _encoder,
    Graph: _graph,
    GroupTradeOff: lambda inner, size: GroupTradeOff(
        _of_type("inner", inner, TradeOff), _validate.count("size", size, _WHOLE)
    ),
    Origin: _origin,
    PiecewiseLinearTradeOff: _polygon,
    ProfileTradeOff: lambda plan: tradeoff(checked("plan", plan)),
    RenyiTradeOff: lambda curve: RenyiTradeOff(_of_type("curve", curve, RenyiCurve)),
}
_TYPES: Final[Mapping[str, Maker]] = {
    name: _MAKERS.get(kind, kind) for kind, name in _TYPE_NAMES.items()
}
