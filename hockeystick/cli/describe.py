"""Plans, questions and comparisons in numbers, before anyone lays them out."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, final

from hockeystick.mechanisms import DPSGD, Encoder, Graph, Mechanism
from hockeystick.mechanisms.selection.tuning import RunCount
from hockeystick.mechanisms.training.schedules import Schedule
from hockeystick.numerics.numerals import jsonable
from hockeystick.results import Quantity
from hockeystick.tradeoffs import TradeOff


@final
@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: epsilon at a delta, or delta at an epsilon."""

    name: str
    value: float

    @property
    def quantity(self) -> Quantity:
        """What the answer is."""
        return "epsilon" if self.name == "delta" else "delta"


def fields(mechanism: Mechanism) -> dict[str, Any]:
    """Return a mechanism's name and fields, and what follows from them, ready for JSON."""
    known: dict[str, Any] = {"mechanism": type(mechanism).__name__}
    if dataclasses.is_dataclass(mechanism):
        for field in dataclasses.fields(mechanism):
            if field.compare:
                known[field.name] = _jsonable(getattr(mechanism, field.name))
    return known | _derived(mechanism)


@singledispatch
def _derived(mechanism: Mechanism) -> dict[str, Any]:
    """Return what follows from a mechanism's fields and is worth telling."""
    return {}


@_derived.register
def _(plan: DPSGD) -> dict[str, Any]:
    return {
        "sampling_rate": plan.sampling_rate,
        "total_steps": plan.total_steps,
        "steps_rule": plan.steps_rule,
    }


@singledispatch
def _jsonable(value: Any) -> Any:
    """Return a field's value ready for JSON: a number, unless something else is known of it."""
    return jsonable(float(value))


@_jsonable.register
def _(value: Mechanism) -> dict[str, Any]:
    return fields(value)


@_jsonable.register
def _(value: Encoder) -> dict[str, Any]:
    return {
        "words": value.words,
        "rounds": value.rounds,
        "participations": value.participations,
        "separation": value.separation,
        "sensitivity": _jsonable(value.sensitivity),
    }


@_jsonable.register
def _(value: Graph) -> dict[str, Any]:
    return {"words": value.words, "parties": value.parties, "edges": value.size}


@_jsonable.register
def _(value: Schedule | RunCount) -> dict[str, Any]:
    own = {field.name: _jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    kind = re.sub(r"(?<!^)(?=[A-Z])", "-", type(value).__name__).lower()
    return {"kind": kind, **own}


@_jsonable.register(tuple)
def _(value: tuple[Any, ...]) -> list[Any]:
    return [_jsonable(item) for item in value]


@_jsonable.register(frozenset)
def _(value: frozenset[Any]) -> list[Any]:
    return [_jsonable(item) for item in sorted(value)]


@_jsonable.register
def _(value: str) -> str:
    return str(value)


@_jsonable.register
def _(value: int | None) -> int | None:
    return value


@_jsonable.register
def _(value: TradeOff) -> str:
    return repr(value)
