"""Shuffled epochs whose batches do not divide the examples: integrals, enumerations, attacks."""

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.sampling.shuffled import _curve
from tests.privacy_loss.sampling.test_shuffled import log_phi

EPSILONS = (0.1, 0.7, 2.0)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of the Gaussian mechanism in closed form."""
    first, second = ndtr(mu / 2 - epsilon / mu), ndtr(-mu / 2 - epsilon / mu)
    return float(first - math.exp(epsilon) * second)


def densities(examples: int, size: int, dropped: bool, noise: float, value: float) -> Any:
    """Return the density of all batches' sums over all places of one example; others contribute -1.

    The sums are less what they would be with others alone. The steps are one or two.
    """
    z = np.linspace(-9.0 * noise, 9.0 * noise + 2.0, 400)
    steps = examples // size if dropped else -(-examples // size)
    grid = np.meshgrid(*[z] * steps, indexing="ij")
    total: Any = 0.0
    for place in range(examples):
        batch = place // size
        means = [value + 1.0 if t == batch else 0.0 for t in range(steps)]
        total = total + math.prod(
            norm.pdf(at, mean, noise) for at, mean in zip(grid, means, strict=True)
        )
    return total / examples * (z[1] - z[0]) ** steps


@pytest.mark.parametrize(
    ("examples", "size", "dropped"), [(3, 2, False), (3, 2, True), (4, 3, False), (5, 2, True)]
)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_what_concrete_data_lose_is_between_the_ends(
    examples: int, size: int, dropped: bool, adjacency: str
) -> None:
    plan = hs.DPSGD(
        examples=examples,
        batch_size=size,
        epochs=1,
        noise_multiplier=1.5,
        sampling="shuffle",
        adjacency=adjacency,
        drop_last=dropped,
    )
    other = 0.0 if adjacency == "zero-out" else -1.0
    first, second = (densities(examples, size, dropped, 1.5, value) for value in (1.0, other))
    for epsilon in EPSILONS:
        answer = hs.delta(plan, epsilon)
        lost = max(
            float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
            for p, q in ((first, second), (second, first))
        )
        assert answer.lower <= lost * (1 + 1e-6)
        assert lost <= answer.upper * (1 + 1e-6)


@pytest.mark.parametrize(("noise", "steps", "shift"), [(1.0, 97, 2.0), (3.0, 1, 1.0), (0.1, 20, 2)])
def test_the_curve_of_a_dropped_rest_is_that_of_mpmath(
    noise: float, steps: int, shift: float
) -> None:
    z = np.array([-9.0, -1.0, 0.5, 3.0, 12.0, 25.0])
    found = _curve(z, steps, shift / noise, True)
    for at, value, error in zip(z, found.log_f, found.error, strict=True):
        moved = mp.exp(log_phi(mp.mpf(at) - mp.mpf(shift / noise)))
        mixed = (steps * moved + mp.exp(log_phi(mp.mpf(at)))) / (steps + 1)
        exact = mp.log(mixed) + (steps - 1) * log_phi(mp.mpf(at))
        assert abs(exact - mp.mpf(value)) <= error
        assert error < 1e-8


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(("size", "whole", "rest"), [(4, 1, 1), (3, 2, 1), (2, 2, 1), (3, 1, 2)])
def test_a_group_that_is_seen_in_its_batches_loses_no_more_than_is_accounted(
    size: int, whole: int, rest: int, dropped: bool
) -> None:
    group, steps = 3, whole + (not dropped)
    epoch = hs.Shuffled(
        hs.Gaussian(2.0), steps, last_batch="dropped" if dropped else "smaller"
    ).for_group(group)
    placed = list(permutations(range(whole * size + rest), group))
    for epsilon in EPSILONS:
        lost = 0.0
        for places in placed:
            counts = np.bincount([place // size for place in places], minlength=whole + 1)
            square = int((counts[:steps] ** 2).sum())
            lost += gaussian_delta(math.sqrt(square) / 2.0, epsilon) if square else 0.0
        upper = hs.delta(epoch, epsilon).upper
        assert lost / len(placed) <= upper * (1 + 1e-9)


def test_one_step_is_no_smaller_last_batch() -> None:
    with pytest.raises(ParameterError, match="last_batch must be 'whole' or 'dropped'"):
        hs.Shuffled(hs.Gaussian(1.0), 1, last_batch="smaller")
