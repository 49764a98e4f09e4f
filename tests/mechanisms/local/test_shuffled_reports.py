"""The description of shuffled reports."""

import pytest

import hockeystick as hs
from hockeystick.mechanisms import ShuffledReports


def test_a_release_for_data_sets_is_no_randomizer() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="each person randomizes"):
        ShuffledReports(hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1), 100)


def test_it_does_not_go_with_another_adjacency() -> None:
    with pytest.raises(hs.errors.IncompatibleError):
        hs.Composed(
            (ShuffledReports(hs.PureDP(1.0), 9), hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1))
        )
