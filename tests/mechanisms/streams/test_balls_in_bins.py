"""Balls in bins with correlated noise, as they are described."""

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.mechanisms import BallsInBins


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise_multiplier", -1.0),
        ("coefficients", ()),
        ("coefficients", (1.0, -0.1)),
        ("coefficients", (math.inf,)),
        ("rounds", 0),
        ("bins", 10**4 + 1),
        ("adjacency", "substitute"),
    ],
)
def test_a_value_outside_its_domain_is_refused_by_name(name: str, value: Any) -> None:
    fields: dict[str, Any] = {
        "noise_multiplier": 1.0,
        "coefficients": (1.0, 0.5),
        "rounds": 9,
        "bins": 3,
    }
    with pytest.raises(hs.errors.ParameterError) as caught:
        BallsInBins(**{**fields, name: value})
    assert caught.value.name == name


def test_replaced_examples_are_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="replace-one"):
        BallsInBins(2.0, (1.0, 0.5), 20, 5, adjacency="replace-one")


def test_what_must_hold_is_said() -> None:
    plan = BallsInBins(2.0, (1.0, 0.5, 0.0), rounds=20, bins=5, adjacency="zero-out")
    words = " ".join(plan.assumptions)
    assert "in one of 5 bins, uniformly at random" in words
    assert "in the same one to the end; the bins are kept secret" in words
    assert "matrix of 2 diagonals" in words
    assert str(plan) == (
        "balls in bins (noise multiplier 2, diagonals: 2, rounds: 20, bins: 5, zero-out)"
    )
