"""Federated plans: what they come down to, their schedules and their ends."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import RevealedRound, schedules

CLIENTS = {"noise_multiplier": 3.0, "total_clients": 100, "clients_per_round": 10, "rounds": 8}
TENTH = Fraction(1, 10)
RECORDS = {**CLIENTS, "examples_per_client": 40, "batch_size": 4, "local_steps": 6}


def fed_sdp(**changes: Any) -> hs.federated.FedSDP:
    return hs.federated.FedSDP(**{**CLIENTS, "sampling": "fixed-size", **changes})


def fed_cdp(**changes: Any) -> hs.federated.FedCDP:
    return hs.federated.FedCDP(**{**RECORDS, "sampling": "two-stage", **changes})


def fed_alpha_cdp(**changes: Any) -> hs.federated.FedAlphaCDP:
    return hs.federated.FedAlphaCDP(**{**RECORDS, "sampling": "two-stage", **changes})


@pytest.mark.parametrize(
    ("changes", "mechanism"),
    [
        ({"sampling": "poisson"}, hs.PoissonSubsampled(hs.Gaussian(3.0), TENTH) ** 8),
        (
            {"sampling": "poisson", "adjacency": "replace-one"},
            hs.PoissonSubsampled(hs.Gaussian(3.0), TENTH, "replace-one") ** 8,
        ),
        ({}, hs.FixedSizeSubsampled(hs.Gaussian(1.5), 10, 100, "add-remove") ** 8),
        (
            {"adjacency": "replace-one"},
            hs.FixedSizeSubsampled(hs.Gaussian(1.5), 10, 100, "replace-one") ** 8,
        ),
        (
            {"sampling": "revealed", "adjacency": "zero-out"},
            hs.mechanisms.RevealedSample(hs.Gaussian(3.0), TENTH) ** 8,
        ),
        (
            {"sampling": "revealed", "adjacency": "replace-one"},
            hs.mechanisms.RevealedSample(hs.Gaussian(1.5), TENTH) ** 8,
        ),
        ({"clients_per_round": 100}, hs.Gaussian(3.0) ** 8),
        (
            {"clients_per_round": 100, "sampling": "poisson", "adjacency": "replace-one"},
            hs.Gaussian(1.5) ** 8,
        ),
        ({"sampling": "poisson", "rounds": 0}, hs.PoissonSubsampled(hs.Gaussian(3), TENTH) ** 0),
    ],
)
def test_what_hides_clients_is_one_release_a_round(
    changes: dict[str, Any], mechanism: hs.Mechanism
) -> None:
    assert fed_sdp(**changes).mechanism == mechanism


def fixed(adjacency: str) -> hs.Mechanism:
    clipped = adjacency == "zero-out"
    return hs.FixedSizeSubsampled(hs.Gaussian(1.5), 4, 40, adjacency, clipped) ** 6


@pytest.mark.parametrize(
    ("changes", "mechanism"),
    [
        ({"sampling": "poisson"}, hs.PoissonSubsampled(hs.Gaussian(3.0), Fraction(1, 100)) ** 48),
        ({}, RevealedRound(fixed("add-remove"), TENTH) ** 8),
        ({"adjacency": "zero-out"}, RevealedRound(fixed("zero-out"), TENTH) ** 8),
        (
            {"sampling": "two-stage-poisson"},
            RevealedRound(hs.PoissonSubsampled(hs.Gaussian(3.0), TENTH) ** 6, TENTH) ** 8,
        ),
        ({"batch_size": 40}, RevealedRound(hs.Gaussian(3.0) ** 6, TENTH) ** 8),
        (
            {"batch_size": 40, "adjacency": "replace-one"},
            RevealedRound(hs.Gaussian(1.5) ** 6, TENTH) ** 8,
        ),
        ({"clients_per_round": 100}, fixed("add-remove") ** 8),
        ({"rounds": 0}, RevealedRound(fixed("add-remove"), TENTH) ** 0),
    ],
)
def test_what_hides_records_is_steps_in_rounds(
    changes: dict[str, Any], mechanism: hs.Mechanism
) -> None:
    assert fed_cdp(**changes).mechanism == mechanism
    assert fed_alpha_cdp(**changes).mechanism == mechanism


def test_a_schedule_changes_the_noise_from_round_to_round() -> None:
    plan = fed_alpha_cdp(schedule=schedules.Staircase(end=0.5, stairs=2), rounds=4)
    assert plan.noise_multipliers.tolist() == [3.0, 3.0, 1.5, 1.5]
    parts = [
        RevealedRound(hs.FixedSizeSubsampled(hs.Gaussian(noise), 4, 40, "add-remove") ** 6, TENTH)
        ** 2
        for noise in (0.75, 1.5)
    ]
    assert plan.mechanism == hs.Composed(parts)
    with pytest.raises(ParameterError, match="a value for each of 8 steps"):
        fed_alpha_cdp(schedule=schedules.Values([1.0, 0.5]))


@pytest.mark.parametrize("rounds", [10, 100])
def test_the_published_decays_are_the_schedules(rounds: int) -> None:
    g, width, times = 0.5 / (rounds - 1), rounds // 5, range(rounds)
    exact = pytest.approx
    linear = schedules.Linear(1 - g * (rounds - 1)).factors(rounds)
    assert linear.tolist() == exact([1 - g * t for t in times], rel=1e-13)
    stairs = schedules.Staircase(end=1 - 0.1 * 4, stairs=5).factors(rounds)
    assert stairs.tolist() == exact([1 - 0.1 * (t // width) for t in times], rel=1e-13)
    powers = schedules.Exponential(math.exp(-g * (rounds - 1))).factors(rounds)
    assert powers.tolist() == exact([math.exp(-g * t) for t in times], rel=1e-13)
    period = math.ceil(rounds / 3)
    waves = schedules.Cyclic(floor=1e-300, cycles=3).factors(rounds)
    published = [0.5 * (math.cos(math.pi * (t % period) / period) + 1) for t in times]
    assert waves.tolist() == exact(published, rel=1e-9, abs=1e-15)


def test_rates_are_exact() -> None:
    plan = fed_cdp(clients_per_round=7, batch_size=3)
    assert plan.rate == Fraction(7, 100) * Fraction(3, 40)
    assert fed_alpha_cdp().rate == Fraction(1, 100)
    assert fed_sdp(clients_per_round=7).participation == Fraction(7, 100)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0])
def test_clients_may_drop_out_because_of_their_own_data(adjacency: str, epsilon: float) -> None:
    # One round: both data sets have a probability of their own to take part, at most 0.1.
    plan = fed_sdp(sampling="poisson", rounds=1, noise_multiplier=1.0, adjacency=adjacency)
    bound = hs.delta(plan, epsilon).upper
    x = np.linspace(-12.0, 12.0, 40_001)

    def density(rate: float, change: float) -> np.ndarray:
        normal = np.exp(-0.5 * (x - change) ** 2), np.exp(-0.5 * x**2)
        return (rate * normal[0] + (1.0 - rate) * normal[1]) / math.sqrt(2.0 * math.pi)

    rates = (0.0, 0.03, 0.07, 0.1)
    for first, second in itertools.product(rates, rates):
        other = density(second, -1.0) if adjacency == "replace-one" else density(0.0, 0.0)
        for p, q in ((density(first, 1.0), other), (other, density(first, 1.0))):
            over = np.maximum(p - math.exp(epsilon) * q, 0.0)
            assert float(over.sum() * (x[1] - x[0])) <= bound * (1.0 + 1e-6)


def clustering(**changes: Any) -> hs.federated.FederatedClustering:
    given = {"noise_multiplier": 3.0, "dimension": 11, "radius": 0.5, "rounds": 3}
    return hs.federated.FederatedClustering(**{**given, **changes})


def test_the_scale_is_never_above_nu_over_n() -> None:
    for multiplier, dimension in ((0.1, 3), (1.0, 3), (7.0, 11), (1e-3, 1_206_590)):
        scale = clustering(noise_multiplier=multiplier, dimension=dimension).noise.scale
        assert Fraction(repr(scale)) <= Fraction(repr(multiplier)) / dimension
        assert scale == pytest.approx(multiplier / dimension, rel=1e-15)


@pytest.mark.parametrize("radius", [None, "update", math.inf, 0.0, -1.0, math.nan, lambda: 1.0])
def test_a_radius_that_is_no_public_number_is_refused_with_the_reason(radius: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="own update gives no guarantee") as caught:
        clustering(radius=radius)
    assert caught.value.name == "radius"


STEPS: dict[str, Any] = {"examples": 600, "noise_multiplier": 2.0}
LOCAL = hs.federated.LocalTraining(**STEPS, batch_size=16, local_steps=38)
SMALL = hs.federated.LocalTraining(**STEPS, batch_size=8, local_steps=76)


def test_local_training_is_a_gaussian_of_half_the_multiplier_on_batches_of_a_fixed_size() -> None:
    step = hs.FixedSizeSubsampled(hs.Gaussian(1.0), 16, 600, "replace-one")
    assert LOCAL.mechanism == step**38
    assert LOCAL.rate == Fraction(16, 600)
    assert LOCAL.adjacency is hs.Adjacency.REPLACE_ONE


def test_several_clients_are_parts_by_client() -> None:
    plan = hs.federated.PriFedSync(clients=[LOCAL, SMALL], rounds=93)
    assert plan.mechanism == hs.Parallel((LOCAL, SMALL), split="client") ** 93
    assert plan.of_client(1) == SMALL**93


@pytest.mark.parametrize("index", [-1, 2, 0.5, math.nan])
def test_a_client_that_is_not_there_is_refused(index: Any) -> None:
    with pytest.raises(ParameterError, match="index must be an integer from 0 to 1"):
        hs.federated.PriFedSync(clients=(LOCAL, SMALL), rounds=93).of_client(index)


def test_two_federations_of_as_many_clients_have_the_same_ones_in_one_order() -> None:
    # Batches of all examples are quickly accounted for.
    first, second = (
        hs.federated.LocalTraining(examples=9, batch_size=9, noise_multiplier=noise, local_steps=3)
        for noise in (8.0, 6.0)
    )
    one, other = (
        hs.federated.PriFedSync(clients=both, rounds=2)
        for both in ((first, second), (second, first))
    )
    either = [hs.delta(a**2 @ b**2, 3.0) for a, b in ((first, second), (second, first))]
    found = hs.delta(one @ other, 3.0)
    assert (found.lower, found.upper) == (either[0].lower, either[0].upper)
