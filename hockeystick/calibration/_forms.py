"""How values of a type are taken apart, by name, and made again, checked."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from inspect import signature
from typing import Any, Final, final

import numpy as np

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Encoder, Graph, Mechanism
from hockeystick.mechanisms.streams.sensitivity import Pattern, Squares
from hockeystick.mechanisms.streams.strategies import checked_strategy
from hockeystick.notions import Origin
from hockeystick.tradeoffs import ApproxTradeOff, PiecewiseLinearTradeOff, TradeOff
from hockeystick.tradeoffs.functions.piecewise import polyline_tradeoff
from hockeystick.tradeoffs.functions.polyline import Corners
from hockeystick.tradeoffs.functions.renyi import RenyiTradeOff
from hockeystick.tradeoffs.operations.group import GroupTradeOff
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiCurve

WHOLE: Final = whole_numbers("k", 1, (1, 100))
_RATE: Final = Domain(symbol="alpha", low=0, high=1, typical=(0.01, 0.99))
_ROUNDED: Final = Fraction(1, 2**200)
_RATIO: Final = Domain(symbol="r", low=0, high=float("inf"), typical=(0.1, 10))


@final
@dataclass(frozen=True, slots=True)
class Form:
    """A type, the names of what its values are made of, and the ways there and back.

    Those that are ``optional`` may be missing, as in descriptions that were written without them.
    """

    kind: type
    names: tuple[str, ...]
    apart: Callable[[Any], Mapping[str, Any]]
    made: Callable[..., Any]
    optional: tuple[str, ...] = ()


def by_fields(kind: type, made: Callable[..., Any] | None = None) -> Form:
    """Return the form of a type that is made of its fields by their names."""
    make = kind if made is None else made
    taken = signature(make).parameters
    names = tuple(field.name for field in fields(kind) if field.name in taken)
    return Form(kind, names, lambda value: {name: getattr(value, name) for name in names}, make)


def _origin(kind: object, theorem: object) -> Origin:
    """Return an origin."""
    exact = _validate.one_of("kind", kind, ("exact", "bound")) == "exact"
    return Origin("exact" if exact else "bound", _text("theorem", theorem))


def _encoder(
    words: object,
    rounds: object,
    participations: object,
    separation: object,
    least_square: object,
    square: object,
    strategy: object = None,
) -> Encoder:
    """Return an encoder of known sensitivity, which is what its strategy, if it has one, says."""
    if not isinstance(least_square, Fraction) or least_square < 0:
        raise ParameterError("least_square", least_square, "a fraction >= 0")
    if not isinstance(square, Fraction) or square < least_square:
        raise ParameterError("square", square, "a fraction that is not below least_square")
    pattern = Pattern(
        _validate.count("participations", participations, WHOLE),
        _validate.count("separation", separation, WHOLE),
    )
    known = _validate.count("rounds", rounds, WHOLE)
    squares = Squares(least_square, square)
    if strategy is None:
        return Encoder(_text("words", words), known, pattern, squares)
    made = Encoder.of(
        checked_strategy(strategy),
        known,
        participations=pattern.participations,
        separation=pattern.separation,
    )
    # Descriptions of other versions may be rounded otherwise.
    ends = zip(squares, (made.least_square, made.square), strict=True)
    if made.words != words or any(abs(one - own) > own * _ROUNDED for one, own in ends):
        raise ParameterError("square", square, f"that of the strategy, {made.square}")
    return made


def _graph(parties: float, edges: object, words: object) -> Graph:
    """Return the graph with these edges; None stands for all that there are."""
    if edges is None:
        return Graph.complete(parties).named(_text("words", words))
    listed = np.frombuffer(base64.b64decode(_text("edges", edges), validate=True), dtype="<i8")
    return Graph(parties, listed.reshape(-1, 2)).named(_text("words", words))


def _edges(graph: Graph) -> str | None:
    """Return the edges as text, None for all that there are."""
    return None if graph.whole else base64.b64encode(graph.stored).decode("ascii")


def _polygon(
    alphas: tuple[object, ...],
    powers: tuple[object, ...],
    rests: tuple[object, ...],
    betas: tuple[object, ...],
    ratios: tuple[object, ...],
    slack: object,
) -> PiecewiseLinearTradeOff:
    """Return the trade-off function with these corners."""
    corners = Corners(
        alphas=_numbers("alphas", alphas, _RATE),
        powers=_numbers("powers", powers, _RATE),
        rests=_numbers("rests", rests, _RATE),
        betas=_numbers("betas", betas, _RATE),
        ratios=_numbers("ratios", ratios, _RATIO),
        slack=_validate.real("slack", slack, _RATE),
    )
    sizes = {len(rates) for rates in (alphas, powers, rests, betas)}
    rising = list(corners.alphas) == sorted(corners.alphas)
    falling = list(corners.betas) == sorted(corners.betas, reverse=True)
    if sizes != {len(ratios) + 1} or not (rising and falling):
        raise ParameterError("tradeoff", corners, "as many rates of each kind, in order")
    return polyline_tradeoff(corners, None)


def _group(inner: object, size: object) -> GroupTradeOff:
    """Return the trade-off function for a group."""
    if not isinstance(inner, TradeOff):
        raise ParameterError("inner", inner, "a trade-off function")
    return GroupTradeOff(inner, _validate.count("size", size, WHOLE))


def _renyi(curve: object) -> RenyiTradeOff:
    """Return the trade-off function of Renyi divergences."""
    if not isinstance(curve, RenyiCurve):
        raise ParameterError("curve", curve, "a curve of Renyi divergences")
    return RenyiTradeOff(curve)


def _text(name: str, value: object) -> str:
    """Return a text, or raise."""
    if not isinstance(value, str):
        raise ParameterError(name, value, "a text")
    return value


def _numbers(name: str, values: tuple[object, ...], domain: Domain) -> tuple[float, ...]:
    """Return numbers of a domain, or raise."""
    return tuple(_validate.real(name, value, domain) for value in values)


def release_of(f: Any) -> dict[str, Mechanism]:
    """Return the plan that a trade-off function is of, or raise where none is known."""
    if isinstance(f.release, Mechanism):
        return {"plan": f.release}
    allowed = "that of a plan or of one formula; this profile is known to the program alone"
    raise ParameterError("tradeoff", f, allowed)


_POLYGON: Final = by_fields(Corners, _polygon)
# Types whose constructors do not take their fields, or do not check them.
SPECIAL: Final[Mapping[str, Form]] = {
    "Encoder": replace(by_fields(Encoder, _encoder), optional=("strategy",)),
    "Graph": Form(
        Graph,
        ("parties", "edges", "words"),
        lambda graph: {"parties": graph.parties, "edges": _edges(graph), "words": graph.words},
        _graph,
    ),
    "Origin": by_fields(Origin, _origin),
    "tradeoffs.ApproxTradeOff": Form(
        ApproxTradeOff,
        ("epsilon", "delta"),
        lambda f: dict(zip(("epsilon", "delta"), f.guarantee, strict=True)),
        ApproxTradeOff,
    ),
    "tradeoffs.GroupTradeOff": by_fields(GroupTradeOff, _group),
    "tradeoffs.PiecewiseLinearTradeOff": Form(
        PiecewiseLinearTradeOff, _POLYGON.names, lambda f: _POLYGON.apart(f.corners), _POLYGON.made
    ),
    "tradeoffs.RenyiTradeOff": by_fields(RenyiTradeOff, _renyi),
}
