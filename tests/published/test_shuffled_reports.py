"""The clones' pair on both sides, and closed forms for shuffled reports."""

import math
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
from hockeystick.release import response_error, unary_error
from tests.precision.shuffled_reports import clones_delta as precise_delta


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


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((1.0, 10**6, 0.0), "delta"),
        ((1.0, 10**6, 1.0), "delta"),
        ((-1.0, 10**6, 0.5), "randomizer_epsilon"),
        ((math.inf, 10**6, 0.5), "randomizer_epsilon"),
        ((1.0, 0, 0.5), "users"),
        ((1.0, 2.5, 0.5), "users"),
    ],
)
def test_what_is_outside_its_domain_is_named(arguments: Any, name: str) -> None:
    for bound in (hiding_among_clones, stronger_clones_bound, clones_epsilon):
        with pytest.raises(hs.errors.ParameterError, match=f"^{name} "):
            bound(*arguments)


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
