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
from hockeystick.privacy_loss.core.registry import NoAnalysisError, dominating_pair
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


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7, 2.0])
@pytest.mark.parametrize(("batch", "examples", "noise"), [(2, 10, 0.5), (3, 4, 1.0), (1, 50, 0.3)])
def test_no_three_examples_cost_more_than_a_sample_of_a_fixed_size(
    epsilon: float, batch: int, examples: int, noise: float
) -> None:
    # Noise in units of replacing an example, whose contributions lie between -1/2 and 1/2.
    plan = hs.FixedSizeSubsampled(hs.Gaussian(noise), batch, examples)
    lower, upper = ends(plan, epsilon)
    q = batch / examples
    found = [
        attack([(1 - q, other), (q, one)], [(1 - q, other), (q, new)], noise, epsilon)
        for other, one, new in itertools.product((-0.5, 0.0, 0.5), repeat=3)
    ]
    assert max(found) == pytest.approx(upper, rel=1e-6, abs=1e-12)
    assert lower == pytest.approx(upper, rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7, 2.0])
@pytest.mark.parametrize(("batch", "examples", "noise"), [(2, 10, 0.5), (3, 4, 1.0), (4, 4, 0.7)])
def test_no_zeroed_example_costs_more_than_a_replaced_one(
    epsilon: float, batch: int, examples: int, noise: float
) -> None:
    plan = hs.FixedSizeSubsampled(hs.Gaussian(noise), batch, examples, "zero-out")
    lower, upper = ends(plan, epsilon)
    q = batch / examples
    # Of a sample's sum only that differs which the example or another one in its place adds.
    found = []
    for other, one in itertools.product((-0.5, 0.0, 0.5), repeat=2):
        pair = ([(1 - q, other), (q, one)], [(1 - q, other), (q, 0.0)])
        found += [attack(*pair, noise, epsilon), attack(*pair[::-1], noise, epsilon)]
    assert max(found) <= upper * (1 + 1e-6) + 1e-12
    still = ([(1 - q, 0.0), (q, 0.5)], [(1.0, 0.0)])
    attained = max(attack(*still, noise, epsilon), attack(*still[::-1], noise, epsilon))
    assert lower == pytest.approx(attained, rel=1e-4, abs=1e-12)
    assert lower <= attained * (1 + 1e-6) + 1e-12
    if batch < examples:
        assert (
            upper
            == hs.delta(hs.FixedSizeSubsampled(hs.Gaussian(noise), batch, examples), epsilon).upper
        )


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7, 2.0])
@pytest.mark.parametrize(("batch", "examples", "noise"), [(2, 10, 0.5), (3, 4, 1.0), (1, 50, 0.3)])
def test_a_zeroed_vector_costs_what_it_does_among_opposite_ones(
    epsilon: float, batch: int, examples: int, noise: float
) -> None:
    plan = hs.FixedSizeSubsampled(hs.Gaussian(noise), batch, examples, "zero-out", clipped=True)
    lower, upper = ends(plan, epsilon)
    q = batch / examples
    found = []
    for other, one in itertools.product((-0.5, 0.0, 0.5), repeat=2):
        pair = ([(1 - q, other), (q, one)], [(1 - q, other), (q, 0.0)])
        found += [attack(*pair, noise, epsilon), attack(*pair[::-1], noise, epsilon)]
    assert max(found) == pytest.approx(upper, rel=1e-6, abs=1e-12)
    assert lower == pytest.approx(upper, rel=1e-10, abs=1e-300)
    # A count, which a replacement moves as far, is another thing.
    count = attack([(1 - q, 0.0), (q, 1.0)], [(1.0, 0.0)], noise, epsilon)
    free = hs.FixedSizeSubsampled(hs.Gaussian(noise), batch, examples, "zero-out")
    assert count <= ends(free, epsilon)[1] * (1 + 1e-6) + 1e-12
    if epsilon > 0.0:
        assert count > upper * (1 + 1e-3)


def sums(vectors: np.ndarray, batch: int, noise: float, size: int = 301) -> np.ndarray:
    """Return the masses of cells of the plane of a noisy sum over a random set of vectors."""
    axis = np.linspace(-3.0 - 6.0 * noise, 3.0 + 6.0 * noise, size)
    sets = list(itertools.combinations(range(len(vectors)), batch))
    total = np.zeros((size, size))
    for one in sets:
        at = vectors[list(one)].sum(axis=0)
        east, north = (np.exp(-0.5 * ((axis - c) / noise) ** 2) for c in at)
        total += np.outer(east, north)
    scaled: np.ndarray = total * (axis[1] - axis[0]) ** 2 / (2 * math.pi * noise**2 * len(sets))
    return scaled


