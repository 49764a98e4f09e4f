"""Groups on a Poisson sample: against quadrature, vectors of all kinds, and a peer."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import PoissonSubsampledGroup
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import NoAnalysisError, compose, dominating_pair

each_adjacency = pytest.mark.parametrize("adjacency", list(Adjacency))


def counts(rate: float, size: int) -> list[Any]:
    """Return the binomial probabilities."""
    q = mp.mpf(str(rate))
    return [mp.binomial(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]


def stick(noise: float, rate: float, size: int, other: int, epsilon: float) -> Any:
    """Return the larger hockey-stick divergence of the sum's mixtures, by quadrature.

    The neighbour's examples contribute ``other`` times the group's.
    """
    chances, z = counts(rate, size), mp.mpf(str(noise))

    def densities(x: Any) -> tuple[Any, Any]:
        p, q = (
            mp.fsum(w * mp.npdf(x - side * j / z) for j, w in enumerate(chances))
            for side in (1, other)
        )
        return p, q

    def excess(x: Any, first: int) -> Any:
        both = densities(x)
        return max(both[first] - mp.exp(epsilon) * both[1 - first], 0)

    reach = 14 + size / z
    cuts = mp.linspace(-reach, reach, 161)
    return max(mp.quad(lambda x, i=i: excess(x, i), cuts) for i in (0, 1))


@each_adjacency
@pytest.mark.parametrize(("noise", "rate", "size"), [(1.0, 0.1, 2), (2.0, 0.3, 5), (0.7, 0.02, 3)])
def test_delta_of_one_run_holds_the_quadrature(
    noise: float, rate: float, size: int, adjacency: Adjacency
) -> None:
    plan = PoissonSubsampledGroup(hs.Gaussian(noise), rate, size, adjacency)
    other = -1 if adjacency is Adjacency.REPLACE_ONE else 0
    for epsilon in (0.0, 0.4, 1.5):
        answer = hs.delta(plan, epsilon)
        assert isinstance(answer, hs.Certified)
        with mp.workdps(20):
            truth = float(stick(noise, rate, size, other, epsilon))
        assert answer.lower <= truth * (1 + 1e-6)
        assert truth * (1 - 1e-6) <= answer.upper
        assert answer.upper <= answer.lower * (1 + 1e-2)


def in_a_ball(rng: np.random.Generator, number: int) -> NDArray[np.float64]:
    """Return vectors of the plane, of length at most 1, some of them the longest or 0."""
    angle = rng.uniform(0, 2 * math.pi, number)
    size = rng.choice([0.0, 0.5, 1.0, 1.0, 1.0], number)
    return np.stack((size * np.cos(angle), size * np.sin(angle)), axis=1)


@each_adjacency
@pytest.mark.parametrize("seed", range(8))
def test_no_vectors_cost_more(adjacency: Adjacency, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, noise, rate = int(rng.integers(2, 4)), float(rng.choice([0.8, 1.5])), 0.3
    first = in_a_ball(rng, size)
    other = in_a_ball(rng, size) if adjacency is Adjacency.REPLACE_ONE else 0.0 * first
    axis = np.linspace(-9.0, 9.0, 361)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    p, q = np.zeros(grid.shape[:2]), np.zeros(grid.shape[:2])
    for drawn in itertools.product((0, 1), repeat=size):
        chance = math.prod(rate if one else 1 - rate for one in drawn)
        for density, vectors in ((p, first), (q, other)):
            mean = np.array(drawn) @ vectors / noise
            square = ((grid - mean) ** 2).sum(axis=-1)
            density += chance * np.exp(-0.5 * square) / (2 * math.pi)
    cell = (axis[1] - axis[0]) ** 2
    plan = PoissonSubsampledGroup(hs.Gaussian(noise), rate, size, adjacency)
    for epsilon in (0.0, 0.3, 1.0):
        found = max(
            float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) * cell
            for a, b in ((p, q), (q, p))
        )
        assert found <= hs.delta(plan, epsilon).upper * (1 + 1e-4) + 1e-9


@each_adjacency
def test_a_group_of_one_is_a_record(adjacency: Adjacency) -> None:
    one = PoissonSubsampledGroup(hs.Gaussian(1.5), 0.1, 1, adjacency)
    record = hs.PoissonSubsampled(hs.Gaussian(1.5), 0.1, adjacency)
    assert dominating_pair(one) == dominating_pair(record)


@each_adjacency
def test_at_rate_1_the_whole_group_moves_the_sum(adjacency: Adjacency) -> None:
    whole = PoissonSubsampledGroup(hs.Gaussian(8.0), 1, 4, adjacency)
    move = 8 if adjacency is Adjacency.REPLACE_ONE else 4
    assert hs.epsilon(whole, 1e-6).upper == pytest.approx(
        hs.epsilon(hs.Gaussian(8.0 / move), 1e-6).upper, rel=1e-9
    )


@each_adjacency
@pytest.mark.parametrize("inner", [0.0, math.inf])
def test_noise_without_end_and_none(adjacency: Adjacency, inner: float) -> None:
    plan = PoissonSubsampledGroup(hs.Gaussian(inner), 0.1, 3, adjacency)
    answer = hs.delta(plan, 1.0)
    assert isinstance(answer, hs.Certified)
    truth = 0.0 if inner else 1 - 0.9**3
    assert answer.lower == pytest.approx(truth, rel=1e-12)
    assert answer.upper == pytest.approx(truth, rel=1e-12)


@each_adjacency
def test_rare_counts_are_moved_and_both_ends_stay_together(adjacency: Adjacency) -> None:
    plan = PoissonSubsampledGroup(hs.Gaussian(60.0), Fraction(1, 1000), 200, adjacency) ** 100
    answer = hs.epsilon(plan, 1e-8)
    assert isinstance(answer, hs.Certified)
    assert 0.0 < answer.lower <= answer.upper <= answer.lower * 1.01
    smaller = PoissonSubsampledGroup(hs.Gaussian(60.0), Fraction(1, 1000), 100, adjacency) ** 100
    assert hs.epsilon(smaller, 1e-8).upper < answer.lower


def test_groups_beyond_reach_are_refused() -> None:
    with pytest.raises(NoAnalysisError, match="up to 1,000 examples, not for 1,001"):
        dominating_pair(PoissonSubsampledGroup(hs.Gaussian(1.0), 0.1, 1001))
    with pytest.raises(hs.errors.IncompatibleError, match="for the Gaussian mechanism, not for"):
        PoissonSubsampledGroup(hs.Laplace(1.0), 0.1, 2)


@pytest.mark.extras
def test_a_peer_s_estimate_of_the_same_mixture_is_close() -> None:
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    plan = hs.DPSGD(
        examples=10_000, batch_size=100, epochs=5, noise_multiplier=2.0, examples_per_user=4
    )
    chances = [math.comb(4, j) * 0.01**j * 0.99 ** (4 - j) for j in range(5)]
    event = dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 1.0, 2.0, 3.0, 4.0], chances)
    accountant = pld_privacy_accountant.PLDAccountant(
        pld_privacy_accountant.NeighborRel.ADD_OR_REMOVE_ONE
    )
    estimate = accountant.compose(event, 500).get_epsilon(1e-6)
    answer = hs.epsilon(plan, 1e-6)
    assert isinstance(answer, hs.Certified)
    assert estimate == pytest.approx(answer.upper, rel=1e-3)


def test_a_fraction_is_another_rate_than_the_float_that_equals_it() -> None:
    """The float 0.1 means 1/10, and ``Fraction(0.1)`` a little more."""
    one, other = (hs.PoissonSubsampled(hs.Gaussian(4.0), rate) for rate in (0.1, Fraction(0.1)))
    assert one == other
    assert len(compose(one**10 @ other**10).removing) == 2
