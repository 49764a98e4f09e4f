"""The clones' pair on both sides, and closed forms for shuffled reports."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.conversions.published.shuffling import (
    clones_delta,
    clones_epsilon,
    hiding_among_clones,
    stronger_clones_bound,
)
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.shuffled_reports import clones_delta as precise_delta
from hockeystick.release import response_error, unary_error

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


def by_tails(local: Any, users: int, epsilon: Any) -> Any:
    """Return ``(1 + e^epsilon) E[(tau S/T - tanh(epsilon/2))_+]`` by tails of fair coins."""
    tau = mp.tanh(local / 2)
    kappa, total = mp.tanh(epsilon / 2) / tau, mp.zero
    for t in range(1, users + 1):
        chance = math.comb(users - 1, t - 1) * (1 - tau) ** (t - 1) * tau ** (users - t)
        first = int(mp.floor(t * (1 + kappa) / 2)) + 1
        tail = sum(math.comb(t, x) for x in range(first, t + 1))
        total += chance * (math.comb(t - 1, first - 1) - kappa * tail) / mp.mpf(2) ** t
    return (1 + mp.exp(epsilon)) * tau * total


def test_the_clones_of_2023_and_of_2021_with_two_hundred_users() -> None:
    with mp.workdps(32):
        stronger = precise_delta(mp.one, 200, mp.mpf("0.4"))
        first = precise_delta(mp.one, 200, mp.mpf("0.4"), overlap=mp.exp(-1))
        assert mp.almosteq(stronger, mp.mpf("9.72428105413689305213606973396e-8"), 1e-27)
        assert mp.almosteq(first, mp.mpf("3.98190628536955425148057208619e-6"), 1e-27)
        assert mp.almosteq(stronger, by_tails(mp.one, 200, mp.mpf("0.4")), 1e-27)
    found = clones_delta(1.0, 200, epsilon=0.4)
    assert found.lower <= stronger <= found.upper
    assert found.relative_width < 1e-3


def test_randomized_response_with_ten_categories() -> None:
    mechanism = hs.RandomizedResponse(1.0, 10)
    found = hs.delta(mechanism, 0.5)
    assert float(found) == pytest.approx(0.0912728140025937886, rel=1e-14)
    # What is often printed as the error is that of a category that nobody holds.
    assert response_error(mechanism, 1000, 0.0) == pytest.approx(3.63024869291551948e-3, rel=1e-14)
    assert response_error(mechanism, 1000, 0.3) == pytest.approx(5.02699278940190290e-3, rel=1e-14)


def test_unary_encodings_with_a_thousand_users() -> None:
    optimized, symmetric = (
        hs.mechanisms.UnaryEncoding(1.0, "optimized"),
        hs.mechanisms.UnaryEncoding(1.0),
    )
    assert unary_error(optimized, 1000, 0.0) == pytest.approx(3.68269437683116928e-3, rel=1e-14)
    assert unary_error(symmetric, 1000, 0.3) == pytest.approx(3.91769808903276376e-3, rel=1e-14)
