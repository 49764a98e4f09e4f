"""Selections of partitions, against output distributions on data, and against their formula."""

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import UnsupportedError
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.rounding import as_mpf
from hockeystick.privacy_loss.selection.partition_selection import blocks, shown_alone

PartitionSelection = hs.mechanisms.PartitionSelection
EPSILONS = (0.0, 0.2, 0.7, 1.5, 3.0)
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
    """Return the divergence of two lists of masses."""
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
    for epsilon in EPSILONS:
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


def test_one_run_is_the_worst_of_all_numbers_of_partitions_alone() -> None:
    """The formula for Gaussian noise, with integrals in place of distribution functions."""
    sigma, threshold, k = 5.0, 22.0, 4
    said = PartitionSelection(hs.Gaussian(sigma), threshold, k)
    with mp.workdps(25):
        shown = mp.quad(mp.npdf, [(threshold - 1) / sigma, 10, 40])
        for epsilon in (0.05, 1.2):
            worst = mp.zero
            for j in range(k + 1):
                mu, kept = mp.sqrt(k - j) / sigma, (1 - shown) ** j
                for direction in (1, -1):
                    at = epsilon - direction * mp.log(kept)

                    def excess(x: Any, mu: Any = mu, at: Any = at) -> Any:
                        return max(mp.npdf(x, mu) - mp.exp(at) * mp.npdf(x), 0)

                    start = at / mu + mu / 2 if j < k else mp.zero
                    rest = (
                        mp.quad(excess, mp.linspace(start, start + 20, 9))
                        if j < k
                        else max(1 - mp.exp(at), 0)
                    )
                    worst = max(worst, 1 - kept + kept * rest if direction == 1 else rest)
            answer = hs.delta(said, epsilon=epsilon)
            assert answer.lower * (1 - 1e-12) <= worst <= answer.upper * (1 + 1e-12)


def test_an_adaptive_second_run_may_do_worse_than_any_plan_made_before() -> None:
    """The kind of the second run's partition is chosen by the outcome of the first one."""
    noise, threshold, epsilon = hs.DiscreteLaplace(1.0), 4, 1.1
    once = PartitionSelection(noise, threshold)
    pairs = {
        kind: (outputs(noise, threshold, count + 1), outputs(noise, threshold, count))
        for kind, count in (("alone", 0), ("shared", 40))
    }

    def second(p: float, q: float) -> list[float]:
        """Return what each kind of second run adds at an outcome of the first."""
        return [
            float(np.maximum(p * own - math.exp(epsilon) * q * other, 0.0).sum())
            for own, other in pairs.values()
        ]

    chosen, planned = 0.0, 0.0
    for own, other in pairs.values():
        added = np.array([second(p, q) for p, q in zip(own, other, strict=True)])
        chosen = max(chosen, added.max(axis=1).sum())
        planned = max(planned, *added.sum(axis=0))
    answer = hs.delta(once**2, epsilon=epsilon)
    assert planned > answer.lower * (1 - 1e-9)
    assert chosen > planned * 1.03
    assert chosen <= answer.upper


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_two_runs_are_between_data_and_all_at_once(adjacency: str) -> None:
    noise, threshold = hs.DiscreteLaplace(2.0), 12
    said = PartitionSelection(noise, threshold, 1, adjacency) ** 2
    counts = [(1, 0), (5, 4), (41, 40)]
    if adjacency == "replace-one":
        singles = [(a, b) for a in counts for b in [(y, x) for x, y in counts]]
        pairs = [
            tuple(np.outer(*(outputs(noise, threshold, c[side]) for c in both)) for side in (0, 1))
            for both in singles
        ]
    else:
        pairs = [tuple(outputs(noise, threshold, c) for c in one) for one in counts]
    pairs += [(q, p) for p, q in pairs]
    for epsilon in (0.3, 1.0):
        answer = hs.delta(said, epsilon=epsilon)
        found = 0.0
        for (p1, q1), (p2, q2) in itertools.combinations_with_replacement(pairs, 2):
            # The losses of one run, merged by what they are, make the second run's short.
            found = max(found, _two(p1, q1, p2, q2, epsilon))
        assert answer.lower * (1 - 1e-9) <= found * (1 + 1e-9)
        assert found <= answer.upper * (1 + 1e-9)


def _two(p1: Any, q1: Any, p2: Any, q2: Any, epsilon: float) -> float:
    """Return the hockey-stick divergence of a product, equal likelihood ratios merged."""
    merged = []
    for p, q in ((p1, q1), (p2, q2)):
        p, q = p.ravel(), q.ravel()
        some = (p > 0) | (q > 0)
        with np.errstate(divide="ignore"):
            key = np.round(np.log(p[some]) - np.log(q[some]), 9)
        _, place = np.unique(key, return_inverse=True)
        merged.append([np.bincount(place, weights=one[some]) for one in (p, q)])
    (a, b), (c, d) = merged
    return hockey_stick(np.outer(a, c), np.outer(b, d), epsilon)


