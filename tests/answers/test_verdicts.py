"""The verdicts on answers of every mechanism: true answers hold, altered and broken ones do not."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.answers import document
from hockeystick.errors import AnswerError
from hockeystick.mechanisms import schedules
from tests.laws.test_laws import DELTA, EPSILON, EXAMPLES

STEP: Final = hs.PoissonSubsampled(hs.Gaussian(1.2), rate=0.02)
SCHEDULED: Final = hs.DPSGD(
    noise_multiplier=1.5, rate=0.01, steps=1000, schedule=schedules.Staircase(0.5, 2)
)
# What the verifier has a definition of, besides the examples of the laws that it covers.
COVERED: Final[tuple[hs.Mechanism, ...]] = (
    hs.Gaussian(2.0) ** 10,
    STEP**1000,
    *(
        hs.DPSGD(noise_multiplier=1.2, rate=0.02, steps=1000, adjacency=adjacency)
        for adjacency in ("add-remove", "zero-out", "replace-one")
    ),
    SCHEDULED,
    hs.RandomizedResponse(1.6, categories=5) ** 3,
    hs.DiscreteGaussian(4.0) ** 5,
    hs.DiscreteLaplace(2.0) ** 3,
    hs.GDP(0.5) @ hs.Gaussian(3.0),
    hs.ApproxDP(0.2, 1e-6) @ hs.Gaussian(3.0),
    STEP**500 @ hs.Gaussian(8.0) @ hs.PoissonSubsampled(hs.Gaussian(2.0), rate=0.1) ** 10,
)
LONG: Final[tuple[hs.Mechanism, ...]] = (hs.FixedSizeSubsampled(hs.Gaussian(2.0), 10, 1000) ** 50,)
PLANS: Final = (*COVERED, *(pytest.param(plan, marks=pytest.mark.slow) for plan in LONG))
# One run of these has so wide a tail that a verdict takes minutes.
WIDE: Final = (hs.FixedSizeSubsampled, hs.Laplace)
SLOW: Final = (hs.GaussianSequence, hs.PoissonSubsampled)
OF_EVERY_KIND: Final = tuple(
    pytest.param(plan, marks=pytest.mark.slow) if isinstance(plan, SLOW) else plan
    for plan in EXAMPLES
    if not isinstance(plan, WIDE)
)
# By how much an end is off, relatively, and absolutely where it is 0.
_FAR: Final = 1e-8
_TINY: Final = 1e-30


@cache
def answer_of(plan: hs.Mechanism, name: str) -> hs.Certified:
    answer = hs.epsilon(plan, DELTA) if name == "delta" else hs.delta(plan, EPSILON)
    assert isinstance(answer, hs.Certified)
    return answer


def document_of(plan: hs.Mechanism, name: str) -> dict[str, Any]:
    asked: Any = {name: DELTA if name == "delta" else EPSILON}
    return document(answer_of(plan, name), plan, **asked)


def outcome(text: str) -> str:
    """Return the status of a verdict, or "refused" with one line; whatever else is raised fails."""
    try:
        return hs.verify(text).status
    except AnswerError as error:
        said = str(error)
    assert said
    assert "\n" not in said
    return "refused"


@pytest.mark.parametrize("name", ["delta", "epsilon"])
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_an_answer_of_what_is_covered_is_verified(plan: hs.Mechanism, name: str) -> None:
    verdict = hs.verify(document_of(plan, name))
    assert (verdict.status, verdict.reason, verdict.exit_status) == ("verified", "", 0)
    assert verdict.checks
    assert all(check.holds for check in verdict.checks)


@pytest.mark.parametrize("name", ["delta", "epsilon"])
@pytest.mark.parametrize("plan", OF_EVERY_KIND, ids=str)
def test_no_answer_of_any_mechanism_is_refuted(plan: hs.Mechanism, name: str) -> None:
    verdict = hs.verify(document_of(plan, name))
    if verdict.status != "verified":
        assert (verdict.status, verdict.exit_status) == ("not covered", 3)
        assert verdict.reason
        assert "\n" not in verdict.reason


@pytest.mark.parametrize("name", ["delta", "epsilon"])
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_an_end_on_the_wrong_side_of_the_truth_is_refuted(plan: hs.Mechanism, name: str) -> None:
    answer, told = answer_of(plan, name), document_of(plan, name)
    beyond = answer.upper * (1.0 + _FAR) + _TINY
    altered = [told | {"lower": beyond, "upper": beyond}]
    if answer.lower > 0.0:
        altered.append(told | {"lower": 0.0, "upper": answer.lower * (1.0 - _FAR)})
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


def test_a_whole_number_that_was_solved_for_is_verified() -> None:
    budget = hs.ApproxDP(epsilon=2, delta=1e-5)
    found = hs.calibrate(hs.DPSGD(rate=0.01, steps=9, noise_multiplier=1), "steps", budget)
    assert hs.verify(found).status == "verified"
    told = document(found)
    told["description"] = {**told["description"], "steps": told["value"] + 1}
    told |= {"value": told["value"] + 1, "bracket": [told["value"] + 1] * 2, "misses": None}
    assert hs.verify(told).status == "refuted"


def test_what_was_spent_before_is_verified_with_the_rest() -> None:
    budget = hs.ApproxDP(epsilon=2, delta=1e-5)
    spent = hs.Gaussian(5.0)
    found = hs.calibrate(STEP**100, "noise_multiplier", budget, spent=spent)
    assert hs.verify(found).status == "verified"


def test_another_target_is_not_covered() -> None:
    found = hs.calibrate(hs.Gaussian(1.0), "noise_multiplier", hs.GDP(0.5))
    verdict = hs.verify(found)
    assert (verdict.status, verdict.exit_status) == ("not covered", 3)


def test_an_answer_of_another_plan_is_refuted() -> None:
    told = document_of(STEP**1000, "delta")
    for change in ({"count": 1001}, {"count": 999}):
        altered = copy.deepcopy(told)
        altered["description"] |= change
        assert hs.verify(altered).status == "refuted"
    assert hs.verify({**told, "at": {"delta": 0.99e-5}}).status == "refuted"


def places(told: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where there is a value in a document, at every depth."""
    pairs = told.items() if isinstance(told, dict) else enumerate(told)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


