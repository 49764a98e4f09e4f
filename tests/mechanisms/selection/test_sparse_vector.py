"""The descriptions of sparse vectors."""

import math
from typing import Any

import pytest

import hockeystick as hs

GAUSSIAN: dict[str, Any] = {"threshold_noise": "gaussian", "query_noise": "gaussian"}


@pytest.mark.parametrize("name", ["threshold_scale", "query_scale"])
@pytest.mark.parametrize("value", [-1, math.nan, -math.inf, True, "1", None])
@pytest.mark.parametrize("kind", [hs.mechanisms.AboveThreshold, hs.mechanisms.SparseVector])
def test_scales_are_numbers_from_0_to_inf(kind: Any, name: str, value: Any) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        kind(**{"threshold_scale": 1.0, "query_scale": 1.0, name: value})
    assert caught.value.name == name
    assert caught.value.allowed == "a number >= 0 or inf"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("positives", {"positives": -1}),
        ("positives", {"positives": 1.5}),
        ("queries", {"queries": 0}),
        ("queries", {"queries": math.inf}),
        ("queries", GAUSSIAN),
        ("threshold_noise", {"threshold_noise": "normal"}),
        ("threshold_noise", {"query_noise": "gaussian", "queries": 3}),
        ("query_noise", {"query_noise": None}),
        ("monotone", {"monotone": 1}),
    ],
)
def test_other_parameters_are_refused_by_name(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        hs.mechanisms.SparseVector(1.0, 2.0, **given)
    assert caught.value.name == name


def test_a_sparse_vector_is_one_run_for_each_positive() -> None:
    plan = hs.mechanisms.SparseVector(1.0, 2.0, positives=5, monotone=True, queries=10, **GAUSSIAN)
    once = hs.mechanisms.AboveThreshold(1.0, 2.0, monotone=True, queries=10, **GAUSSIAN)
    assert plan.mechanism == hs.Repeated(once, 5)
    assert plan == hs.mechanisms.SparseVector(
        1, 2, positives=5.0, monotone=True, queries=10, **GAUSSIAN
    )
    assert plan != hs.mechanisms.SparseVector(
        1.0, 2.0, positives=5, monotone=True, queries=11, **GAUSSIAN
    )
    assert plan.adjacency is None


def test_the_text_gives_what_counts() -> None:
    plan = hs.mechanisms.SparseVector(1.5, 2.0, positives=3, monotone=True, queries=7)
    assert str(plan) == (
        "sparse vector (3 positives, laplace threshold noise of scale 1.5, laplace query noise of "
        "scale 2, monotone queries, at most 7 queries)"
    )
    assert plan.assumptions[-1] == ("After 3 noisy answers above the threshold no query is asked.")
    assert "all answers move the same way" in plan.assumptions[1]
    assert "at most 7 queries" in plan.assumptions[3]
