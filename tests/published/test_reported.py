"""What the literature and the tools of a time say of shuffled data, PriFedSync and DP-SGD."""

import math
from functools import partial
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.conversions.published import federated_limit
from hockeystick.conversions.published.of_their_time import tensorflow_privacy_epsilon
from hockeystick.conversions.published.shuffling import (
    clones_delta,
    clones_epsilon,
    hiding_among_clones,
    limit_delta,
    limit_epsilon,
    shuffled_group,
    stronger_clones_bound,
)
from hockeystick.mechanisms import Clipping
from hockeystick.numerics.multiprecision import mp
from tests.precision.twins import clones_delta as precise_delta


def gaussian_delta(mu: Any, epsilon: Any) -> float:
    tail = mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
    return float(tail)


@pytest.mark.parametrize("side", [-1, 0, 1])
def test_the_approximation_is_the_profile_of_one_gaussian(side: int) -> None:
    with mp.workdps(30):
        mu = mp.sqrt((1 + side / mp.sqrt(40)) * 20) / 4
        for epsilon in (0.0, 1.0, 6.0):
            truth = gaussian_delta(mu, epsilon)
            assert limit_delta(4.0, 20, epsilon, side).value == pytest.approx(truth, 1e-12)
    found = limit_epsilon(4.0, 20, 1e-6, side).value
    assert limit_delta(4.0, 20, found, side).value == pytest.approx(1e-6, rel=1e-12)
    assert limit_epsilon(4.0, 0.5, 1e-6, -1).value == 0.0 == limit_delta(4.0, 0.5, 1.0, -1).value


@pytest.mark.parametrize(
    ("clipping", "mu"),
    [("batch", math.sqrt(5 * 8) / 3), (Clipping.INDIVIDUAL, 5 * math.sqrt(8) / 3)],
)
def test_groups_cost_their_root_under_batch_clipping_and_their_size_under_individual(
    clipping: str, mu: float
) -> None:
    found = shuffled_group(hs.Gaussian(3.0), epochs=8, size=5, clipping=clipping)
    assert isinstance(found, hs.GDP)
    assert found.mu == pytest.approx(mu, rel=1e-15)


def test_the_root_is_no_bound_under_individual_clipping() -> None:
    # All of a group of 4 in one of 2 batches, as one in eight shuffles has it: mu = 4, and not 2.
    one_batch = hs.delta(hs.Gaussian(1 / 4), 12.0).lower / 8
    assert one_batch > hs.delta(shuffled_group(hs.Gaussian(1.0), 1, 4, "batch"), 12.0).upper
    assert one_batch < hs.delta(shuffled_group(hs.Gaussian(1.0), 1, 4), 12.0).lower


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


def test_the_clones_of_2023_and_of_2021_with_two_hundred_users() -> None:
    with mp.workdps(32):
        stronger = precise_delta(mp.one, 200, mp.mpf("0.4"))
        first = precise_delta(mp.one, 200, mp.mpf("0.4"), overlap=mp.exp(-1))
        assert mp.almosteq(stronger, mp.mpf("9.72428105413689305213606973396e-8"), 1e-27)
        assert mp.almosteq(first, mp.mpf("3.98190628536955425148057208619e-6"), 1e-27)
    found = clones_delta(1.0, 200, epsilon=0.4)
    assert found.lower <= stronger <= found.upper
    assert found.relative_width < 1e-3


def plan_of(rounds: int, **changed: Any) -> hs.federated.PriFedSync:
    settings: dict[str, Any] = {"examples": 600, "batch_size": 16, "local_steps": 38}
    local = hs.federated.LocalTraining(**({"noise_multiplier": 2.0} | settings | changed))
    return hs.federated.PriFedSync(clients=local, rounds=rounds)


CLONES = (hiding_among_clones, stronger_clones_bound, clones_epsilon)
GUARANTEES = (
    partial(federated_limit.limit_epsilon, plan_of(2)),
    partial(tensorflow_privacy_epsilon, hs.Gaussian(1.0)),
)