@pytest.mark.parametrize(("batch", "examples", "noise"), [(1, 3, 0.8), (2, 4, 1.0), (3, 4, 0.7)])
def test_no_vectors_of_a_disc_cost_more_and_opposite_ones_as_much(
    batch: int, examples: int, noise: float
) -> None:
    rng = np.random.default_rng(5)
    step = hs.FixedSizeSubsampled(hs.Gaussian(noise / 2), batch, examples, "zero-out", clipped=True)
    uppers = {epsilon: ends(step, epsilon) for epsilon in (0.05, 0.5, 1.5)}
    east = np.array([1.0, 0.0])
    tried = [np.array([east, *[side * east] * (examples - 1)]) for side in (-1.0, 0.0, 1.0)]
    for _ in range(30):
        angle, radius = rng.uniform(0, 2 * math.pi, examples), rng.uniform(0, 1, examples) ** 0.25
        tried.append(np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1))
    best = dict.fromkeys(uppers, 0.0)
    for vectors in tried:
        zeroed = vectors.copy()
        zeroed[0] = 0.0
        p, q = sums(vectors, batch, noise), sums(zeroed, batch, noise)
        for epsilon in best:
            for one, other in ((p, q), (q, p)):
                cost = float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())
                best[epsilon] = max(best[epsilon], cost)
    for epsilon, (lower, upper) in uppers.items():
        assert best[epsilon] <= upper * (1 + 2e-3)
        assert lower <= best[epsilon] * (1 + 2e-3)


@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_no_two_runs_cost_more_whichever_vectors_each_has(epsilon: float) -> None:
    q, noise = 0.25, 0.8
    plan = hs.FixedSizeSubsampled(hs.Gaussian(noise / 2), 1, 4, "zero-out", clipped=True) ** 2
    lower, upper = ends(plan, epsilon)
    axis = np.linspace(-8.0, 8.0, 1601)

    def law(*parts: tuple[float, float]) -> np.ndarray:
        total = sum(w * np.exp(-0.5 * ((axis - m) / noise) ** 2) for w, m in parts)
        made: np.ndarray = (
            np.asarray(total) * (axis[1] - axis[0]) / (noise * math.sqrt(2 * math.pi))
        )
        return made

    runs = [
        (law((1 - q, x), (q, 1.0)), law((1 - q, x), (q, 0.0))) for x in (-1.0, -0.5, 0.0, 0.5, 1.0)
    ]
    costs: dict[tuple[int, int, bool], float] = {}
    for (i, first), (j, second) in itertools.product(enumerate(runs), repeat=2):
        p, r = np.outer(first[0], second[0]), np.outer(first[1], second[1])
        costs[i, j, True] = float(np.maximum(p - math.exp(epsilon) * r, 0.0).sum())
        costs[i, j, False] = float(np.maximum(r - math.exp(epsilon) * p, 0.0).sum())
    assert max(costs.values()) <= upper * (1 + 1e-4)
    attained = max(costs[0, 0, True], costs[4, 4, False])
    assert lower == pytest.approx(attained, rel=1e-3)


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


def test_training_on_zeroed_examples_costs_less_than_on_replaced_ones() -> None:
    zeroed = hs.DPSGD(
        examples=1000,
        batch_size=50,
        steps=80,
        noise_multiplier=1.0,
        sampling="fixed-size",
        adjacency="zero-out",
    )
    found = hs.epsilon(zeroed, 1e-5)
    assert 10.62 <= found.lower <= found.upper <= 10.82
    assert any("at most half" in text for text in zeroed.mechanism.assumptions)


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
def test_many_hits_that_are_counted_together_cost_no_less_than_one_by_one(epsilon: float) -> None:
    theorem = one_by_one(40, 4, 8.0, epsilon)
    lower, upper = ends(FORTY_OF_FOUR, epsilon)
    assert lower <= theorem <= upper <= 1.5 * theorem


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_cell_above_an_epsilon_costs_no_less_than_hits_one_by_one(epsilon: float) -> None:
    loss = dominating_pair(FORTY_OF_FOUR).removing
    assert isinstance(loss, CellLoss)
    cell = loss.cells(np.array([epsilon, math.inf]))
    found = math.exp(cell.log_p[0]) - math.exp(epsilon) * math.exp(cell.log_q[0])
    theorem = one_by_one(40, 4, 8.0, epsilon)
    assert theorem * (1 - 1e-9) <= found <= 1.5 * theorem


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9])
def test_a_run_with_replacement_keeps_its_theorem_at_any_tolerance(tolerance: float) -> None:
    plan = hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(1.0), 10, 1000)
    found = hs.delta(plan, 1.0, tolerance=tolerance)
    with mp.workdps(30):
        share = mp.mpf(1) / 1000
        inner = mp.log1p(mp.expm1(1) / (1 - (1 - share) ** 10))
        theorem = mp.fsum(
            mp.binomial(10, k)
            * share**k
            * (1 - share) ** (10 - k)
            * (
                mp.ncdf(mp.mpf(k) / 2 - inner / k)
                - mp.exp(inner) * mp.ncdf(-mp.mpf(k) / 2 - inner / k)
            )
            for k in range(1, 11)
        )
    assert theorem <= found.upper <= theorem * (1 + mp.mpf("1e-13"))
    # What the lower end is for, the attack on examples that are all alike, is 1.24117...e-8.
    assert 1.2409e-8 <= found.lower <= 1.241177e-8
    back = hs.epsilon(plan, found.upper, tolerance=tolerance)
    assert back.upper == pytest.approx(1.0, rel=1e-12)


