"""The edges of the domains: one row for each defined answer, one for each refusal."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs

INF = math.inf
STEP = hs.PoissonSubsampled(hs.Gaussian(1.0), rate=0.01)
PLAN = STEP**100


def sampled(noise_multiplier: float, rate: float, steps: int = 100) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise_multiplier), rate) ** steps


def upper(answer: hs.Certified | hs.Approximate) -> float:
    assert isinstance(answer, hs.Certified)
    return float(answer)


@dataclass(frozen=True)
class Edge:
    """What a plan costs at an edge, by every accountant that proves something."""

    name: str
    plan: hs.Mechanism
    quantity: str
    value: float
    expected: float


EDGES = (
    Edge("rate 0", sampled(1.0, 0.0), "epsilon", 1e-5, 0.0),
    Edge("rate 0", sampled(1.0, 0.0), "delta", 0.0, 0.0),
    Edge("rate 0, no noise", sampled(0.0, 0.0), "epsilon", 0.0, 0.0),
    Edge("steps 0", sampled(1.0, 0.01, 0), "epsilon", 1e-5, 0.0),
    Edge("steps 0", sampled(1.0, 0.01, 0), "epsilon", 0.0, 0.0),
    Edge("steps 0", sampled(1.0, 0.01, 0), "delta", 0.0, 0.0),
    Edge("steps 0, no noise", sampled(0.0, 1.0, 0), "epsilon", 0.0, 0.0),
    Edge("noise 0", hs.Gaussian(0) ** 3, "epsilon", 1e-5, INF),
    Edge("noise 0", hs.Gaussian(0), "delta", 5.0, 1.0),
    Edge("noise 0, sampled", sampled(0.0, 0.01), "epsilon", 1e-5, INF),
    Edge("noise inf", hs.Gaussian(INF) ** 3, "epsilon", 1e-5, 0.0),
    Edge("noise inf", sampled(INF, 0.5), "epsilon", 0.0, 0.0),
    Edge("noise inf", sampled(INF, 0.5), "delta", 0.0, 0.0),
    Edge("delta 0", PLAN, "epsilon", 0.0, INF),
    Edge("delta 0", hs.Gaussian(3), "epsilon", 0.0, INF),
    Edge("delta 1", PLAN, "epsilon", 1.0, 0.0),
    Edge("delta 1, no noise", hs.Gaussian(0), "epsilon", 1.0, 0.0),
    Edge("epsilon inf", PLAN, "delta", INF, 0.0),
    Edge("epsilon inf", hs.Gaussian(3), "delta", INF, 0.0),
    Edge("epsilon inf, no noise", hs.Gaussian(0), "delta", INF, 1.0),
)


def ask(edge: Edge, accountant: str = "auto") -> hs.Certified:
    question = hs.epsilon if edge.quantity == "epsilon" else hs.delta
    answer = question(edge.plan, edge.value, accountant=accountant)
    assert isinstance(answer, hs.Certified)
    return answer


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: f"{edge.name}, {edge.quantity}")
def test_the_answer_at_an_edge_is_the_defined_one(edge: Edge) -> None:
    answer = ask(edge)
    assert answer.estimate == answer.upper == edge.expected
    assert answer.lower <= edge.expected
    assert answer.relative_width <= 1e-11


@pytest.mark.parametrize("accountant", ["closed-form", "contour", "rdp"])
@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: f"{edge.name}, {edge.quantity}")
def test_no_accountant_contradicts_an_edge(edge: Edge, accountant: str) -> None:
    try:
        answer = ask(edge, accountant)
    except hs.errors.UnsupportedError:
        return
    assert answer.lower <= edge.expected <= answer.upper


def test_noise_0_costs_nothing_where_delta_covers_the_chance_of_being_sampled() -> None:
    plan = sampled(0.0, 0.01, 1)
    assert upper(hs.epsilon(plan, 0.0101)) == 0.0
    assert upper(hs.epsilon(plan, 0.0099)) == INF


@pytest.mark.parametrize("steps", [1, 2, 1000])
def test_noise_0_shows_the_record_with_the_chance_of_being_sampled_at_all(steps: int) -> None:
    answer = hs.delta(sampled(0.0, 0.01, steps), epsilon=3.0)
    assert isinstance(answer, hs.Certified)
    truth = -math.expm1(steps * math.log1p(-0.01))
    assert answer.lower <= truth * (1 + 1e-14)
    assert answer.upper >= truth * (1 - 1e-14)
    assert answer.relative_width < 1e-9


def test_delta_0_costs_only_what_adding_can_lose_where_removing_is_impossible_to_see() -> None:
    assert upper(hs.epsilon(hs.Gaussian(INF) @ sampled(1.0, 0.0), 0.0)) == 0.0
    assert upper(hs.epsilon(STEP, 0.0)) == INF


NOT_IN_UNIT = "a number from 0 to 1"
NOT_POSITIVE = "a number >= 0 or inf"
NOT_COUNT = "an integer from 0 to 10^15"

REFUSED: tuple[tuple[str, Callable[[Any], Any], str, tuple[Any, ...]], ...] = (
    (
        "delta",
        lambda x: hs.epsilon(PLAN, x),
        NOT_IN_UNIT,
        (math.nan, -1e-9, 1.0000001, INF, -INF, "1e-5", None, True, 1j, {0.1}, Decimal("NaN")),
    ),
    (
        "epsilon",
        lambda x: hs.delta(PLAN, x),
        NOT_POSITIVE,
        (math.nan, -1e-300, -INF, "1", None, False, 2j, {}),
    ),
    (
        "noise_multiplier",
        hs.Gaussian,
        NOT_POSITIVE,
        (math.nan, -1, -INF, "1.1", None, True, 1 + 0j, (1,)),
    ),
    (
        "rate",
        lambda x: hs.PoissonSubsampled(hs.Gaussian(1), x),
        NOT_IN_UNIT,
        (math.nan, -0.1, 1.1, INF, "0.5", None, True, Fraction(3, 2)),
    ),
    (
        "count",
        lambda x: STEP**x,
        NOT_COUNT,
        (math.nan, -1, 0.5, 1e16, 10**15 + 1, INF, "3", None, True, 2j),
    ),
    (
        "steps",
        lambda x: hs.DPSGD(rate=0.1, steps=x, noise_multiplier=1),
        NOT_COUNT,
        (math.nan, -1, 0.5, 10**16, INF, "3", True),
    ),
    (
        "digits",
        lambda x: hs.epsilon(PLAN, 1e-5, digits=x),
        "an integer from 1 to 1000",
        (0, -3, 2.5, 1001, math.nan, "30", True),
    ),
)
ROWS = [(*row[:3], value) for row in REFUSED for value in row[3]]


@pytest.mark.parametrize(
    ("name", "call", "allowed", "value"), ROWS, ids=[f"{r[0]}={r[3]!r}" for r in ROWS]
)
def test_a_value_outside_its_domain_is_refused_by_name_value_and_what_is_allowed(
    name: str, call: Callable[[Any], Any], allowed: str, value: Any
) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        call(value)
    assert caught.value.name == name
    assert caught.value.value is value
    assert caught.value.allowed == allowed
    text = str(caught.value)
    assert name in text
    assert allowed in text
    assert "\n" not in text


@pytest.mark.parametrize("value", ["", "contours", "lattice", None, 3])
def test_an_unknown_accountant_is_refused_with_those_there_are(value: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^accountant must be one of 'auto'.*'rdp'"):
        hs.epsilon(PLAN, 1e-5, accountant=value)


@pytest.mark.parametrize(
    "value",
    [None, 3, "plan", [STEP], hs.Gaussian, object()],
    ids=lambda value: type(value).__name__,
)
def test_only_a_mechanism_is_a_plan(value: Any) -> None:
    for call in (
        lambda: hs.epsilon(value, 1e-5),
        lambda: hs.delta(value, 1.0),
        lambda: hs.compare(value, delta=1e-5),
    ):
        with pytest.raises(
            hs.errors.ParameterError, match=r"^plan must be a mechanism( \(.*\))?; got "
        ):
            call()


@pytest.mark.parametrize("parts", [(), [], None, 3, (STEP, None), ("a",)])
def test_a_composition_of_nothing_or_of_no_mechanisms_is_refused(parts: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^parts"):
        hs.Composed(parts)


@pytest.mark.parametrize("call", [hs.epsilon, hs.delta])
def test_sampling_of_a_composition_is_refused_by_path_and_reason(call: Any) -> None:
    inner = hs.Composed((hs.Gaussian(1), hs.Gaussian(2)))
    plan = hs.Gaussian(3) @ (hs.PoissonSubsampled(inner, 0.1) ** 5)
    with pytest.raises(
        hs.errors.UnsupportedError, match=r"plan\.parts\[1\]\.inner .*repeat or compose"
    ):
        call(plan, 0.5)
