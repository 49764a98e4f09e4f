"""The descriptions of private selections."""

import math
from typing import Any

import pytest

import hockeystick as hs

KINDS = [hs.Exponential, hs.mechanisms.PermuteAndFlip, hs.mechanisms.ReportNoisyMax]
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@pytest.mark.parametrize("value", [-1, math.nan, -math.inf, True, "1", None])
def test_epsilon_is_a_number_from_0_to_inf(kind: Any, value: Any) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        kind(value)
    assert caught.value.name == "epsilon"
    assert caught.value.allowed == "a number >= 0 or inf"


@each_kind
def test_selections_are_values_for_every_adjacency(kind: Any) -> None:
    assert kind(1) == kind(1.0)
    assert hash(kind(1)) == hash(kind(1.0))
    assert kind(1).adjacency is None
    assert any("2 * sensitivity" in text for text in kind(0.25).assumptions)


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        (hs.Exponential(0.5), "exponential mechanism (epsilon 0.5)"),
        (hs.mechanisms.PermuteAndFlip(2), "permute-and-flip (epsilon 2)"),
        (hs.mechanisms.ReportNoisyMax(2), "report noisy max (epsilon 2, gumbel noise)"),
        (hs.mechanisms.ReportNoisyMax(2, "laplace"), "report noisy max (epsilon 2, laplace noise)"),
    ],
)
def test_the_text_gives_what_counts(mechanism: hs.Mechanism, text: str) -> None:
    assert str(mechanism) == text


def test_another_noise_is_refused_with_those_there_are() -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^noise must be one of 'gumbel', 'expon"):
        hs.mechanisms.ReportNoisyMax(1.0, "gaussian")
