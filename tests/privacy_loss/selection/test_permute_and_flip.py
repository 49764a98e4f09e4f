"""Permute-and-flip and noisy maxima: bounds and concrete cases, against enumeration."""

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import RandomizedResponsePairLoss, dominating_pair
from hockeystick.privacy_loss.core.dominated import DominatedLoss

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
    """Return the loss, the same in both directions."""
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


@pytest.mark.parametrize("epsilon", [800.0, 1e5])
def test_far_apart_candidates_hardly_ever_change_places(epsilon: float) -> None:
    attained = loss_of(hs.mechanisms.ReportNoisyMax(epsilon, "laplace")).attained
    assert isinstance(attained, RandomizedResponsePairLoss)
    truth = 0.5 * epsilon - math.log(0.25 * (2.0 + 0.5 * epsilon))
    assert attained.epsilon == pytest.approx(truth, rel=1e-12)
