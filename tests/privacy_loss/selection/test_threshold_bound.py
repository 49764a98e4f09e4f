"""The bound of comparisons with a noisy threshold, against searches for worse queries."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss
from hockeystick.privacy_loss.selection.threshold_bound import (
    gaussian_atoms,
    gaussian_bound,
    laplace_atoms,
    laplace_bound,
)

Array = NDArray[np.float64]
NODES = 2001


def profile(masses: AtomicLoss, x: float) -> float:
    """Return the hockey-stick divergence of some atoms."""
    atoms = masses.atoms()
    p = np.exp(atoms.log_p)
    return float(np.maximum(p - x * p * np.exp(-atoms.loss), 0.0).sum())


def noise_at(threshold: float, gaussian: bool) -> Array:
    """Return equally likely values of the threshold's noise: that of a discrete mechanism."""
    from scipy.special import ndtri

    share = (np.arange(NODES) + 0.5) / NODES
    if gaussian:
        return np.asarray(ndtri(share) * threshold)
    return -threshold * np.sign(share - 0.5) * np.log1p(-np.abs(2.0 * share - 1.0))


def outcomes(noise: Array, answers: Array, query: float) -> Array:
    """Return the probabilities of each query to be the first above, and of none."""
    left, found = np.ones(noise.size), []
    for answer in answers:
        far = np.exp(-np.abs(noise - answer) / query) / 2
        below = np.where(noise < answer, far, 1 - far)
        found.append((left * (1 - below)).mean())
        left = left * below
    return np.array([*found, left.mean()])


def largest_found(
    threshold: float, query: float, x: float, monotone: bool, gaussian: bool, seed: int
) -> float:
    """Return the largest divergence that a random search over many queries finds."""
    rng, noise = np.random.default_rng(seed), noise_at(threshold, gaussian)
    length = int(rng.integers(1, 16))
    answers = rng.normal(0.0, query, length)
    low = 0.0 if monotone else -1.0
    moves = rng.choice([low, 1.0], length)

    def divergence(answers: Array, moves: Array) -> float:
        p, q = outcomes(noise, answers, query), outcomes(noise, answers + moves, query)
        return max(float(np.maximum(a - x * b, 0.0).sum()) for a, b in ((p, q), (q, p)))

    best = divergence(answers, moves)
    for step in np.geomspace(1.0, 0.05, 60):
        trial = answers + rng.normal(0.0, step * query, length) * (rng.random(length) < 0.4)
        flips = rng.random(length) < 0.15
        moved = np.where(flips, rng.choice([low, 1.0], length), moves)
        now = divergence(trial, moved)
        if now > best:
            best, answers, moves = now, trial, moved
    return best


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scales", [(2.0, 4.0), (20.0, 5.0), (1.0, 6.0), (0.8, 0.9)], ids=str)
def test_no_queries_that_a_search_finds_exceed_the_bound(
    scales: tuple[float, float], monotone: bool
) -> None:
    threshold, query = scales
    bound = laplace_bound(1 / threshold, 1 / query, monotone)
    for seed, share in enumerate((0.0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9)):
        x = math.exp(share * bound.supremum)
        found = largest_found(threshold, query, x, monotone, False, seed)
        # The noise is discrete, so that its mean is off by a little.
        assert found <= profile(bound, x) + 2e-4


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scales", [(2.0, 4.0), (1.0, 6.0)], ids=str)
def test_no_queries_with_a_gaussian_threshold_exceed_the_bound(
    scales: tuple[float, float], monotone: bool
) -> None:
    threshold, query = scales
    bound = gaussian_bound(Fraction(threshold), 1 / query, monotone)
    for seed, epsilon in enumerate((0.0, 0.05, 0.1, 0.2, 0.4, 0.6)):
        found = largest_found(threshold, query, math.exp(epsilon), monotone, True, seed)
        assert found <= profile(bound.middle, math.exp(epsilon)) + 2e-4


@pytest.mark.parametrize(
    "attack", [((-0.78, -0.3, -0.1, 0.3, 0.8), (1, -1, 1, 1, -1)), ((-0.4, 0.0), (1, -1))], ids=str
)
def test_small_losses_of_good_queries_come_within_a_factor_of_two_of_the_bound(
    attack: tuple[tuple[float, ...], tuple[int, ...]],
) -> None:
    threshold, query = 20.0, 40.0
    answers, moves = np.array(attack[0]) * query, np.array(attack[1])
    noise = noise_at(threshold, False)
    p, q = outcomes(noise, answers, query), outcomes(noise, answers + moves, query)
    attained = float(((p - q) ** 2 / q).sum()) * query**2
    atoms = laplace_bound(1 / threshold, 1 / query, False).atoms()
    bound = float((np.exp(atoms.log_p) * atoms.loss**2).sum()) * query**2
    assert 0.7 < attained < bound < 3.2


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scales", [(0.05, 0.025), (3.0, 0.2), (1e-6, 2e-7)], ids=str)
def test_the_pair_is_its_own_mirror_image_and_is_bounded(
    scales: tuple[float, float], monotone: bool
) -> None:
    bound = laplace_bound(*scales, monotone)
    assert isinstance(bound, OutcomesLoss)
    assert sum(p for p, _ in bound.masses) == sum(q for _, q in bound.masses) == 1
    assert [(q, p) for p, q in reversed(bound.masses)] == list(bound.masses)
    largest = scales[0] + (1 if monotone else 2) * scales[1]
    assert bound.supremum == pytest.approx(largest, rel=4e-15)
    assert bound.supremum >= largest


def test_without_noise_of_the_threshold_to_shift_only_the_queries_count() -> None:
    bound = laplace_bound(0.0, 0.1, False)
    assert bound.supremum == pytest.approx(0.2, rel=4e-15)
    assert profile(bound, 1.0) < math.tanh(0.1)


def test_far_too_little_noise_is_a_pure_guarantee() -> None:
    bound = laplace_bound(1e4, 1.0, False)
    assert isinstance(bound, RandomizedResponsePairLoss)
    assert 10_002.0 <= float(bound.epsilon) <= 10_002.0 * (1 + 4e-15)
    tailed = gaussian_bound(Fraction(1, 100), 1.0, False)
    assert isinstance(tailed.middle, RandomizedResponsePairLoss)


@pytest.mark.parametrize("largest", [1e-4, 0.3, 5.0])
def test_the_atoms_of_a_laplace_loss_dominate_it_and_barely(largest: float) -> None:
    atoms = laplace_atoms(largest)
    for at in np.linspace(0.0, 0.9, 7) * largest:
        truth = -math.expm1((at - largest) / 2)
        found = float(np.maximum(-np.expm1(at - atoms.loss), 0.0) @ atoms.mass)
        assert truth <= found <= truth * (1 + 1e-2)


@pytest.mark.parametrize("multiplier", [Fraction(1, 2), Fraction(20), Fraction(10**6)])
def test_the_atoms_of_a_gaussian_loss_dominate_it_and_barely(multiplier: Fraction) -> None:
    from scipy.special import ndtr

    mu, atoms = float(1 / multiplier), gaussian_atoms(multiplier)
    for at in np.linspace(0.0, 4.0, 7) * mu:
        truth = ndtr(mu / 2 - at / mu) - math.exp(at) * ndtr(-mu / 2 - at / mu)
        found = float(np.maximum(-np.expm1(at - atoms.loss), 0.0) @ atoms.mass)
        assert truth - 1e-16 <= found <= truth * (1 + 1e-2) + 1e-12
