"""Noisy iterations and token walks: their Gaussians, and concrete runs between the ends."""

import math
from typing import Any, cast

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import CellLoss, DominatedLoss, GaussianLoss, dominating_pair
from hockeystick.privacy_loss.decentralised.token_walk import _Walk

STEPS: dict[str, Any] = {"step_size": 0.5, "smoothness": 2.0}


def mus(plan: hs.Mechanism) -> tuple[float, float]:
    """Return the ends of mu of a Gaussian."""
    loss = dominating_pair(plan).removing
    if isinstance(loss, DominatedLoss):
        return cast(GaussianLoss, loss.attained_case).mu, cast(GaussianLoss, loss.dominating).mu
    return cast(GaussianLoss, loss).mu, cast(GaussianLoss, loss).mu


def test_a_record_is_covered_by_its_own_and_all_later_steps() -> None:
    low, high = mus(hs.mechanisms.NoisyIterations(10.0, 1000, 901, **STEPS))
    assert high == pytest.approx(2 / (10 * math.sqrt(100)), rel=1e-15)
    assert low == pytest.approx(2 / (10 * math.sqrt(1000)), rel=1e-15)
    assert mus(hs.mechanisms.NoisyIterations(10.0, 1000, **STEPS))[1] == pytest.approx(
        0.2, rel=1e-15
    )


def test_a_record_that_is_zeroed_moves_half_as_far() -> None:
    replaced = hs.mechanisms.NoisyIterations(10.0, 50, 7, **STEPS)
    zeroed = hs.mechanisms.NoisyIterations(5.0, 50, 7, **STEPS, adjacency="zero-out")
    assert mus(replaced) == mus(zeroed)


def test_the_first_record_is_exact() -> None:
    assert mus(hs.mechanisms.NoisyIterations(5.0, 4, 1, **STEPS)) == (0.2, 0.2)
    found = hs.epsilon(hs.mechanisms.NoisyIterations(5.0, 4, 1, **STEPS), 1e-6)
    same = hs.epsilon(hs.Gaussian(5.0), 1e-6)
    assert (found.lower, found.upper) == (same.lower, same.upper)


@pytest.mark.parametrize("shrink", [0.0, 0.5, 1.0])
def test_no_quadratic_losses_after_the_record_cost_more_than_the_bound(shrink: float) -> None:
    # After the record's step w <- shrink w + N(0, 1): signal and earlier noise shrink together.
    for later in range(1, 8):
        signal, variance = 1.0, 1.0
        for _ in range(later):
            signal, variance = shrink * signal, shrink**2 * variance + 1.0
        bound = mus(hs.mechanisms.NoisyIterations(2.0, later + 1, 1, **STEPS))[1]
        assert signal / math.sqrt(variance) <= bound * (1 + 1e-12)
    assert signal / math.sqrt(variance) > 0.99 * bound or shrink < 1.0


@pytest.mark.parametrize("distance", [1, 3, 9])
def test_on_the_ring_the_distance_decides(distance: int) -> None:
    low, high = mus(hs.mechanisms.TokenWalk(4.0, 10, "ring", distance=distance, **STEPS))
    assert high == pytest.approx(0.5 / math.sqrt(distance), rel=1e-15)
    assert low == pytest.approx(0.5 / 3.0, rel=1e-15)


@pytest.mark.parametrize(("parties", "observers"), [(2, 1), (10, 1), (7, 3), (100, 1)])
def test_the_chances_of_a_walk_are_those_of_its_steps(parties: int, observers: int) -> None:
    walk = _Walk(parties, observers)
    seen, shown = observers / parties, (observers + 1) / parties
    for steps in (0, 1, 2, 5, 20):
        assert float(walk.observed_tail(steps)) == pytest.approx((1 - shown) ** steps, abs=1e-15)
        # a steps up to the contribution, and then more than ``steps - a`` before an observer.
        truth = (1 - shown) ** steps + sum(
            shown * (1 - shown) ** (a - 1) * (1 - seen) ** (steps - a + 1)
            for a in range(1, steps + 1)
        )
        assert float(walk.between_observers_tail(steps)) == pytest.approx(truth, abs=1e-14)


def test_a_walk_seen_between_observers_is_what_simulation_says() -> None:
    # 20,000 walks, seed 5: a mean of 2 steps in 3 at p = 2/5 and 1/5 is 2.5 + 5 - 1 = 6.5.
    draw = np.random.default_rng(5)
    lengths = []
    for _ in range(20_000):
        length = 0
        while True:
            party = draw.integers(5)
            length = 0 if party == 0 else length + 1
            if party == 1:
                break
        while draw.integers(5) != 0:
            length += 1
        lengths.append(length)
    walk = _Walk(5, 1)
    for steps in (1, 3, 6, 12):
        chance = float(walk.between_observers_tail(steps))
        share = np.mean(np.array(lengths) > steps)
        # Five standard deviations: fails by chance less than once in a million.
        assert abs(share - chance) < 5 * math.sqrt(chance * (1 - chance) / 20_000)


@pytest.mark.parametrize(
    ("parties", "observers"), [(2, 1), (10, 1), (100, 1), (30, 10), (10**5, 1)]
)
@pytest.mark.parametrize("order", [2, 4, 20])
def test_the_mixture_is_a_little_above_the_series(parties: int, observers: int, order: int) -> None:
    loss = dominating_pair(
        hs.mechanisms.TokenWalk(10.0, parties, observers=observers, **STEPS)
    ).removing
    assert isinstance(loss, DominatedLoss)
    found = loss.cgf_bounds(order - 1.0)
    below = cast(CellLoss, loss.attained_case).cgf_bounds(order - 1.0)
    with mp.workdps(30):
        p = mp.mpf(observers + 1) / parties
        scale = mp.mpf(2 * order * (order - 1)) / 100
        # The terms beyond 0 and scale/i, to 40 times the mean number of steps, and the rest by 1.
        last = int(60 / p)
        mass = np.arange(1, last + 1)
        weights = float(p) * np.exp(np.log1p(-float(p)) * (mass - 1.0)) if p < 1 else mass == 1
        truth = float(np.sum(weights * np.expm1(float(scale) / mass)))
    exact = math.log1p(truth)
    assert exact <= (found.midpoint + found.radius) * (1 + 1e-9)
    assert found.midpoint <= exact * 1.25
    assert below.midpoint - below.radius < exact
