"""Balls in bins with correlated noise, as they are described."""

import pytest

import hockeystick as hs
from hockeystick.mechanisms import BallsInBins


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
