"""Printed epsilons beside truths that were computed by another route."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.reporting.sides import OWN, Ends, Question, Side, here, is_answer
from benchmarks.reporting.worker import Crew, Outcome, ends_of

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
    """A side's answer to a case, if it had one."""

    case: Case
    ends: Ends | None
    failure: str

    @property
    def answered(self) -> bool:
        """Whether there is a finite number."""
        return self.ends is not None and is_answer(self.ends)

    @property
    def ratio(self) -> float:
        """The printed number over the truth; nothing printed claims nothing."""
        if self.ends is None or not self.answered:
            return math.inf
        return float(Decimal(self.ends[1]) / self.case.truth)

    @property
    def excess(self) -> float:
        """How much of the truth is printed on top of it, without cancellation."""
        if self.ends is None or not self.answered:
            return math.inf
        return float(Decimal(self.ends[1]) / self.case.truth - 1)

    @property
    def too_small(self) -> bool:
        """Whether the printed number lies below the truth."""
        if self.ends is None or not self.answered:
            return False
        return Decimal(self.ends[1]) < self.case.truth * (1 - RESOLUTION)

    @property
    def too_large(self) -> bool:
        """Whether the lower end lies above the truth."""
        if self.ends is None or not self.answered:
            return False
        return Decimal(self.ends[0]) > self.case.truth * (1 + RESOLUTION)


def judged(case: Case, outcome: Outcome) -> Judged:
    """Return an outcome beside the truth."""
    ends = ends_of(outcome)
    failure = outcome.failure or ("" if ends and is_answer(ends) else "no finite answer")
    return Judged(case, ends, failure)


def chosen(usual: int, small: int) -> list[Case]:
    """Return the first few cases of each kind of delta."""
    known = cases()
    return [case for case in known if case.usual][:usual] + [
        case for case in known if not case.usual
    ][:small]


def judgements(crew: Crew, asked: list[Case], limit: float, tick: Any) -> dict[str, list[Judged]]:
    """Return every side's answers, two libraries at a time: nothing is timed here."""
    libraries: dict[str, list[Side]] = {}
    for side in here():
        libraries.setdefault(side.library, []).append(side)

    def ask(sides: list[Side]) -> dict[str, list[Judged]]:
        found: dict[str, list[Judged]] = {side.name: [] for side in sides}
        for side in sides:
            for case in asked:
                if crew.stopped:
                    break
                found[side.name].append(judged(case, crew.ask(side, case.question, limit)))
                tick()
        return found

    # Those that take longest begin.
    waiting = sorted(libraries.values(), key=lambda sides: sides[0].library, reverse=True)
    with ThreadPoolExecutor(2) as pool:
        try:
            merged = {name: ones for part in pool.map(ask, waiting) for name, ones in part.items()}
        except BaseException:
            crew.stop()
            raise
    return {side.name: merged[side.name] for side in here()}


def own_widths(crew: Crew, asked: list[Case], limit: float, track: Any) -> list[Judged]:
    """Return this package's own answers to many cases."""
    return [judged(case, crew.ask(OWN, case.question, limit)) for case in track(asked, "widths")]


def worst(found: list[Judged], count: int) -> list[Judged]:
    """Return the numbers that lie furthest below the truth."""
    return sorted((one for one in found if one.too_small), key=lambda one: one.ratio)[:count]
