"""Selections of partitions and of candidates, against enumeration and their formulas."""

import itertools
import math
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.rounding import as_mpf
from hockeystick.privacy_loss import RandomizedResponsePairLoss, dominating_pair
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.selection.partition_selection import blocks, shown_alone

PartitionSelection = hs.mechanisms.PartitionSelection
LEVELS = (0.0, 0.2, 0.7, 1.5, 3.0)
FAR = 120


def masses(noise: Any) -> np.ndarray:
    """Return the probabilities of discrete noise from -FAR to FAR, by its definition."""
    y = np.arange(-FAR, FAR + 1)
    if isinstance(noise, hs.DiscreteGaussian):
        weights = np.exp(-(y**2) / (2 * noise.sigma**2))
    else:
        weights = np.exp(-np.abs(y) / noise.scale)
    return np.asarray(weights / weights.sum())


def outputs(noise: Any, threshold: int, count: int) -> np.ndarray:
    """Return the distribution of what is seen of a partition: nothing, or its noisy count."""
    seen = np.zeros(3 * FAR)
    if count == 0:
        seen[0] = 1.0
        return seen
    values = count + np.arange(-FAR, FAR + 1)
    for value, mass in zip(values, masses(noise), strict=True):
        seen[value + FAR if value >= threshold else 0] += mass
    return seen


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def neighbours(k: int, others: tuple[int, ...]) -> Iterator[tuple[list[int], list[int]]]:
    """Return counts of k partitions with a user in all of them, and without, for many data."""
    for counts in itertools.product(others, repeat=k):
        yield [count + 1 for count in counts], list(counts)


