"""Answers for programs: strict JSON, with inf as the text "inf"."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from hockeystick.accountants import GaussianSummary, Row, SamplingRow, best_order, central_limit_mu
from hockeystick.accountants.comparison import Truth, quoted
from hockeystick.accountants.limits.gdp import GaussianLimit
from hockeystick.accountants.theorems.rdp import RDP
from hockeystick.answers import SCHEMA, cautions, document, sources, sources_of_all
from hockeystick.answers.cautions import caution_of_notes
from hockeystick.cli import flags
from hockeystick.io.plan_file import PlanFile
from hockeystick.mechanisms import DPSGD, Encoder, Graph, Mechanism
from hockeystick.mechanisms.selection.tuning import RunCount
from hockeystick.mechanisms.training.schedules import Schedule
from hockeystick.numerics.numerals import jsonable
from hockeystick.results import Approximate, Certified
from hockeystick.tradeoffs import TradeOff

if TYPE_CHECKING:
    from hockeystick.cli.flags import Decided, Question
    from hockeystick.verifier import Verdict


def answer(
    file: PlanFile,
    at: Question,
    answer: Certified | Approximate,
    version: str,
    verdict: Verdict | None = None,
    summary: GaussianSummary | None = None,
    decided: Decided | None = None,
) -> str:
    """Return the answer to one question as JSON; what is proven, as a document to check."""
    besides: dict[str, Any] = {} if summary is None else {"gaussian": summary.as_dict()}
    told = _answer(file, at, answer, version, decided, besides)
    return dumped({**told, **verification(verdict)})


def _answer(
    file: PlanFile,
    at: Question,
    answer: Certified | Approximate,
    version: str,
    decided: Decided | None,
    besides: dict[str, Any],
) -> dict[str, Any]:
    """Return the answer to one question; what is proven, as a document to check."""
    heading = _heading(file, at, version)
    if decided is not None:
        besides["budget"] = {
            "at_most": jsonable(decided.at_most),
            "decision": decided.decision,
            "reservation": decided.reservation or None,
        }
    doubt = None if decided is None else caution_of_notes(file.plan, file.notes)
    found = (*([doubt] if doubt else []), *cautions(answer, file.plan, **{at.name: at.value}))
    besides["cautions"] = [{"about": one.about, "text": one.text} for one in found]
    theorems = sources(file.plan, answer.accountant)
    besides["sources"] = [{"of": one.of, "text": one.text} for one in theorems]
    if answer.accountant == GaussianLimit.name:
        besides["mu"] = jsonable(central_limit_mu(file.plan).value)
    if answer.accountant == RDP.name and answer.quantity == "epsilon":
        besides["order"] = jsonable(best_order(file.plan, at.value))
    if isinstance(answer, Approximate):
        return {**heading, **answer.as_dict(), **besides}
    asked: Any = {at.name: at.value}
    return {"schema": SCHEMA, **heading, **document(answer, file.plan, **asked), **besides}


def verification(verdict: Verdict | None) -> dict[str, Any]:
    """Return what the verifier says, under a key of its own; nothing where it was not asked."""
    return {} if verdict is None else {"verification": said(verdict)}


def said(verdict: Verdict) -> dict[str, Any]:
    """Return the verifier's verdict."""
    return {
        "status": verdict.status,
        "reason": verdict.reason or None,
        "checks": [
            {"claim": one.claim, "ball": one.ball, "holds": one.holds} for one in verdict.checks
        ],
    }


def comparison(file: PlanFile, at: Question, rows: Sequence[Row], version: str) -> str:
    """Return every accountant's answer as JSON."""
    truth = Truth.of(rows)
    proven = {"lower": jsonable(truth.lower), "upper": jsonable(truth.upper)}
    listed = [_row(row, truth) for row in rows]
    theorems = [{"of": one.of, "text": one.text} for one in sources_of_all(file.plan, rows)]
    told = {"proven": proven, "accountants": listed, "sources": theorems}
    return dumped({**_heading(file, at, version), **told})


def samplings(file: PlanFile, at: Question, rows: Sequence[SamplingRow], version: str) -> str:
    """Return the answers for each sampling as JSON."""
    listed = [
        {
            "sampling": row.sampling,
            "adjacency": row.adjacency,
            "answer": None if row.answer is None else row.answer.as_dict(),
            "reason": row.reason or None,
            "seconds": row.seconds,
        }
        for row in rows
    ]
    return dumped({**_heading(file, at, version), "samplings": listed})


def _heading(file: PlanFile, at: Question, version: str) -> dict[str, Any]:
    """Return the question as JSON."""
    return {
        "version": version,
        "title": file.title,
        "source": file.source,
        "notes": file.notes,
        "plan": fields(file.plan),
        "quantity": at.quantity,
        "at": {at.name: jsonable(at.value)},
    }


def _row(row: Row, truth: Truth) -> dict[str, Any]:
    """Return the answer of one accountant."""
    told: dict[str, Any] = {
        "accountant": row.accountant,
        "kind": row.kind,
        "answer": None,
        "reason": row.reason or None,
        "seconds": row.seconds,
    }
    if row.answer is not None:
        value = quoted(row.answer)
        ratio = truth.ratio(value)
        told["answer"] = row.answer.as_dict()
        told["ratio_to_proven_upper"] = None if ratio is None else jsonable(ratio)
        told["below_the_truth"] = truth.is_above(value)
    return told


def dumped(told: Mapping[str, Any]) -> str:
    """Return strict JSON in ASCII, which every locale can print, with what was not given."""
    known = [one.as_dict() for one in flags.taken()]
    besides = {"defaults": known} if known else {}
    return json.dumps({**told, **besides}, indent=2, allow_nan=False)


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
