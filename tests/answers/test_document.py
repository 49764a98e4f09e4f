"""Answers as documents: strict JSON that holds the plan exactly and all that is claimed of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.answers import SCHEMA, document
from hockeystick.calibration import describe, read_description
from hockeystick.errors import ParameterError
from tests.examples import EXAMPLES

STEP = hs.PoissonSubsampled(hs.Gaussian(2.0), rate=0.1)
BUDGET = hs.ApproxDP(epsilon=1, delta=1e-5)


def through_json(told: dict[str, Any]) -> dict[str, Any]:
    """Return what a program reads that knows no NaN and no infinity."""
    read: dict[str, Any] = json.loads(json.dumps(told, allow_nan=False))
    return read


@pytest.mark.parametrize("plan", EXAMPLES, ids=str)
def test_a_document_has_the_plan_of_every_kind_exactly(plan: hs.Mechanism) -> None:
    answer = hs.Certified(0.5, 0.6, 0.7, quantity="delta", accountant="prv")
    told = through_json(document(answer, plan, epsilon=0.25))
    assert read_description(told["description"]) == plan
    assert describe(read_description(told["description"])) == told["description"]
    assert (told["schema"], told["version"]) == (SCHEMA, hs.__version__)
    assert (told["lower"], told["upper"]) == (0.5, 0.7)
    assert (told["quantity"], told["at"]) == ("delta", {"epsilon": 0.25})


def test_a_solution_has_the_plan_that_meets_the_target_and_the_one_that_misses_it() -> None:
    found = hs.calibrate(STEP**100, "noise_multiplier", BUDGET)
    told = through_json(document(found))
    assert (told["parameter"], told["value"]) == ("noise_multiplier", found.value)
    assert told["budget"] == {"epsilon": 1.0, "delta": 1e-5}
    assert told["bracket"] == list(found.bracket)
    meets, misses = read_description(told["description"]), read_description(told["misses"])
    assert meets == found.plan
    assert hs.epsilon(meets, delta=1e-5).upper == found.achieved.upper <= 1
    assert hs.epsilon(misses, delta=1e-5).lower > 1
    assert told["misses"]["inner"]["inner"]["noise_multiplier"] == min(found.bracket)


def test_what_was_spent_is_part_of_what_a_budget_covers() -> None:
    spent = hs.Gaussian(5.0)
    found = hs.calibrate(STEP**100, "noise_multiplier", BUDGET, spent=spent)
    told = through_json(document(found))
    meets, misses = read_description(told["description"]), read_description(told["misses"])
    assert meets == spent @ found.plan
    assert hs.epsilon(meets, delta=1e-5).upper <= 1 < hs.epsilon(misses, delta=1e-5).lower
    assert told["adjacency"] == "add-remove"


@pytest.mark.parametrize(
    ("target", "budget"),
    [
        (hs.ApproxDP(0.5, 1e-5), {"epsilon": 0.5, "delta": 1e-5}),
        (hs.calibration.Advantage(0.2), {"epsilon": 0.0, "delta": 0.2}),
        (hs.GDP(0.5), None),
        (hs.calibration.TruePositiveRate(0.2, 0.01), None),
    ],
    ids=str,
)
def test_only_one_epsilon_and_delta_are_a_budget(
    target: Any, budget: dict[str, float] | None
) -> None:
    found = hs.calibrate(hs.Gaussian(2.0), "noise_multiplier", target)
    assert through_json(document(found))["budget"] == budget


UNASKED = hs.Certified(1.0, 1.0, 1.0, quantity="epsilon", accountant="rdp")
SOLVED = hs.calibrate(hs.Gaussian(2.0), "noise_multiplier", BUDGET)
WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (STEP, {}, "a Certified or a Calibrated, which are proven; got Poisson"),
    (hs.epsilon(STEP, delta=0.1, accountant="gdp"), {}, "a Calibrated, which are proven"),
    (hs.epsilon(STEP, delta=0.1), {"delta": 0.1}, "plan must be given beside a Certified epsilon"),
    (UNASKED, {"plan": STEP}, "delta must be given beside a Certified epsilon"),
    (hs.epsilon(STEP, delta=0.1), {"plan": STEP, "epsilon": 1.0}, "epsilon must be left out"),
    (hs.delta(STEP, epsilon=1), {"plan": STEP, "epsilon": -1.0}, "epsilon must be a number >= 0"),
    (hs.delta(STEP, epsilon=1), {"plan": "STEP", "epsilon": 1.0}, "plan must be a mechanism"),
    (SOLVED, {"plan": STEP}, "plan must be left out beside a Calibrated"),
]


@pytest.mark.parametrize(("answer", "given", "said"), WRONG, ids=[one[2] for one in WRONG])
def test_what_is_no_answer_or_does_not_go_with_it_is_refused(
    answer: Any, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        document(answer, **given)
    assert said in str(caught.value)
