"""The edges of the domains: one row for each defined answer, one for each refusal."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

import hockeystick as hs

INF = math.inf
STEP = hs.PoissonSubsampled(hs.Gaussian(1.0), rate=0.01)
PLAN = STEP**100


def sampled(noise_multiplier: float, rate: float, steps: int = 100) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise_multiplier), rate) ** steps


@dataclass(frozen=True)
class Edge:
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


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: f"{edge.name}, {edge.quantity}")
def test_the_answer_at_an_edge_is_the_defined_one(edge: Edge) -> None:
    question = hs.epsilon if edge.quantity == "epsilon" else hs.delta
    answer = question(edge.plan, edge.value)
    assert answer.estimate == answer.upper == edge.expected
    assert answer.lower <= edge.expected
    assert answer.relative_width <= 1e-11


def test_noise_0_costs_nothing_where_delta_covers_the_chance_of_being_sampled() -> None:
    plan = sampled(0.0, 0.01, 1)
    assert hs.epsilon(plan, 0.0101).upper == 0.0
    assert hs.epsilon(plan, 0.0099).upper == INF


@pytest.mark.parametrize("steps", [1, 2, 1000])
def test_noise_0_shows_the_record_with_the_chance_of_being_sampled_at_all(steps: int) -> None:
    answer = hs.delta(sampled(0.0, 0.01, steps), epsilon=3.0)
    truth = -math.expm1(steps * math.log1p(-0.01))
    assert answer.lower <= truth * (1 + 1e-14)
    assert answer.upper >= truth * (1 - 1e-14)
    assert answer.relative_width < 1e-9


@pytest.mark.parametrize(
    "value",
    [None, 3, "plan", [STEP], hs.Gaussian, object()],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("ask", [hs.epsilon, hs.delta])
def test_only_a_mechanism_is_a_plan(value: Any, ask: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^plan must be a mechanism.*; got "):
        ask(value, 0.1)


@pytest.mark.parametrize("call", [hs.epsilon, hs.delta])
def test_sampling_of_a_composition_is_refused_by_path_and_reason(call: Any) -> None:
    inner = hs.Composed((hs.Gaussian(1), hs.Gaussian(2)))
    plan = hs.Gaussian(3) @ (hs.PoissonSubsampled(inner, 0.1) ** 5)
    with pytest.raises(
        hs.errors.UnsupportedError, match=r"plan\.parts\[1\]\.inner .*repeat or compose"
    ):
        call(plan, 0.5)
