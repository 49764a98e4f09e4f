"""Federated clustering: noise over a public radius, and no noise over a private one."""

import math
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs


def plan(**changes: Any) -> hs.federated.FederatedClustering:
    """Return a plan of three rounds with some fields changed."""
    given = {"noise_multiplier": 3.0, "dimension": 11, "radius": 0.5, "rounds": 3}
    return hs.federated.FederatedClustering(**{**given, **changes})


def test_it_is_accounted_as_its_noise_over_the_radius() -> None:
    noise = hs.mechanisms.MultivariateLaplace(plan().noise.scale, 11)
    assert plan().mechanism == noise**3
    mine, its = hs.epsilon(plan(), 1e-6), hs.epsilon(noise**3, 1e-6)
    assert (mine.lower, mine.upper) == (its.lower, its.upper)


def test_a_round_costs_n_over_nu_and_rounds_add_up() -> None:
    for rounds in (0, 1, 11):
        found = hs.epsilon(plan(rounds=rounds), delta=0)
        assert found.upper == pytest.approx(rounds * 11 / 3, rel=1e-14)
        assert Fraction(found.upper) >= rounds * Fraction(11, 3)


def test_the_scale_is_never_above_nu_over_n() -> None:
    for multiplier, dimension in ((0.1, 3), (1.0, 3), (7.0, 11), (1e-3, 1_206_590)):
        scale = plan(noise_multiplier=multiplier, dimension=dimension).noise.scale
        assert Fraction(repr(scale)) <= Fraction(repr(multiplier)) / dimension
        assert scale == pytest.approx(multiplier / dimension, rel=1e-15)


@pytest.mark.parametrize("radius", [None, "update", math.inf, 0.0, -1.0, math.nan, lambda: 1.0])
def test_a_radius_that_is_no_public_number_is_refused_with_the_reason(radius: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="own update gives no guarantee") as caught:
        plan(radius=radius)
    assert caught.value.name == "radius"


def test_noise_of_0_shows_everything_and_infinite_noise_nothing() -> None:
    assert hs.epsilon(plan(noise_multiplier=0), 1e-6).upper == math.inf
    assert hs.epsilon(plan(noise_multiplier=math.inf), 1e-6).upper == 0.0