QUICK: Final = hs.DPSGD(noise_multiplier=6.0, examples=100, batch_size=100, epochs=10)
SOLVED: Final = document(hs.calibrate(QUICK, "epochs", hs.ApproxDP(epsilon=2, delta=1e-5)))
WRONG: Final[tuple[Any, ...]] = (
    None,
    True,
    [],
    {},
    "",
    "nan",
    "inf",
    -1,
    0,
    0.5,
    10**400,
    "x" * 50,
)


@pytest.mark.parametrize("told", [document_of(QUICK, "delta"), SOLVED], ids=["answer", "solution"])
def test_whatever_is_broken_is_refused_in_one_line_or_judged(told: dict[str, Any]) -> None:
    for path in places(told):
        for value in WRONG:
            broken = copy.deepcopy(told)
            inside: Any = broken
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1]] = value
            outcome(json.dumps(broken))
        if isinstance(path[-1], str):
            del inside[path[-1]]
            outcome(json.dumps(broken))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", "hockeystick-answer/2"),
        ("schema", None),
        ("upper", "nan"),
        ("upper", None),
        ("lower", -1.0),
        ("lower", True),
        ("at", []),
        ("description", None),
        ("description", "Gaussian"),
    ],
)
def test_what_is_no_answer_is_refused_by_the_name_of_the_field(key: str, value: Any) -> None:
    told = document_of(STEP**1000, "delta")
    for broken in ({**told, key: value}, {name: told[name] for name in told if name != key}):
        with pytest.raises(AnswerError) as caught:
            hs.verify(broken)
        assert key in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["{", "{}", '{"schema": NaN}', '{"a":' * 100_000, '{"upper": 1e999999999}', "{" + "1" * 5000],
    ids=["cut", "empty", "nan", "deep", "large", "digits"],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(AnswerError):
        hs.verify(text)


def test_infinite_ends_are_claims_like_others() -> None:
    loud = hs.Gaussian(0.0)
    told = document(hs.epsilon(loud, delta=0.5), loud, delta=0.5)
    assert told["upper"] == "inf"
    assert outcome(json.dumps(told)) in {"verified", "not covered"}
    claimed = document_of(STEP**1000, "delta") | {"lower": 0.0, "upper": "inf"}
    assert outcome(json.dumps(claimed)) in {"verified", "not covered"}
    assert math.isinf(float(claimed["upper"]))