@pytest.mark.parametrize(
    ("bounds", "arguments", "name"),
    [
        ((limit_epsilon,), (0.0, 10, 1e-5), "noise_multiplier"),
        ((limit_epsilon,), (1.0, 0.4, 1e-5), "epochs"),
        ((limit_epsilon,), (1.0, 10, 0.0), "delta"),
        ((limit_epsilon,), (1.0, 10, 1e-5, 2), "side"),
        ((limit_epsilon,), (1.0, 10, 1e-5, 0.5), "side"),
        (CLONES, (1.0, 10**6, 0.0), "delta"),
        (CLONES, (1.0, 10**6, 1.0), "delta"),
        (CLONES, (-1.0, 10**6, 0.5), "randomizer_epsilon"),
        (CLONES, (math.inf, 10**6, 0.5), "randomizer_epsilon"),
        (CLONES, (1.0, 0, 0.5), "users"),
        (CLONES, (1.0, 2.5, 0.5), "users"),
        (GUARANTEES, (0.0,), "delta"),
        (GUARANTEES, (1.0,), "delta"),
        (GUARANTEES, (math.nan,), "delta"),
        ((federated_limit.limit_delta,), (plan_of(2), -1.0), "epsilon"),
        ((federated_limit.limit_delta,), (plan_of(2), math.inf), "epsilon"),
        (
            (partial(hs.tradeoff, view="two"),),
            (plan_of(2),),
            "view must be one of 'one-client', 'all-c",
        ),
    ],
)
def test_what_is_outside_its_domain_is_named(bounds: Any, arguments: Any, name: str) -> None:
    for bound in bounds:
        with pytest.raises(hs.errors.ParameterError, match=f"^{name}"):
            bound(*arguments)


@pytest.mark.parametrize(
    ("changed", "rounds", "mu", "delta"),
    [
        ({"noise_multiplier": math.inf}, 2, 0.0, 0.0),
        ({"local_steps": 0}, 2, 0.0, 0.0),
        ({}, 0, 0.0, 0.0),
        ({"noise_multiplier": 0.0}, 2, math.inf, 1.0),
    ],
)
def test_the_ends_of_the_scale(
    changed: dict[str, Any], rounds: int, mu: float, delta: float
) -> None:
    plan = plan_of(rounds, **changed)
    assert federated_limit.limit_mu(plan) == mu
    assert federated_limit.limit_delta(plan, 1.0).value == delta
    assert federated_limit.limit_epsilon(plan, 1e-5).value == mu


def test_a_plan_costs_at_most_theorem_2_and_less_than_the_limit() -> None:
    # The product of symmetric functions is what theorem 2 proves; the plan's own upper end is it.
    product = hs.delta(hs.FDP(hs.tradeoffs.G(1.0).subsample(16 / 600)) ** (38 * 93), 8.0)
    found = hs.delta(plan_of(93), 8.0)
    assert product.upper - product.lower < 1e-9 * product.lower
    assert product.lower <= found.upper <= product.upper * (1 + 1e-3)
    assert found.upper < federated_limit.limit_delta(plan_of(93), 8.0).value


def test_the_ends_of_the_orders() -> None:
    assert tensorflow_privacy_epsilon(hs.Gaussian(1.0) ** 0, 1e-5).upper == 0.0
    # Only orders up to 1.1 are known to be finite, and the grid begins at 1.25.
    assert tensorflow_privacy_epsilon(hs.TCDP(0.1, 1.1), 1e-5).upper == math.inf


def test_100_epochs_of_abadi_et_al_cost_what_they_print() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(4.0), 0.01) ** 10_000
    moments, best, exact = (
        hs.epsilon(plan, 1e-5, accountant=name).upper for name in ("moments", "rdp", "contour")
    )
    assert f"{moments:.2f}" == "1.26"
    assert moments == pytest.approx(1.2585747412528, rel=1e-12)
    assert moments > best > exact