@pytest.mark.parametrize(
    ("noise", "threshold"),
    [(hs.DiscreteLaplace(1.2), 7), (hs.DiscreteGaussian(2.0), 6), (hs.DiscreteLaplace(0.8), 3)],
)
def test_no_data_exceed_one_run_and_some_reach_it(noise: Any, threshold: int) -> None:
    """Product distributions of two partitions, on all data with these other users."""
    said = PartitionSelection(noise, threshold, partitions=2)
    for epsilon in LEVELS:
        answer, found = hs.delta(said, epsilon=epsilon), 0.0
        for inside, outside in neighbours(2, (0, 1, 3, 6, 40)):
            p, q = (
                np.outer(*(outputs(noise, threshold, count) for count in counts))
                for counts in (inside, outside)
            )
            found = max(found, hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        assert found <= answer.upper * (1 + 1e-9)
        assert found >= answer.lower * (1 - 1e-7)
        assert answer.upper <= answer.lower * (1 + 1e-6)


@pytest.mark.parametrize(
    ("noise", "threshold"),
    [
        (hs.Gaussian(3.0), 12.3),
        (hs.Laplace(2.0), 17.0),
        (hs.Laplace(2.0), 0.3),
        (hs.DiscreteGaussian(3.0), 12.3),
        (hs.DiscreteGaussian(0.4), 4.0),
        (hs.DiscreteLaplace(2.0), 17.0),
        (hs.DiscreteLaplace(2.0), 0.0),
    ],
)
def test_a_user_alone_is_shown_with_this_probability(noise: Any, threshold: float) -> None:
    """By quadrature of densities, or by sums of masses."""
    low, high = shown_alone(noise, threshold)
    with mp.workdps(30):
        gap = mp.mpf(str(threshold)) - 1
        if isinstance(noise, hs.Gaussian):
            known = mp.quad(lambda x: mp.npdf(x, 0, 3), mp.linspace(gap, gap + 60, 13))
        elif isinstance(noise, hs.Laplace):
            cuts = sorted({gap, max(gap, mp.zero), max(gap, mp.zero) + 60, mp.mpf(400)})
            known = mp.quad(lambda x: mp.exp(-abs(x) / 2) / 4, cuts)
        else:
            spread = noise.sigma if isinstance(noise, hs.DiscreteGaussian) else noise.scale

            def weight(y: int) -> Any:
                if isinstance(noise, hs.DiscreteGaussian):
                    return mp.exp(-(mp.mpf(y) ** 2) / (2 * mp.mpf(str(spread)) ** 2))
                return mp.exp(-abs(mp.mpf(y)) / mp.mpf(str(spread)))

            known = mp.fsum(weight(y) for y in range(int(mp.ceil(gap)), 400))
            known /= mp.fsum(weight(y) for y in range(-400, 400))
        assert as_mpf(low) <= known * (1 + mp.mpf(10) ** -20)
        assert known * (1 - mp.mpf(10) ** -20) <= as_mpf(high)
        assert float(high) <= float(low) * (1 + 1e-14)


@pytest.mark.parametrize("k", [1, 2, 8, 9, 30, 1000, 10**9])
def test_every_number_of_partitions_is_in_one_block(k: int) -> None:
    found = list(blocks(k))
    assert found[0] == (0, 0)
    assert found[-1] == (k, k)
    assert [least for least, _ in found[1:]] == [most + 1 for _, most in found[:-1]]
    assert len(found) <= 9 if k <= 8 else len(found) < 30


@pytest.mark.parametrize(
    ("said", "epsilon", "delta"),
    [
        # Counts without noise are the data themselves.
        (PartitionSelection(hs.Gaussian(0.0), 5), math.inf, 1.0),
        # Only that a user who is alone is shown by chance tells anything.
        (PartitionSelection(hs.Gaussian(math.inf), 5), math.inf, 0.5),
        (PartitionSelection(hs.DiscreteLaplace(math.inf), 5, 2), math.inf, 0.75),
        # A far threshold hides whoever is alone: the noise is what it costs.
        (PartitionSelection(hs.Gaussian(4.0), 1e9), None, None),
        (PartitionSelection(hs.Gaussian(4.0), 1e6), None, None),
        # Of so many partitions one is shown, but for a chance that is no float.
        (PartitionSelection(hs.Gaussian(0.5), 1.0, 1100), math.inf, 1.0),
    ],
)
def test_edge_cases(said: Any, epsilon: float | None, delta: float | None) -> None:
    noise = hs.Gaussian(4.0)
    known = hs.epsilon(noise, delta=1e-5).upper if epsilon is None else epsilon
    assert hs.epsilon(said, delta=1e-5).upper == pytest.approx(known, rel=1e-12)
    share = hs.delta(noise, epsilon=1.0).upper if delta is None else delta
    assert hs.delta(said, epsilon=1.0).upper == pytest.approx(share, rel=1e-12)


EPSILONS = [1e-9, 1e-3, 0.015, 0.4, 1.0, 2.5, 60.0, 800.0]


def flipped(scores: Any, epsilon: float) -> list[Any]:
    """Return permute-and-flip's probabilities for scores of sensitivity 1, over all orders."""
    best, size = max(scores), len(scores)
    coin = [mp.exp(mp.mpf(epsilon) * (score - best) / 2) for score in scores]
    found = [mp.zero] * size
    for order in permutations(range(size)):
        left = mp.one / math.factorial(size)
        for place in order:
            found[place] += left * coin[place]
            left *= 1 - coin[place]
    return found


def loss_of(mechanism: hs.Mechanism) -> DominatedLoss:
    removing, adding = dominating_pair(mechanism)
    assert removing is adding
    assert isinstance(removing, DominatedLoss)
    return removing


@given(st.integers(0, 10**6))
def test_no_flip_between_neighbours_exceeds_the_upper_loss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon = float(rng.uniform(0.1, 4.0))
    scores = rng.normal(0.0, 2.0, 4)
    p, q = flipped(scores, epsilon), flipped(scores + rng.choice([-1.0, 1.0], 4), epsilon)
    bound = loss_of(hs.mechanisms.PermuteAndFlip(epsilon)).dominating
    assert bound == RandomizedResponsePairLoss(epsilon)
    for at in (0.0, 0.3, 0.8, 1.0):
        grown = mp.exp(at * epsilon)
        delta = mp.fsum(max(a - grown * b, 0) for a, b in zip(p, q, strict=True))
        assert (
            delta
            <= RandomizedResponsePairLoss(epsilon).delta(mp.mpf(at * epsilon), 1)
            + mp.mpf(10) ** -14
        )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_two_candidates_that_change_places_are_the_lower_loss_of_flips(epsilon: float) -> None:
    attained = loss_of(hs.mechanisms.PermuteAndFlip(epsilon)).attained
    assert isinstance(attained, RandomizedResponsePairLoss)
    with mp.workdps(400):
        better, worse = flipped([1, 0], epsilon)
        truth = mp.log(better / worse)
        assert truth * (1 - 1e-12) <= attained.epsilon <= truth
    assert attained.epsilon < epsilon


@pytest.mark.parametrize("epsilon", [1e-3, 0.015, 0.4, 1.0, 1.9, 2.1, 6.0])
def test_two_candidates_that_change_places_are_the_lower_loss_of_laplace_noise(
    epsilon: float,
) -> None:
    loss = loss_of(hs.mechanisms.ReportNoisyMax(epsilon, "laplace"))
    assert loss.dominating == RandomizedResponsePairLoss(epsilon)
    assert isinstance(loss.attained, RandomizedResponsePairLoss)
    with mp.workdps(30):
        scale = 2 / mp.mpf(epsilon)

        def integrand(x: Any) -> Any:
            far = mp.exp(-abs(1 + x) / scale) / 2
            return mp.exp(-abs(x) / scale) / (2 * scale) * (far if x > -1 else 1 - far)

        ends = [-mp.inf, -1, 0, mp.inf]
        worse = mp.quad(integrand, ends)
        truth = mp.log((1 - worse) / worse)
        assert truth * (1 - 1e-6) <= loss.attained.epsilon <= truth
        if epsilon > 0.02:
            assert loss.attained.epsilon >= truth * (1 - 1e-12)
