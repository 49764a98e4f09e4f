"""The clones' pair on both sides, and closed forms for shuffled reports."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.conversions.published.shuffled_reports import (
    clones_delta,
    clones_epsilon,
    hiding_among_clones,
    stronger_clones_bound,
)

Bound = Callable[[float, int, float], hs.ApproxDP]


@pytest.mark.parametrize("local", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_a_million_users_are_known_to_one_part_in_a_thousand_on_both_sides(local: float) -> None:
    epsilon = clones_epsilon(local, 10**6, 1e-6)
    delta = clones_delta(local, 10**6, epsilon.upper)
    assert 0.0 < epsilon.lower <= epsilon.upper
    assert epsilon.relative_width <= 1e-3
    assert delta.relative_width <= 1e-3
    assert delta.lower <= 1e-6 <= delta.upper * (1 + 1e-3)


def test_from_the_randomizers_epsilon_on_delta_is_0() -> None:
    assert clones_delta(1.0, 100, 1.001).upper == 0.0
    assert clones_delta(1.0, 100, math.inf).upper == 0.0


@pytest.mark.parametrize(
    ("local", "users", "delta", "epsilon"),
    [(4.0, 10**5, 1e-6, 0.534633991651707646), (1.0, 10**6, 1e-8, 0.026775163467591223)],
)
def test_the_closed_form_of_2021_has_its_check_values(
    local: float, users: int, delta: float, epsilon: float
) -> None:
    found = hiding_among_clones(local, users, delta)
    assert found.delta == delta
    assert epsilon <= found.epsilon <= epsilon * (1 + 1e-13)


@pytest.mark.parametrize("bound", [hiding_among_clones, stronger_clones_bound])
@pytest.mark.parametrize("local", [0.1, 3.0])
@pytest.mark.parametrize("users", [4000, 30_000])
@pytest.mark.parametrize("delta", [1e-3, 1e-7])
def test_closed_forms_are_no_less_than_the_pair(
    bound: Bound, local: float, users: int, delta: float
) -> None:
    try:
        found = bound(local, users, delta)
    except hs.errors.ParameterError:
        assert users == 4000
        assert local == 3.0
        return
    assert clones_epsilon(local, users, delta).upper <= found.epsilon * (1 + 1e-9)


def test_the_condition_is_the_stricter_of_the_two_published_ones() -> None:
    local, delta = 2.0, 1e-6
    least = math.ceil(16 * math.exp(local) * math.log(4 / delta))
    assert 16 * math.exp(local) * math.log(2 / delta) < least - 1
    assert hiding_among_clones(local, least + 1, delta).epsilon < local
    with pytest.raises(hs.errors.ParameterError, match="users must be at least"):
        hiding_among_clones(local, least - 1, delta)


def test_the_proven_closed_form_needs_many_users_too() -> None:
    least = 8 * (math.exp(2.0) + 1) * math.log(2 / 1e-6)
    assert stronger_clones_bound(2.0, math.ceil(least) + 2, 1e-6).epsilon <= 2.0
    with pytest.raises(hs.errors.ParameterError, match="use ShuffledReports"):
        stronger_clones_bound(2.0, math.floor(least), 1e-6)


@pytest.mark.parametrize("bound", [hiding_among_clones, stronger_clones_bound])
def test_a_randomizer_that_tells_nothing_costs_nothing(bound: Bound) -> None:
    assert bound(0.0, 10**6, 1e-6).epsilon == 0.0


@pytest.mark.parametrize("bad", [math.nan, -1.0, 0.0, 1.0])
def test_a_delta_that_is_none_is_refused(bad: float) -> None:
    for bound in (hiding_among_clones, stronger_clones_bound, clones_epsilon):
        with pytest.raises(hs.errors.ParameterError, match="delta"):
            bound(1.0, 10**6, bad)


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf])
def test_an_epsilon_that_is_none_is_refused(bad: float) -> None:
    for bound in (hiding_among_clones, stronger_clones_bound, clones_epsilon, clones_delta):
        with pytest.raises(hs.errors.ParameterError, match="randomizer_epsilon"):
            bound(bad, 10**6, 0.5)


@pytest.mark.parametrize("bad", [0, -1, 2.5, 10**16])
def test_a_number_of_users_that_is_none_is_refused(bad: Any) -> None:
    for bound in (hiding_among_clones, stronger_clones_bound, clones_epsilon, clones_delta):
        with pytest.raises(hs.errors.ParameterError, match="users"):
            bound(1.0, bad, 0.5)