def test_the_upper_end_of_runs_is_that_of_both_kinds_at_once() -> None:
    """k partitions alone and k with others in each of 2 runs: the formula for Gaussian noise."""
    sigma, threshold, k, epsilon = 10.0, 45.0, 3, 0.9
    answer = hs.delta(PartitionSelection(hs.Gaussian(sigma), threshold, k) ** 2, epsilon=epsilon)
    with mp.workdps(25):
        kept = mp.ncdf((threshold - 1) / sigma) ** (2 * k)
        mu, at = mp.sqrt(2 * k) / sigma, epsilon - mp.log(kept)
        rest = mp.ncdf(mu / 2 - at / mu) - mp.exp(at) * mp.ncdf(-mu / 2 - at / mu)
        assert answer.upper == pytest.approx(float(1 - kept + kept * rest), rel=1e-12)


def test_both_ends_survive_next_to_sampled_training() -> None:
    training = hs.DPSGD(noise_multiplier=1.1, rate=0.01, steps=1000)
    said = PartitionSelection(hs.Gaussian(20.0), 135, partitions=4)
    both = hs.epsilon(said @ training, delta=1e-5)
    noise_alone = hs.epsilon(hs.Gaussian(20.0) ** 4 @ training, delta=1e-5)
    assert both.lower >= noise_alone.lower * (1 - 1e-9)
    assert both.upper <= both.lower * 1.001
    shown_at_once = hs.epsilon(PartitionSelection(hs.Gaussian(20.0), 60, 4) @ training, delta=1e-5)
    assert shown_at_once.lower == math.inf


def test_a_lone_run_is_no_more_than_one_among_others() -> None:
    said = PartitionSelection(hs.Gaussian(10.0), 56, partitions=4)
    alone = hs.delta(said, epsilon=1.0)
    assert hs.delta(said**1, epsilon=1.0).upper == alone.upper
    assert hs.delta(hs.Composed((said,)), epsilon=1.0).upper == alone.upper
    with_nothing = hs.delta(said @ hs.Gaussian(math.inf), epsilon=1.0)
    assert with_nothing.lower <= alone.upper <= with_nothing.upper


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


def test_a_user_alone_in_all_partitions_is_between_both_ends() -> None:
    """At epsilon 50 noise of this much hides all else: ``1 - (1 - p)^k`` in 50 digits or more."""
    draw = random.Random(7)
    for _ in range(20):
        laplace, scale, k = draw.random() < 0.5, draw.uniform(1.5, 9.0), draw.randint(1, 3)
        threshold = 1.0 + scale * draw.uniform(-0.1, 18.0)
        noise = hs.Laplace(scale) if laplace else hs.Gaussian(scale)
        answer = hs.delta(PartitionSelection(noise, threshold, k), epsilon=50)
        with mp.workdps(120):
            at = (mp.mpf(repr(threshold)) - 1) / mp.mpf(repr(scale))
            tail = mp.exp(-abs(at)) / 2 if laplace else mp.erfc(abs(at) / mp.sqrt(2)) / 2
            truth = -mp.expm1(k * mp.log1p(-(tail if at > 0 else 1 - tail)))
            assert answer.lower <= truth <= answer.upper <= answer.lower * (1 + 1e-12)


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


@pytest.mark.parametrize(
    "around",
    [
        lambda said: hs.PoissonSubsampled(said, 0.1),
        lambda said: hs.mechanisms.RandomStopping(said, hs.mechanisms.tuning.Poisson(4.0)),
    ],
)
def test_it_is_not_accounted_inside_of_another_mechanism(around: Any) -> None:
    plan = around(PartitionSelection(hs.Gaussian(10.0), 56))
    with pytest.raises(UnsupportedError, match="a selection of partitions is accounted by itself"):
        hs.epsilon(plan, delta=1e-5)


def test_in_a_part_of_the_data_it_is_one_part_among_others() -> None:
    said, other = PartitionSelection(hs.Gaussian(10.0), 56), hs.Gaussian(1.0)
    split = hs.Parallel((said, other), split="country")
    assert hs.epsilon(split, delta=1e-5).upper == hs.epsilon(other, delta=1e-5).upper
    both = hs.epsilon(said @ split, delta=1e-5)
    assert both.upper >= hs.epsilon(hs.Gaussian(10.0) @ other, delta=1e-5).lower
