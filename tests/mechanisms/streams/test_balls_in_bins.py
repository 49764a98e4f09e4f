"""Balls in bins with correlated noise, as they are described."""

import pytest

import hockeystick as hs
from hockeystick.mechanisms import BallsInBins


def test_replaced_examples_are_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="replace-one"):
        BallsInBins(2.0, (1.0, 0.5), 20, 5, adjacency="replace-one")
