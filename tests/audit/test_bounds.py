"""Lower bounds from scores: they hold as often as they say, and find what is there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import hockeystick as hs
from hockeystick import audit
from hockeystick.audit._region import (
    Counts,
    Levels,
    epsilons,
    lower_rate,
    mus,
    outside_probability,
    quarter_ellipse,
    rectangle,
    region,
    upper_rate,
)
from hockeystick.audit._rules import at_rank, at_threshold, best_of

EPSILON = 1.0
RATE = 1.0 / (1.0 + math.e)


def gaussian(mu: float, trials: int, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng([2026, seed])
    return random.normal(mu, 1.0, trials), random.normal(0.0, 1.0, trials)


def response(trials: int, seed: int) -> tuple[Any, Any]:
    """Scores of 0 or 1 that show all of an epsilon of 1."""
    random = np.random.default_rng([2027, seed])
    inside, outside = random.random(trials) >= RATE, random.random(trials) < RATE
    return inside.astype(float), outside.astype(float)


def misses(levels: Levels, q: float, p: float, trials: int) -> float:
    """The exact probability that a bound at a threshold is above what its rates have."""
    counts = np.arange(trials + 1)
    y, x = (grid.ravel() for grid in np.meshgrid(counts, counts, indexing="ij"))
    truth = max(math.log(p / q), math.log((1 - q) / (1 - p)))
    found = epsilons(0.0)(region(Counts(y, trials, x, trials), levels)).min(axis=-1)
    masses = binom.pmf(y, trials, q) * binom.pmf(x, trials, p)
    return float(masses[found > truth].sum())


@pytest.mark.parametrize("alpha", [0.1, 0.05, 0.01])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize(("q", "p"), [(0.01, 0.2), (0.1, 0.15), (0.4, 0.6), (0.8, 0.99)])
def test_a_region_misses_no_more_often_than_it_says(
    alpha: float, share: float, q: float, p: float
) -> None:
    assert misses(quarter_ellipse(alpha, share, 32), q, p, 40) <= alpha


@pytest.mark.parametrize("alpha", [0.1, 0.05])
def test_a_region_is_not_far_wider_than_it_has_to_be(alpha: float) -> None:
    exact = misses(quarter_ellipse(alpha, 0.5, 32), 0.4, 0.6, 40)
    assert exact > 0.2 * alpha
    assert exact > misses(rectangle(alpha), 0.4, 0.6, 40)


def test_what_is_outside_a_quarter_ellipse_is_what_a_double_integral_says() -> None:
    from scipy.integrate import dblquad

    def density(v: float, u: float) -> float:
        return math.exp(-0.5 * (u * u + v * v)) / (2.0 * math.pi)

    a, b = 1.7, 2.4
    inside, _ = dblquad(density, 0, a, 0, lambda u: b * math.sqrt(1 - (u / a) ** 2))
    half = 0.5 * math.erf(a / math.sqrt(2)) / 2 + 0.5 * math.erf(b / math.sqrt(2)) / 2
    assert outside_probability(a, b) == pytest.approx(1 - 0.25 - half - inside, abs=1e-9)


def test_an_ellipse_with_hardly_a_second_axis_is_hardly_more_than_one_bound() -> None:
    for_errors, for_hits = quarter_ellipse(0.05, 0.999)
    assert 0.046 < for_errors[-1] < 0.05
    assert for_hits[0] < 1e-4


@pytest.mark.parametrize(("objective", "name"), [(epsilons(1e-5), "epsilon"), (mus, "mu")])
def test_a_bound_rises_with_true_positives_and_falls_with_false_ones(
    objective: Callable[[Any], Any], name: str
) -> None:
    levels = quarter_ellipse(0.05, 0.5)
    y, x = np.meshgrid(np.arange(0, 50, 5), np.arange(0, 201, 10), indexing="ij")
    found = objective(region(Counts(y, 200, x, 200), levels)).min(axis=-1)
    risen = np.maximum(found, -1e300)
    assert (np.diff(risen, axis=1) >= 0.0).all(), name
    assert (np.diff(risen, axis=0) <= 0.0).all(), name


@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_bounds_are_above_the_truth_no_more_often_than_they_say(confidence: float) -> None:
    repetitions, wrong = 80, np.zeros(2)
    asked: dict[str, Any] = {"confidence": confidence}
    for i in range(repetitions):
        wrong[0] += audit.lower_mu(*gaussian(1.0, 100, i), **asked, seed=i).value > 1.0
        scores = response(100, i)
        found = audit.lower_epsilon(*scores, delta=0.0, **asked, seed=i)
        wrong[1] += found.value > EPSILON
    most = binom.isf(1e-4, repetitions, 1 - confidence)
    assert (wrong <= most).all()


def test_bounds_come_near_the_truth_with_many_trials() -> None:
    assert 0.93 < audit.lower_mu(*gaussian(1.0, 100_000)).value < 1.0
    found = audit.lower_epsilon(*response(100_000, 0), delta=0.0)
    assert 0.93 < found.value < EPSILON


def test_a_region_is_tighter_than_two_intervals_of_clopper_and_pearson() -> None:
    for trials, threshold in ((100, 1.0), (1000, 2.0), (10_000, 2.5)):
        scores = gaussian(1.0, trials)
        asked: dict[str, Any] = {"delta": 1e-5, "threshold": threshold}
        combined = audit.lower_epsilon(*scores, **asked, share=0.85)
        separate = at_threshold(*scores, threshold, rectangle(0.05))
        assert combined.value > best_of([separate], epsilons(1e-5))[0] > 0.0


def test_points_of_the_curve_are_the_bounds_at_their_ranks() -> None:
    inside, outside = gaussian(1.0, 1000)
    points = audit.lower_curve(inside, outside)
    ranks = [1, 3, 9, 27, 81, 243]
    alpha = np.array(0.05 / (2 * len(ranks)) / 2)
    assert len(points) == 2 * len(ranks)
    for rank in ranks:
        threshold = np.sort(outside)[-rank]
        (point,) = (one for one in points if one.threshold == threshold)
        hits = int((inside > threshold).sum())
        assert (point.false_positives, point.true_positives) == (rank - 1, hits)
        assert point.fpr == float(upper_rate(rank - 1, 1000, alpha))
        assert point.tpr == float(lower_rate(hits, 1000, alpha))


def test_points_of_the_curve_hold_together() -> None:
    wrong = 0
    for i in range(100):
        points = audit.lower_curve(*gaussian(1.0, 300, i), confidence=0.9)
        wrong += any(one.tpr > hs.tradeoffs.GaussianTradeOff(1.0).power(one.fpr) for one in points)
    assert wrong <= 10


def test_swapping_what_is_an_error_swaps_nothing_else() -> None:
    inside, outside = gaussian(1.0, 500)
    found = audit.lower_epsilon(inside, outside, delta=1e-5)
    mirrored = audit.lower_epsilon(-outside, -inside, delta=1e-5)
    assert found.value == mirrored.value > 0.0


def test_a_bound_falls_with_delta_and_with_confidence() -> None:
    scores = gaussian(1.5, 1000)
    values = [audit.lower_epsilon(*scores, delta=d).value for d in (0.0, 1e-3, 0.05, 0.5, 1.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.0 < values[-3]
    sure = [audit.lower_epsilon(*scores, delta=0.0, confidence=c).value for c in (0.5, 0.9, 0.999)]
    assert sure == sorted(sure, reverse=True)
    assert sure[0] > sure[-1] > 0.0


def test_tied_scores_are_ordered_by_the_seed_and_by_all_scores() -> None:
    inside, outside = response(1000, 1)
    found = audit.lower_epsilon(inside, outside, delta=0.0, seed=3)
    assert found == audit.lower_epsilon(inside, outside, delta=0.0, seed=3)
    others = {audit.lower_epsilon(inside, outside, delta=0.0, seed=s).value for s in range(5)}
    mixed = {audit.lower_epsilon(inside, np.roll(outside, s), delta=0.0).value for s in range(5)}
    assert len(others) > 1 < len(mixed)
    assert all(0.5 < one < 1.3 for one in others | mixed)


def test_with_any_seed_a_bound_holds_as_often_as_it_says() -> None:
    trials, seed, wrong = 20, 4, 0.0
    masses = binom.pmf(np.arange(trials + 1), trials, RATE)
    random = np.random.default_rng(7)
    numbers = np.arange(trials)
    for y in range(trials + 1):
        for misses_of_in in range(trials + 1):
            mass = float(masses[y] * masses[misses_of_in])
            if mass < 1e-5:
                continue
            outside = random.permutation((numbers < y).astype(float))
            inside = random.permutation((numbers >= misses_of_in).astype(float))
            found = audit.lower_epsilon(inside, outside, delta=0.0, confidence=0.9, seed=seed)
            wrong += mass * (found.value > EPSILON)
    assert 0.001 < wrong < 0.1


@pytest.mark.parametrize("rank", [1, 4, 6])
def test_tied_scores_beyond_a_rank_are_as_many_as_uniform_numbers_say(rank: int) -> None:
    inside, outside = np.zeros(1000), np.append(np.zeros(6), -np.ones(4))
    levels = rectangle(0.05)
    found = [
        int(at_rank("out", rank, (inside, np.sort(outside)), levels, seed).counts.hits)
        for seed in range(400)
    ]
    expected = 1000 * rank / 7  # of 6 uniform numbers the largest are missed by so many
    assert np.mean(found) == pytest.approx(expected, abs=40)


def test_cells_are_on_the_safe_side_of_the_curve_that_they_cover() -> None:
    counts = Counts(5, 1000, 300, 1000)
    for objective in (epsilons(1e-5), mus):
        found = [
            float(objective(region(counts, quarter_ellipse(0.05, 0.5, cells))).min())
            for cells in (16, 64, 256, 4096)
        ]
        assert found == sorted(found)
        assert found[-1] < found[-2] * 1.003


def test_only_the_order_of_scores_counts() -> None:
    inside, outside = gaussian(1.0, 500)
    found = audit.lower_epsilon(inside, outside, delta=1e-5).value
    assert audit.lower_epsilon(np.exp(inside), np.exp(outside), delta=1e-5).value == found
    inside[0], outside[0] = math.inf, -math.inf
    assert audit.lower_epsilon(inside, outside, delta=1e-5).value >= 0.0


def test_an_answer_says_what_it_is() -> None:
    found = audit.lower_epsilon(*gaussian(1.0, 1000), delta=1e-5)
    assert (found.method, found.quantity, found.trials) == ("simultaneous", "epsilon", 2000)
    assert "Bonferroni" in found.theorem
    assert "with confidence 0.95" in str(found)
    assert "not a proof of privacy" in str(found)
    read = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert read["value"] == found.value
    assert read["point"]["in_trials"] == 1000
    shown = float(str(found).split()[2])
    assert shown <= found.value < shown + 1e-4
