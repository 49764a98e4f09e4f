"""The description of shuffled reports."""

import math
import pickle

import pytest

import hockeystick as hs
from hockeystick.mechanisms import ShuffledReports


def test_it_says_what_it_is() -> None:
    plan = ShuffledReports(hs.RandomizedResponse(1.0, 4), 1000)
    assert str(plan) == (
        "shuffled reports of [randomized response (epsilon 1, 4 categories)] (1000 users)"
    )
    assert plan == ShuffledReports(hs.RandomizedResponse(1, 4), 1000.0)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert plan.adjacency is hs.Adjacency.REPLACE_ONE


def test_its_assumptions_name_the_users_and_the_shuffler() -> None:
    said = " ".join(ShuffledReports(hs.PureDP(1.0), 1000).assumptions)
    for words in ("1,000 users", "permutes", "value of one example"):
        assert words in said


@pytest.mark.parametrize("bad", [0, -1, 2.5, math.nan, math.inf, "many", True])
def test_a_number_of_users_that_is_none_is_refused(bad: object) -> None:
    with pytest.raises(hs.errors.ParameterError, match="users must be an integer from 1 to 10"):
        ShuffledReports(hs.PureDP(1.0), bad)  # type: ignore[arg-type]


def test_a_number_is_no_randomizer() -> None:
    with pytest.raises(hs.errors.ParameterError, match="randomizer must be a mechanism"):
        ShuffledReports(1.0, 100)  # type: ignore[arg-type]


def test_a_release_for_data_sets_is_no_randomizer() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="each person randomizes"):
        ShuffledReports(hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1), 100)


def test_it_does_not_go_with_another_adjacency() -> None:
    with pytest.raises(hs.errors.IncompatibleError):
        hs.Composed(
            (ShuffledReports(hs.PureDP(1.0), 9), hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1))
        )