def test_shuffled_epochs_have_the_upper_end_of_their_gaussian() -> None:
    plan = hs.Shuffled(hs.Gaussian(2.0), steps=20) ** 4
    for tolerance in (1e-4, 1e-8):
        found = hs.epsilon(plan, 1e-6, tolerance=tolerance)
        assert found.upper == hs.epsilon(hs.GDP(1.0), 1e-6).upper
        assert 0.0 < found.lower < found.upper


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5])
@pytest.mark.parametrize(("cap", "rate"), [(1, 0.3), (2, 0.3), (3, 0.1), (5, 0.4)])
def test_no_attack_on_truncated_samples_costs_more(epsilon: float, cap: int, rate: float) -> None:
    others, noise = 6, 0.9
    plan = hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(noise), rate, cap, others + 1)
    lower, upper = ends(plan, epsilon)
    for other in (-1.0, 0.0, 1.0):
        with_it, without = [], []
        for drawn in range(others + 1):
            chance = math.comb(others, drawn) * rate**drawn * (1 - rate) ** (others - drawn)
            rest = (chance, other * min(drawn, cap))
            without.append(rest)
            kept = rate * min(1.0, cap / (drawn + 1))
            with_it.append((chance * kept, 1.0 + other * min(drawn, cap - 1)))
            with_it.append((chance * (1.0 - kept), rest[1]))
        costs = (attack(with_it, without, noise, epsilon), attack(without, with_it, noise, epsilon))
        assert max(costs) <= upper * (1 + 1e-6) + 1e-12
        if other == 0.0:
            assert lower <= max(costs) * (1 + 1e-6)


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


def test_all_masses_of_a_mirrored_loss_add_up_to_one() -> None:
    for one in (SampledLoss(LaplaceLoss(0.8), 0.3, True), SampledGaussianLoss(0.2, 0.7, True)):
        both = symmetrized(one, None)
        cells, atoms = both.cells(np.array([-math.inf, math.inf])), both.atoms()
        assert math.exp(cells.log_p[0]) + np.exp(atoms.log_p).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (hs.FixedSizeSubsampled(hs.Gaussian(1.0) ** 2, 2, 10), "for a single run inside"),
        (
            hs.mechanisms.WithReplacementSubsampled(hs.Laplace(1.0), 2, 10),
            "for the Gaussian mechanism",
        ),
        (
            hs.mechanisms.TruncatedPoissonSubsampled(hs.Laplace(1.0), 0.1, 2, 10),
            "for the Gaussian mechanism",
        ),
        (hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(0.0), 2, 10), "at least 1e-30, not 0"),
        (
            hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(1.0), 1.0, 2, 10),
            "use FixedSizeSubsampled",
        ),
    ],
    ids=str,
)
def test_what_has_no_analysis_is_refused_with_the_reason(plan: hs.Mechanism, reason: str) -> None:
    with pytest.raises(NoAnalysisError, match=reason):
        dominating_pair(plan)
    with pytest.raises(hs.errors.UnsupportedError, match=reason):
        hs.epsilon(plan, 1e-5)


@pytest.mark.parametrize(
    "plan",
    [
        hs.FixedSizeSubsampled(hs.Gaussian(math.inf), 2, 10),
        hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(math.inf), 2, 10),
        hs.mechanisms.TruncatedPoissonSubsampled(hs.Gaussian(math.inf), 0.1, 2, 10),
        hs.PoissonSubsampled(hs.Gaussian(math.inf), 0.1, "replace-one"),
        hs.PoissonSubsampled(hs.Gaussian(1.0), 0.0, "replace-one"),
    ],
    ids=str,
)
def test_what_releases_nothing_costs_nothing(plan: hs.Mechanism) -> None:
    assert hs.epsilon(plan, 1e-5).upper == 0.0


def test_the_whole_data_as_a_sample_is_the_mechanism_itself() -> None:
    whole = hs.FixedSizeSubsampled(hs.Gaussian(1.0), 10, 10) ** 3
    assert hs.epsilon(whole, 1e-5).upper == hs.epsilon(hs.Gaussian(1.0) ** 3, 1e-5).upper
    replaced = hs.PoissonSubsampled(hs.Gaussian(1.0), 1.0, "replace-one") ** 3
    assert hs.epsilon(replaced, 1e-5).upper == hs.epsilon(hs.Gaussian(0.5) ** 3, 1e-5).upper


def test_poisson_samples_of_a_replaced_example_shown_without_noise_fail_with_their_rate() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(0.0), 0.25, "replace-one")
    assert hs.delta(plan, 1.0).upper == pytest.approx(0.25, rel=1e-12)
