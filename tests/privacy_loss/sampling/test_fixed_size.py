"""Losses on samples other than plain Poisson ones: against attacks on concrete data sets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    CellLoss,
    FixedSizeGaussianLoss,
    GaussianLoss,
    SampledGaussianLoss,
)
from hockeystick.privacy_loss.core.registry import dominating_pair
from hockeystick.privacy_loss.core.symmetrized import symmetrized
from hockeystick.privacy_loss.noise.laplace import LaplaceLoss
from hockeystick.privacy_loss.sampling.sampled import SampledLoss

AXIS = np.linspace(-60.0, 60.0, 600_001)
Mixture = list[tuple[float, float]]


def density(mixture: Mixture, noise: float) -> np.ndarray:
    """Return the density of a mixture of Gaussians, times the width of a cell."""
    total = np.zeros_like(AXIS)
    for weight, mean in mixture:
        total += weight * np.exp(-0.5 * ((AXIS - mean) / noise) ** 2)
    scaled: np.ndarray = total * (AXIS[1] - AXIS[0]) / (noise * math.sqrt(2.0 * math.pi))
    return scaled


def attack(first: Mixture, second: Mixture, noise: float, epsilon: float) -> float:
    """Return the hockey-stick divergence of two mixtures of Gaussians."""
    p, q = density(first, noise), density(second, noise)
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def ends(plan: hs.Mechanism, epsilon: float) -> tuple[float, float]:
    """Return the proven ends of delta."""
    found = hs.delta(plan, epsilon)
    assert isinstance(found, hs.Certified)
    return found.lower, found.upper


def test_clipped_vectors_in_a_sample_of_all_move_the_sum_by_their_norm() -> None:
    for adjacency in ("add-remove", "zero-out"):
        whole = hs.FixedSizeSubsampled(hs.Gaussian(0.5), 4, 4, adjacency, clipped=True)
        assert hs.delta(whole, 1.0).upper == hs.delta(hs.Gaussian(1.0), 1.0).upper
        assert hs.delta(whole, 1.0).lower == hs.delta(hs.Gaussian(1.0), 1.0).lower


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_clipping_changes_no_other_sample_of_a_fixed_size(adjacency: str) -> None:
    one, other = (
        hs.FixedSizeSubsampled(hs.Gaussian(0.5), 2, 9, adjacency, clipped=clipped)
        for clipped in (True, False)
    )
    found, known = hs.delta(one, 1.0), hs.delta(other, 1.0)
    assert (found.lower, found.upper) == (known.lower, known.upper)


def test_zeroed_examples_of_other_noise_have_an_upper_end() -> None:
    zeroed = hs.FixedSizeSubsampled(hs.Laplace(1.0), 3, 10, "zero-out") ** 20
    replaced = hs.FixedSizeSubsampled(hs.Laplace(1.0), 3, 10) ** 20
    found = hs.epsilon(zeroed, 1e-6)
    assert found.upper == pytest.approx(hs.epsilon(replaced, 1e-6).upper, rel=1e-4)
    assert found.lower == 0.0


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize(("batch", "examples", "noise"), [(3, 20, 0.6), (5, 5, 2.0)])
def test_sampling_with_replacement_lies_between_its_attack_and_its_theorem(
    epsilon: float, batch: int, examples: int, noise: float
) -> None:
    plan = hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(noise), batch, examples)
    pair = dominating_pair(plan)
    p = 1.0 / examples
    chances = [math.comb(batch, k) * p**k * (1 - p) ** (batch - k) for k in range(batch + 1)]
    hits = [(chance, float(k)) for k, chance in enumerate(chances)]
    directions = (
        attack(hits, [(1.0, 0.0)], noise, epsilon),
        attack([(1.0, 0.0)], hits, noise, epsilon),
    )
    _, upper = ends(plan, epsilon)
    assert max(directions) <= upper * (1 + 1e-6)
    gamma = 1.0 - chances[0]
    inner = math.log1p(math.expm1(epsilon) / gamma)
    theorem = math.fsum(
        chance * float(GaussianLoss(Fraction(repr(noise)) / k).delta(mp.mpf(inner)))
        for k, chance in enumerate(chances)
        if k
    )
    lower, _ = ends(plan, epsilon)
    assert lower <= max(directions) * (1 + 1e-6)
    assert theorem * (1 - 1e-12) <= upper <= theorem * (1 + 1e-12)
    for loss, exact in zip(pair, directions, strict=True):
        assert loss is not None
        attained = loss.attained
        assert isinstance(attained, CellLoss)
        mass = attained.cells(np.array([epsilon, math.inf]))
        got = math.exp(mass.log_p[0]) - math.exp(epsilon) * math.exp(mass.log_q[0])
        assert got == pytest.approx(exact, rel=1e-6, abs=1e-12)


FORTY_OF_FOUR = hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(8.0), 40, 4)


def one_by_one(batch: int, examples: int, noise: float, epsilon: float) -> float:
    """Return delta where each number of hits is a Gaussian of its own."""
    with mp.workdps(30):
        share = mp.mpf(1) / examples
        inner = mp.log1p(mp.expm1(epsilon) / (1 - (1 - share) ** batch))
        return float(
            mp.fsum(
                mp.binomial(batch, k)
                * share**k
                * (1 - share) ** (batch - k)
                * GaussianLoss(Fraction(noise) / k).delta(inner)
                for k in range(1, batch + 1)
            )
        )


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_cell_above_an_epsilon_costs_no_less_than_hits_one_by_one(epsilon: float) -> None:
    loss = dominating_pair(FORTY_OF_FOUR).removing
    assert isinstance(loss, CellLoss)
    cell = loss.cells(np.array([epsilon, math.inf]))
    found = math.exp(cell.log_p[0]) - math.exp(epsilon) * math.exp(cell.log_q[0])
    theorem = one_by_one(40, 4, 8.0, epsilon)
    assert theorem * (1 - 1e-9) <= found <= 1.5 * theorem


def test_a_cap_that_is_never_reached_costs_nothing() -> None:
    step = hs.PoissonSubsampled(hs.Gaussian(1.0), 0.01) ** 100
    free = hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(1.0), 0.01, 1001, 1000) ** 100
    assert hs.epsilon(free, 1e-6).upper == hs.epsilon(step, 1e-6).upper
    wide = hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(1.0), 0.01, 60, 1000) ** 100
    assert hs.epsilon(wide, 1e-6).upper == pytest.approx(hs.epsilon(step, 1e-6).upper, rel=1e-4)


@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.0), (0.01, 0.5), (0.5, 3.0)])
@pytest.mark.parametrize("order", [0.5, 3.0, 10.0])
def test_a_mirrored_sampled_gaussian_is_the_loss_of_its_trade_off_function(
    rate: float, noise: float, order: float
) -> None:
    one = SampledGaussianLoss(rate, noise, True)
    found = symmetrized(one, None).cgf_bounds(order)
    other = FixedSizeGaussianLoss(rate, noise).cgf_bounds(order)
    assert abs(found.midpoint - other.midpoint) <= found.radius + other.radius
    assert found.radius <= 1e-6 * found.midpoint


@pytest.mark.parametrize(
    "edges",
    [
        [-3.0, -1.0, -0.2, 0.0, 0.2, 1.0, 3.0],
        [-3.0, -0.5, 0.7, 2.0],
        [-math.inf, -0.5, 0.7, math.inf],
        [0.0, 0.5, 1.0],
        [0.3, 0.5, 1.0],
        [-1.0, -0.5, 0.0],
        [-1.0, -0.5, -0.1],
    ],
    ids=str,
)
def test_masses_below_zero_are_mirror_images(edges: list[float]) -> None:
    one = SampledLoss(LaplaceLoss(0.8), 0.3, True)
    both = symmetrized(one, None)
    at = np.array(edges)
    found, back = both.cells(at), both.cells(-at[::-1])
    assert found.log_p == pytest.approx(back.log_q[::-1], rel=1e-13, abs=1e-13)
    for k, (low, high) in enumerate(itertools.pairwise(edges)):
        direct = 0.0
        if high > 0.0:
            direct += math.exp(one.cells(np.array([max(low, 0.0), high])).log_p[0])
        if low < 0.0:
            direct += math.exp(one.cells(np.array([max(-high, 0.0), -low])).log_q[0])
        assert math.exp(found.log_p[k]) == pytest.approx(direct, rel=1e-12)


def test_the_whole_data_as_a_sample_is_the_mechanism_itself() -> None:
    whole = hs.FixedSizeSubsampled(hs.Gaussian(1.0), 10, 10) ** 3
    assert hs.epsilon(whole, 1e-5).upper == hs.epsilon(hs.Gaussian(1.0) ** 3, 1e-5).upper
    replaced = hs.PoissonSubsampled(hs.Gaussian(1.0), 1.0, "replace-one") ** 3
    assert hs.epsilon(replaced, 1e-5).upper == hs.epsilon(hs.Gaussian(0.5) ** 3, 1e-5).upper


def test_poisson_samples_of_a_replaced_example_shown_without_noise_fail_with_their_rate() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(0.0), 0.25, "replace-one")
    assert hs.delta(plan, 1.0).upper == pytest.approx(0.25, rel=1e-12)
