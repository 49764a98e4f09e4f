"""Fed-SDP, Fed-CDP and Fed-alphaCDP: what they come down to, and what is refused."""

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import schedules

CLIENTS = {"noise_multiplier": 3.0, "total_clients": 100, "clients_per_round": 10, "rounds": 8}
RECORDS = {**CLIENTS, "examples_per_client": 40, "batch_size": 4, "local_steps": 6}


def fed_sdp(**changes: Any) -> hs.federated.FedSDP:
    """Return a client-level plan with some parameters changed."""
    return hs.federated.FedSDP(**{**CLIENTS, "sampling": "fixed-size", **changes})


def fed_cdp(**changes: Any) -> hs.federated.FedCDP:
    """Return an instance-level plan with some parameters changed."""
    return hs.federated.FedCDP(**{**RECORDS, "sampling": "two-stage", **changes})


def fed_alpha_cdp(**changes: Any) -> hs.federated.FedAlphaCDP:
    """Return an instance-level plan with a schedule and some parameters changed."""
    return hs.federated.FedAlphaCDP(**{**RECORDS, "sampling": "two-stage", **changes})


@pytest.mark.parametrize(
    ("changes", "mechanism"),
    [
        ({"sampling": "poisson"}, hs.PoissonSubsampled(hs.Gaussian(3.0), Fraction(1, 10)) ** 8),
        (
            {"sampling": "poisson", "adjacency": "replace-one"},
            hs.PoissonSubsampled(hs.Gaussian(3.0), Fraction(1, 10), "replace-one") ** 8,
        ),
        ({}, hs.FixedSizeSubsampled(hs.Gaussian(1.5), 10, 100, "add-remove") ** 8),
        (
            {"adjacency": "replace-one"},
            hs.FixedSizeSubsampled(hs.Gaussian(1.5), 10, 100, "replace-one") ** 8,
        ),
        (
            {"sampling": "revealed", "adjacency": "zero-out"},
            hs.mechanisms.RevealedSample(hs.Gaussian(3.0), Fraction(1, 10)) ** 8,
        ),
        (
            {"sampling": "revealed", "adjacency": "replace-one"},
            hs.mechanisms.RevealedSample(hs.Gaussian(1.5), Fraction(1, 10)) ** 8,
        ),
        ({"clients_per_round": 100}, hs.Gaussian(3.0) ** 8),
        (
            {"clients_per_round": 100, "sampling": "poisson", "adjacency": "replace-one"},
            hs.Gaussian(1.5) ** 8,
        ),
        (
            {"sampling": "poisson", "rounds": 0},
            hs.PoissonSubsampled(hs.Gaussian(3), Fraction(1, 10)) ** 0,
        ),
    ],
)
def test_what_hides_clients_is_one_release_a_round(
    changes: dict[str, Any], mechanism: hs.Mechanism
) -> None:
    assert fed_sdp(**changes).mechanism == mechanism


def fixed(adjacency: str) -> hs.Mechanism:
    """Return the local steps of a client that draws sets of a fixed size."""
    clipped = adjacency == "zero-out"
    return hs.FixedSizeSubsampled(hs.Gaussian(1.5), 4, 40, adjacency, clipped) ** 6


@pytest.mark.parametrize(
    ("changes", "mechanism"),
    [
        ({"sampling": "poisson"}, hs.PoissonSubsampled(hs.Gaussian(3.0), Fraction(1, 100)) ** 48),
        ({}, hs.federated.RevealedRound(fixed("add-remove"), Fraction(1, 10)) ** 8),
        (
            {"adjacency": "zero-out"},
            hs.federated.RevealedRound(fixed("zero-out"), Fraction(1, 10)) ** 8,
        ),
        (
            {"sampling": "two-stage-poisson"},
            hs.federated.RevealedRound(
                hs.PoissonSubsampled(hs.Gaussian(3.0), Fraction(1, 10)) ** 6, Fraction(1, 10)
            )
            ** 8,
        ),
        (
            {"batch_size": 40},
            hs.federated.RevealedRound(hs.Gaussian(3.0) ** 6, Fraction(1, 10)) ** 8,
        ),
        (
            {"batch_size": 40, "adjacency": "replace-one"},
            hs.federated.RevealedRound(hs.Gaussian(1.5) ** 6, Fraction(1, 10)) ** 8,
        ),
        ({"clients_per_round": 100}, fixed("add-remove") ** 8),
        ({"rounds": 0}, hs.federated.RevealedRound(fixed("add-remove"), Fraction(1, 10)) ** 0),
    ],
)
def test_what_hides_records_is_steps_in_rounds(
    changes: dict[str, Any], mechanism: hs.Mechanism
) -> None:
    assert fed_cdp(**changes).mechanism == mechanism
    assert fed_alpha_cdp(**changes).mechanism == mechanism


