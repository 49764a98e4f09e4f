"""Cyclic Poisson samples of banded encoders, as they are described."""

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
