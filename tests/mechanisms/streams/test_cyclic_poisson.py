"""Cyclic Poisson samples of banded encoders, as they are described."""

from fractions import Fraction

import pytest

import hockeystick as hs
from hockeystick.mechanisms import CyclicPoisson

TWO = (1.0, 0.5)


def test_zeros_at_the_end_are_no_diagonals() -> None:
    plan = CyclicPoisson(2.0, (1.0, 0.0, 0.5, 0.0, 0.0), rounds=20, cycle=3, rate=0.1)
    assert plan.bands == 3
    assert CyclicPoisson(2.0, (1.0, 0.5, 0.25), rounds=2, cycle=2, rate=0.1).bands == 2


def test_more_diagonals_than_groups_are_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="must be at least 3, got 2"):
        CyclicPoisson(2.0, (1.0, 0.5, 0.25), rounds=20, cycle=2, rate=0.1)
    with pytest.raises(hs.errors.IncompatibleError, match="replace-one"):
        CyclicPoisson(2.0, TWO, rounds=20, cycle=2, rate=0.1, adjacency="replace-one")


def test_what_must_hold_is_said() -> None:
    plan = CyclicPoisson(2.0, TWO, rounds=20, cycle=5, rate=Fraction(1, 3), adjacency="zero-out")
    words = " ".join(plan.assumptions)
    assert "5 groups; which one an example is in does not depend on the other examples" in words
    assert "group i mod 5 alone, each independently with probability 0.333333" in words
    assert "The noisy sum is divided by a fixed number" in words
    assert str(plan) == (
        "cyclic Poisson samples (noise multiplier 2, diagonals: 2, rounds: 20, groups: 5, "
        "rate 0.333333, zero-out)"
    )
