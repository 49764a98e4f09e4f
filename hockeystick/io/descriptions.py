"""Plans, guarantees and all that they are made of, as JSON and back, exactly.

A description becomes an object with its ``type`` and its fields; reading it calls the type's
constructor, so that nothing comes in unchecked. Only types of the registries are read.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cache
from inspect import signature
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.io.vocabulary import RUN_COUNTS, SCHEDULES, STRATEGIES
from hockeystick.mechanisms import MECHANISMS, Encoder, Graph, Mechanism
from hockeystick.mechanisms.base import Plan, checked
from hockeystick.mechanisms.streams.sensitivity import Pattern, Squares
from hockeystick.mechanisms.streams.strategies import checked_strategy
from hockeystick.notions import NOTIONS, Origin
from hockeystick.tradeoffs import (
    ApproxTradeOff,
    GaussianTradeOff,
    LaplaceTradeOff,
    PiecewiseLinearTradeOff,
    ProfileTradeOff,
    SampledGaussianTradeOff,
    TradeOff,
)
from hockeystick.tradeoffs.functions.piecewise import Corners, IdentityTradeOff, polyline_tradeoff
from hockeystick.tradeoffs.functions.renyi import RenyiTradeOff
from hockeystick.tradeoffs.operations.group import GroupTradeOff
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiCurve, RenyiLine, RenyiPoints

Json: TypeAlias = Any

_TYPE: Final = "type"
_FLOAT: Final = "float"
_FRACTION: Final = "fraction"
_A_DESCRIPTION: Final = "a description as state_dict writes it"
_WHOLE: Final = whole_numbers("k", 1, (1, 100))
_RATE: Final = Domain(symbol="alpha", low=0, high=1, typical=(0.01, 0.99))
_RATIO: Final = Domain(symbol="r", low=0, high=math.inf, typical=(0.1, 10))
# How far the square of an encoder may be from its strategy's: other versions may round otherwise.
_ROUNDED: Final = Fraction(1, 2**200)
_TRADEOFFS: Final = (
    GaussianTradeOff,
    IdentityTradeOff,
    LaplaceTradeOff,
    RenyiLine,
    RenyiPoints,
    SampledGaussianTradeOff,
)


def describe(plan: Mechanism) -> dict[str, Any]:
    """Return a plan as JSON keeps it exactly: the form in which answers say what they are of.

    An object has the name of its ``type`` (schedules, distributions of runs and trade-off
    functions after the name of their module) and its fields. What JSON does not have is an object
    of one key: ``{"float": "inf"}``, ``{"fraction": "0x1/0x3"}`` with hexadecimal integers.

    Guarantees:
        Nothing is rounded, and equal plans give the same description. A plan of a class that is
        none of the package's is described by the mechanism that it comes down to.

    Raises:
        ParameterError: If it is no plan, or holds something that has no such form, as a mechanism
            that is none of the package's or a trade-off function that only a program knows.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.calibration import describe
        >>> describe(hs.Gaussian(2.0) ** 10)
        {'type': 'Repeated', 'inner': {'type': 'Gaussian', 'noise_multiplier': 2.0}, 'count': 10}
    """
    described: dict[str, Any] = _encoded(checked("plan", plan))
    return described


def read_description(document: Json) -> Mechanism:
    """Return the plan that a description says: ``describe`` the other way round.

    Guarantees:
        The plan equals the one that was described; only types of the package are read.

    Args:
        document: What ``describe`` returned, also after a way through JSON.

    Raises:
        ParameterError: If it is no description, or of an unknown type, or has other fields.
        IncompatibleError: If its parts do not go together.

    Example:
        >>> from hockeystick.calibration import read_description
        >>> read_description({"type": "Gaussian", "noise_multiplier": 2.0})
        Gaussian(noise_multiplier=2.0)
    """
    try:
        return checked("mechanism", _decoded(document))
    except RecursionError:
        raise ParameterError("mechanism", "what is nested too deeply", _A_DESCRIPTION) from None


def _encoded(value: Any) -> Json:
    """Return a value as JSON keeps it, or raise."""
    match value:
        case str():
            return str(value)
        case float():
            return value if math.isfinite(value) else {_FLOAT: repr(value)}
        case int() | None:
            return value
        case Fraction():
            # Hexadecimal, since Python reads no decimals of more than a few thousand digits.
            return {_FRACTION: f"{value.numerator:#x}/{value.denominator:#x}"}
        case frozenset():
            return sorted(value)
        case tuple():
            return list(map(_encoded, value))
        case _:
            return _object(value)


def _object(value: Any) -> Json:
    """Return an object of a registered type, or of what a plan comes down to; or raise."""
    for name, form in _forms().items():
        if form.kind is type(value):
            parts = form.apart(value)
            return {_TYPE: name, **{key: _encoded(parts[key]) for key in form.names}}
    if isinstance(value, Plan):
        return _encoded(value.mechanism)
    allowed = "made of what has a form in JSON: numbers, texts and the registered types"
    raise ParameterError("state", value, allowed)


def _decoded(document: Json) -> Any:
    """Return what a document says; what is neither a list nor an object as it is."""
    if isinstance(document, list):
        return tuple(map(_decoded, document))
    if not isinstance(document, dict):
        return document
    keys, name = set(document), document.get(_TYPE)
    if keys == {_FLOAT}:
        return float(_validate.one_of(_FLOAT, document[_FLOAT], ("inf", "-inf")))
    if keys == {_FRACTION}:
        return _fraction(document[_FRACTION])
    form = _forms().get(name) if isinstance(name, str) else None
    if form is None:
        allowed = "a registered one; this may come from another version of hockeystick"
        raise ParameterError(_TYPE, name, allowed)
    if name == "Encoder":  # as it was written at first, without its strategy
        keys.add("strategy")
    if keys != {_TYPE, *form.names}:
        allowed = f"given with {', '.join(form.names) or 'nothing'} and no other field"
        raise ParameterError(f"a {name}", sorted(map(str, keys - {_TYPE})), allowed)
    values = {key: _decoded(document.get(key)) for key in form.names}
    try:
        return form.made(**values)
    except HockeystickError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError):
        raise ParameterError(f"a {form.kind.__name__}", values, _A_DESCRIPTION) from None


def _fraction(text: object) -> Fraction:
    numerator, _, denominator = text.partition("/") if isinstance(text, str) else ("", "", "")
    try:
        return Fraction(int(numerator, 16), int(denominator, 16))
    except (ValueError, ZeroDivisionError):
        allowed = "two hexadecimal numbers with a stroke between them"
        raise ParameterError(_FRACTION, text, allowed) from None


class _Form(NamedTuple):
    """A type, the names of what its values are made of, and the ways there and back."""

    kind: type
    names: tuple[str, ...]
    apart: Callable[[Any], Mapping[str, Any]]
    made: Callable[..., Any]


@cache
def _forms() -> Mapping[str, _Form]:
    plain: dict[str, Iterable[type]] = {
        "": (*MECHANISMS.values(), *NOTIONS.values(), *STRATEGIES.values()),
        "schedules.": SCHEDULES.values(),
        "tuning.": RUN_COUNTS.values(),
        "tradeoffs.": _TRADEOFFS,
    }
    return {
        **{
            f"{room}{kind.__name__}": _by_fields(kind, kind)
            for room, kinds in plain.items()
            for kind in kinds
        },
        "Encoder": _by_fields(Encoder, _encoder),
        "Graph": _Form(Graph, ("parties", "edges", "words"), _of_graph, _graph),
        "Origin": _by_fields(Origin, _origin),
        "tradeoffs.ApproxTradeOff": _Form(
            ApproxTradeOff,
            ("epsilon", "delta"),
            lambda f: dict(zip(("epsilon", "delta"), f.guarantee, strict=True)),
            ApproxTradeOff,
        ),
        "tradeoffs.GroupTradeOff": _by_fields(GroupTradeOff, _group),
        "tradeoffs.PiecewiseLinearTradeOff": _by_fields(Corners, _polygon)._replace(
            kind=PiecewiseLinearTradeOff, apart=lambda f: _attributes(f.corners)
        ),
        "tradeoffs.RenyiTradeOff": _by_fields(RenyiTradeOff, _renyi),
        "tradeoffs.of_plan": _Form(ProfileTradeOff, ("plan",), _release_of, tradeoff),
    }


def _by_fields(kind: type, made: Callable[..., Any]) -> _Form:
    """Return the form of a type that is made of its fields by their names."""
    taken = signature(made).parameters
    names = tuple(field.name for field in fields(kind) if field.name in taken)
    return _Form(kind, names, _attributes, made)


def _attributes(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _of_type(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ParameterError(name, value, "a text" if kind is str else f"a {kind.__name__}")
    return value


def _origin(kind: Literal["exact", "bound"], theorem: str) -> Origin:
    """Return an origin, of which the lower end is not kept."""
    _validate.one_of("kind", kind, ("exact", "bound"))
    return Origin(kind, _of_type("theorem", theorem, str))


def _group(inner: TradeOff, size: int) -> GroupTradeOff:
    return GroupTradeOff(_of_type("inner", inner, TradeOff), _validate.count("size", size, _WHOLE))


def _renyi(curve: RenyiCurve) -> RenyiTradeOff:
    return RenyiTradeOff(_of_type("curve", curve, RenyiCurve))


def _encoder(
    words: str,
    rounds: int,
    participations: int,
    separation: int,
    least_square: Fraction,
    square: Fraction,
    strategy: object,
) -> Encoder:
    """Return an encoder of known sensitivity, which is what its strategy, if it has one, says."""
    counts = {"rounds": rounds, "participations": participations, "separation": separation}
    for name, value in counts.items():
        _validate.count(name, value, _WHOLE)
    _of_type("words", words, str)
    squares = Squares(
        _of_type("least_square", least_square, Fraction), _of_type("square", square, Fraction)
    )
    if not 0 <= least_square <= square:
        raise ParameterError("square", square, "a fraction >= least_square, which is >= 0")
    if strategy is None:
        return Encoder(words, rounds, Pattern(participations, separation), squares)
    made = Encoder.of(
        checked_strategy(strategy), rounds, participations=participations, separation=separation
    )
    ends = zip(squares, (made.least_square, made.square), strict=True)
    if made.words != words or any(abs(one - own) > own * _ROUNDED for one, own in ends):
        raise ParameterError("square", square, f"that of the strategy, {made.square}")
    return made


def _graph(parties: int, edges: object, words: object) -> Graph:
    """Return the graph with these edges; None stands for all that there are."""
    name = _of_type("words", words, str)
    if edges is None:
        return Graph.complete(parties).named(name)
    text = base64.b64decode(_of_type("edges", edges, str), validate=True)
    return Graph(parties, np.frombuffer(text, dtype="<i8").reshape(-1, 2)).named(name)


def _of_graph(graph: Graph) -> dict[str, Any]:
    edges = None if graph.whole else base64.b64encode(graph.stored).decode("ascii")
    return {"parties": graph.parties, "edges": edges, "words": graph.words}


def _polygon(
    alphas: tuple[float, ...],
    powers: tuple[float, ...],
    rests: tuple[float, ...],
    betas: tuple[float, ...],
    ratios: tuple[float, ...],
    slack: float,
) -> PiecewiseLinearTradeOff:
    rates = {"alphas": alphas, "powers": powers, "rests": rests, "betas": betas}
    checked = {n: tuple(_validate.real(n, x, _RATE) for x in values) for n, values in rates.items()}
    corners = Corners(
        **checked,
        ratios=tuple(_validate.real("ratios", x, _RATIO) for x in ratios),
        slack=_validate.real("slack", slack, _RATE),
    )
    sizes = {len(values) for values in checked.values()}
    in_order = list(alphas) == sorted(alphas) and list(betas) == sorted(betas, reverse=True)
    if sizes != {len(ratios) + 1} or not in_order:
        raise ParameterError("tradeoff", corners, "as many rates of each kind, in order")
    return polyline_tradeoff(corners, None)


def _release_of(f: Any) -> dict[str, Mechanism]:
    if isinstance(f.release, Mechanism):
        return {"plan": f.release}
    allowed = "that of a plan or of one formula; this profile is known to the program alone"
    raise ParameterError("tradeoff", f, allowed)
