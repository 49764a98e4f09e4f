"""The verdicts on answers of every mechanism: true answers hold, altered and broken ones do not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.answers import document
from hockeystick.errors import AnswerError
from hockeystick.mechanisms import schedules
from tests.laws.test_laws import DELTA

EPSILON: Final = 0.7
STEP: Final = hs.PoissonSubsampled(hs.Gaussian(1.2), rate=0.02)
# What the verifier has a definition of, besides the examples of the laws that it covers.
PLANS: Final[tuple[hs.Mechanism, ...]] = (
    hs.Gaussian(2.0) ** 10,
    STEP**1000,
    *(
        hs.DPSGD(noise_multiplier=1.2, rate=0.02, steps=1000, adjacency=adjacency)
        for adjacency in ("add-remove", "zero-out", "replace-one")
    ),
    hs.DPSGD(noise_multiplier=1.5, rate=0.01, steps=1000, schedule=schedules.Staircase(0.5, 2)),
    hs.RandomizedResponse(1.6, categories=5) ** 3,
    hs.DiscreteGaussian(4.0) ** 5,
    hs.DiscreteLaplace(2.0) ** 3,
    hs.Laplace(2.0) ** 3,
    hs.Laplace(12.0) ** 3000,
    hs.PoissonSubsampled(hs.Laplace(4.0), rate=0.01) ** 5000,
    hs.GDP(0.5) @ hs.Gaussian(3.0),
    hs.ApproxDP(0.2, 1e-6) @ hs.Gaussian(3.0),
    STEP**500 @ hs.Gaussian(8.0) @ hs.PoissonSubsampled(hs.Gaussian(2.0), rate=0.1) ** 10,
    hs.FixedSizeSubsampled(hs.Gaussian(2.0), 10, 1000) ** 50,
)
# Of which one is given, the other one asked for.
QUANTITIES: Final = ("delta", "epsilon")


def document_of(plan: hs.Mechanism, name: str) -> dict[str, Any]:
    answer = hs.epsilon(plan, DELTA) if name == "delta" else hs.delta(plan, EPSILON)
    return document(answer, plan)


OUTCOMES = {"verified", "refuted", "not covered", "refused"}


def outcome(text: str) -> str:
    """Return the status of a verdict, or "refused" with one line; whatever else is raised fails."""
    try:
        return hs.verify(text).status
    except AnswerError as error:
        said = str(error)
    assert said
    assert "\n" not in said
    return "refused"


@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_true_answer_is_verified_and_an_end_beyond_the_truth_refuted(
    plan: hs.Mechanism, name: str
) -> None:
    told = document_of(plan, name)
    verdict = hs.verify(told)
    assert (verdict.status, verdict.reason, verdict.exit_status) == ("verified", "", 0)
    assert verdict.checks
    assert all(check.holds for check in verdict.checks)
    beyond = told["upper"] * (1.0 + 1e-8) + 1e-30
    altered = [told | {"lower": beyond, "upper": beyond}]
    if told["lower"] > 0.0:
        altered.append(told | {"lower": 0.0, "upper": told["lower"] * (1.0 - 1e-8)})
    for wrong in altered:
        verdict = hs.verify(wrong)
        assert (verdict.status, verdict.exit_status) == ("refuted", 1)
        assert verdict.reason
        assert not all(check.holds for check in verdict.checks)


def test_a_solution_is_verified_and_its_two_plans_cannot_be_swapped() -> None:
    found = hs.calibrate(STEP**1000, "noise_multiplier", hs.ApproxDP(epsilon=2, delta=1e-5))
    told = document(found)
    assert hs.verify(found).status == hs.verify(told).status == "verified"
    meets, misses = told["description"], told["misses"]
    for broken in (
        {"description": misses},
        {"misses": meets},
        {"description": misses, "misses": meets},
        {"description": misses, "misses": meets, "value": min(told["bracket"])},
        {"budget": {"epsilon": 1.99, "delta": 1e-5}},
        {"budget": {"epsilon": 2.0, "delta": 0.99e-5}},
    ):
        assert outcome(json.dumps({**told, **broken})) in {"refuted", "refused"}


def test_an_answer_of_another_plan_is_refuted() -> None:
    told = document_of(STEP**1000, "delta")
    for change in ({"count": 1001}, {"count": 999}):
        altered = copy.deepcopy(told)
        altered["description"] |= change
        assert hs.verify(altered).status == "refuted"
    assert hs.verify({**told, "at": {"delta": 0.99e-5}}).status == "refuted"


def places(told: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = told.items() if isinstance(told, dict) else enumerate(told)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


QUICK: Final = hs.DPSGD(noise_multiplier=6.0, examples=100, batch_size=100, epochs=10)
SOLVED: Final = document(hs.calibrate(QUICK, "epochs", hs.ApproxDP(epsilon=2, delta=1e-5)))
WRONG: Final[tuple[Any, ...]] = None, True, [], {}, "", "nan", "inf", -1, 0, 0.5, 10**400, "x" * 50


@pytest.mark.parametrize("told", [document_of(QUICK, "delta"), SOLVED], ids=["answer", "solution"])
def test_whatever_is_broken_is_refused_in_one_line_or_judged(told: dict[str, Any]) -> None:
    for path in places(told):
        for value in WRONG:
            broken = copy.deepcopy(told)
            inside: Any = broken
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1]] = value
            assert outcome(json.dumps(broken)) in OUTCOMES
        if isinstance(path[-1], str):
            del inside[path[-1]]
            assert outcome(json.dumps(broken)) in OUTCOMES


def test_a_word_that_is_not_known_is_never_taken_for_one_that_is() -> None:
    told = document_of(QUICK, "delta")
    words = [name for name, value in told["description"].items() if isinstance(value, str)]
    assert set(words) == {"type", "sampling", "adjacency", "clipping"}
    for name in words:
        for word in ("x", "", "Individual", "add_remove"):
            broken = {**told, "description": told["description"] | {name: word}}
            assert outcome(json.dumps(broken)) in {"refused", "not covered"}


def test_what_is_no_answer_is_refused_by_the_name_of_the_field() -> None:
    told = document_of(QUICK, "delta")
    cases: tuple[dict[str, Any], ...] = (
        {"schema": "hockeystick-answer/2"},
        {"upper": "nan"},
        {"lower": -1.0},
        {"at": []},
        {"description": "Gaussian"},
    )
    for broken in cases:
        (key,) = broken
        for wrong in ({**told, **broken}, {name: told[name] for name in told if name != key}):
            with pytest.raises(AnswerError, match=key):
                hs.verify(wrong)


GAUSSIAN: Final = {"type": "Gaussian", "noise_multiplier": 1}
RESPONSE: Final = {"type": "RandomizedResponse", "epsilon": 1, "categories": 2}
SAMPLE_OF_ONE: Final = {
    "type": "FixedSizeSubsampled",
    "inner": GAUSSIAN,
    "batch_size": 1,
    "examples": 10,
    "adjacency": "zero-out",
}
SAMPLES: Final = {"type": "Repeated", "count": 50, "inner": SAMPLE_OF_ONE}
# What an answer in another hand may say, the end that it gives at a delta, and what that deserves.
STRANGE: Final[tuple[tuple[dict[str, Any], float, float, float, str], ...]] = (
    ({"type": "ApproxDP", "epsilon": 0, "delta": 0.1}, 0.01, 0, 0.5, "refuted"),
    ({"type": "PureDP", "epsilon": 1}, 0, 5, 5, "not covered"),
    ({"type": "PureDP", "epsilon": 1}, 0, 0, 1, "verified"),
    ({"type": "PureDP", "epsilon": 1}, 0, 0, 0.9, "refuted"),
    ({"type": "DiscreteGaussian", "sigma": 1, "sensitivity": 0}, 1e-5, 0, 0.5, "refused"),
    ({"type": "DiscreteLaplace", "scale": 1, "sensitivity": 0}, 1e-5, 0, 0.5, "refused"),
    (SAMPLES, 1e-3, 0, 3, "not covered"),
    (SAMPLES, 1e-3, 0, 0.9, "refuted"),
    (SAMPLES, 1e-3, 4, 5, "refuted"),
    (SAMPLE_OF_ONE | {"examples": 0}, 1e-3, 0, 1, "refused"),
    ({"type": "PoissonSubsampled", "inner": RESPONSE, "rate": 1.5}, 1e-3, 0, 3, "refused"),
    ({"type": "ApproxDP", "epsilon": 1, "delta": 2}, 0.1, 0, 1, "refused"),
    (RESPONSE | {"categories": 1}, 0.1, 0, 0, "refused"),
)


@pytest.mark.parametrize(("description", "delta", "lower", "upper", "expected"), STRANGE)
def test_what_no_plan_of_this_library_says_is_judged_by_its_truth(
    description: dict[str, Any], delta: float, lower: float, upper: float, expected: str
) -> None:
    told = {
        "schema": "hockeystick-answer/1",
        "kind": "certified",
        "quantity": "epsilon",
        "at": {"delta": delta},
        "lower": lower,
        "upper": upper,
        "description": description,
    }
    assert outcome(json.dumps(told)) == expected
