"""Printed epsilons beside truths that were computed by another route."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.reporting.sides import Ends, Question, Side, is_answer
from benchmarks.reporting.worker import Crew, Outcome

PLANS: Final = Path(__file__).parents[2] / "tests" / "oracles" / "random_plans.json"
# Smaller deltas are asked of the others too, but judged apart.
USUAL_DELTA: Final = 1e-12
# The truths have this many digits less one.
RESOLUTION: Final = Decimal("1e-18")


class Case(NamedTuple):
    """A plan and the truth."""

    question: Question
    truth: Decimal

    @property
    def usual(self) -> bool:
        """Whether delta is one that people ask for."""
        return self.question.delta >= USUAL_DELTA


def cases() -> list[Case]:
    """Return the random plans and their truths, in the order in which they were drawn."""
    return [_case(row) for row in json.loads(PLANS.read_text(encoding="utf-8"))]


def _case(row: dict[str, Any]) -> Case:
    question = Question(row["rate"], (row["noise_multiplier"],), row["steps"], row["delta"])
    return Case(question, max(Decimal(row[side]["epsilon"]) for side in ("remove", "add")))


class Judged(NamedTuple):
    """A side's answer to a case; where it had none its ends claim nothing."""

    case: Case
    ends: Ends
    failure: str

    @property
    def answered(self) -> bool:
        """Whether there is a finite number."""
        return not self.failure

    @property
    def ratio(self) -> float:
        """The printed number over the truth."""
        return float(Decimal(self.ends[1]) / self.case.truth)

    @property
    def excess(self) -> float:
        """How much of the truth is printed on top of it, without cancellation."""
        return float(Decimal(self.ends[1]) / self.case.truth - 1)

    @property
    def too_small(self) -> bool:
        """Whether the printed number lies below the truth."""
        return Decimal(self.ends[1]) < self.case.truth * (1 - RESOLUTION)

    @property
    def too_large(self) -> bool:
        """Whether the lower end lies above the truth."""
        return Decimal(self.ends[0]) > self.case.truth * (1 + RESOLUTION)


def judged(case: Case, outcome: Outcome) -> Judged:
    """Return an outcome beside the truth."""
    if outcome.failure or not is_answer(outcome.answer):
        return Judged(case, (0.0, math.inf), outcome.failure or "no finite answer")
    return Judged(case, outcome.answer, "")


def chosen(usual: int, small: int) -> list[Case]:
    """Return the first few cases of each kind of delta."""
    known = cases()
    return [case for case in known if case.usual][:usual] + [
        case for case in known if not case.usual
    ][:small]


def judgements(
    crew: Crew, sides: Iterable[Side], asked: list[Case], limit: float
) -> dict[str, list[Judged]]:
    """Return the answers of some sides."""
    return {
        side.name: [judged(case, crew.ask(side, case.question, limit)) for case in asked]
        for side in sides
    }


def worst(found: list[Judged], count: int) -> list[Judged]:
    """Return the numbers that lie furthest below the truth."""
    return sorted((one for one in found if one.too_small), key=lambda one: one.ratio)[:count]