@pytest.mark.parametrize("sizes", [{"local_steps": 10**12}, {"rounds": 10**12}])
@pytest.mark.parametrize("sampling", ["poisson", "two-stage"])
def test_very_many_steps_take_no_memory(sizes: dict[str, int], sampling: str) -> None:
    for made in (fed_cdp, fed_alpha_cdp):
        plan = made(sampling=sampling, noise_multiplier=1e9, **sizes)
        assert 0.0 < hs.epsilon(plan, 1e-5).upper < 0.1
        assert plan.assumptions


def test_a_schedule_changes_the_noise_from_round_to_round() -> None:
    plan = fed_alpha_cdp(schedule=schedules.Staircase(end=0.5, stairs=2), rounds=4)
    assert plan.noise_multipliers.tolist() == [3.0, 3.0, 1.5, 1.5]
    parts = [
        hs.federated.RevealedRound(
            hs.FixedSizeSubsampled(hs.Gaussian(noise), 4, 40, "add-remove") ** 6, Fraction(1, 10)
        )
        ** 2
        for noise in (0.75, 1.5)
    ]
    assert plan.mechanism == hs.Composed(parts)
    poisson = fed_alpha_cdp(
        schedule=schedules.Linear(end=0.5), rounds=3, sampling="poisson", local_steps=2
    )
    steps = [hs.PoissonSubsampled(hs.Gaussian(z), Fraction(1, 100)) ** 2 for z in (1.5, 2.25, 3.0)]
    found, truth = hs.epsilon(poisson, 1e-5), hs.epsilon(hs.Composed(steps), 1e-5)
    assert (found.lower, found.upper) == (truth.lower, truth.upper)


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


def test_the_cyclic_decay_needs_a_floor_and_leaves_nothing_without_one() -> None:
    with pytest.raises(hs.errors.ParameterError, match="floor"):
        schedules.Cyclic(floor=0.0, cycles=1)
    wave = [0.5 * (math.cos(math.pi * t / 100) + 1) for t in range(100)]
    assert 15 * wave[-1] == pytest.approx(15 * math.pi**2 / (4 * 100**2), rel=1e-3)
    void = fed_alpha_cdp(
        noise_multiplier=15, schedule=schedules.Values(wave), rounds=100, sampling="poisson"
    )
    assert hs.epsilon(void, 1e-5).lower > 1000


def test_noise_by_the_largest_gradient_is_refused_with_the_reason() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="noise of another scale"):
        fed_alpha_cdp(sensitivity="l2-max")
    with pytest.raises(hs.errors.ParameterError, match="sensitivity"):
        fed_alpha_cdp(sensitivity="l2")


def test_who_takes_part_shows_a_client_that_is_added() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="shows that a client exists"):
        fed_sdp(sampling="revealed")


def test_rates_are_exact() -> None:
    plan = fed_cdp(clients_per_round=7, batch_size=3)
    assert plan.rate == Fraction(7, 100) * Fraction(3, 40)
    assert fed_alpha_cdp().rate == Fraction(1, 100)
    assert fed_sdp(clients_per_round=7).participation == Fraction(7, 100)


def test_a_schedule_is_one_and_has_a_factor_for_each_round() -> None:
    with pytest.raises(hs.errors.ParameterError, match="schedule"):
        fed_alpha_cdp(schedule=0.5)
    with pytest.raises(hs.errors.ParameterError, match="a value for each of 8 steps"):
        fed_alpha_cdp(schedule=schedules.Values([1.0, 0.5]))


@pytest.mark.parametrize("make", [fed_sdp, fed_cdp, fed_alpha_cdp])
def test_a_plan_can_be_changed_and_solved_for(make: Any) -> None:
    plan = make(sampling="poisson")
    assert dataclasses.replace(plan, rounds=9).rounds == 9
    found = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(0.5, 1e-5))
    assert found.achieved.upper <= 0.5


@pytest.mark.parametrize("make", [fed_sdp, fed_cdp, fed_alpha_cdp])
def test_plans_at_the_ends(make: Any) -> None:
    assert hs.epsilon(make(rounds=0), 1e-5).upper == 0.0
    assert hs.epsilon(make(noise_multiplier=math.inf), 1e-5).upper == 0.0
    assert hs.epsilon(make(noise_multiplier=0.0, sampling="poisson"), 1e-9).upper == math.inf


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
