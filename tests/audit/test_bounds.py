"""Lower bounds from scores, which hold as often as they say, and plans that they refute or not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import hockeystick as hs
from hockeystick import audit
from hockeystick.audit import region as regions
from hockeystick.audit.one_run import (
    Guesses,
    epsilon_by_binomial,
    inverse_of,
    largest_rejected,
    of_gaussians,
    rejected,
)
from hockeystick.tradeoffs import GaussianTradeOff


def gaussian(mu: float, trials: int, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng([2026, seed])
    return random.normal(mu, 1.0, trials), random.normal(0.0, 1.0, trials)


def misses(levels: regions.Levels, q: float, p: float, trials: int) -> float:
    """The exact probability that a bound at a threshold is above what its rates have."""
    counts = np.arange(trials + 1)
    y, x = (grid.ravel() for grid in np.meshgrid(counts, counts, indexing="ij"))
    truth = max(math.log(p / q), math.log((1 - q) / (1 - p)))
    found = regions.epsilons(0.0)(regions.region(regions.Counts(y, trials, x, trials), levels)).min(
        axis=-1
    )
    masses = binom.pmf(y, trials, q) * binom.pmf(x, trials, p)
    return float(masses[found > truth].sum())


@pytest.mark.parametrize("alpha", [0.05])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize(("q", "p"), [(0.01, 0.2), (0.1, 0.15), (0.4, 0.6), (0.8, 0.99)])
def test_a_region_misses_no_more_often_than_it_says(
    alpha: float, share: float, q: float, p: float
) -> None:
    assert misses(regions.quarter_ellipse(alpha, share, 32), q, p, 40) <= alpha


def test_what_is_outside_a_quarter_ellipse_is_what_a_double_integral_says() -> None:
    from scipy.integrate import dblquad

    def density(v: float, u: float) -> float:
        return math.exp(-0.5 * (u * u + v * v)) / (2.0 * math.pi)

    a, b = 1.7, 2.4
    inside, _ = dblquad(density, 0, a, 0, lambda u: b * math.sqrt(1 - (u / a) ** 2))
    half = 0.5 * math.erf(a / math.sqrt(2)) / 2 + 0.5 * math.erf(b / math.sqrt(2)) / 2
    assert regions.outside_probability(a, b) == pytest.approx(1 - 0.25 - half - inside, abs=1e-9)


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
        assert point.fpr == float(regions.upper_rate(rank - 1, 1000, alpha))
        assert point.tpr == float(regions.lower_rate(hits, 1000, alpha))


@pytest.mark.parametrize("rank", [1, 4, 6])
def test_tied_scores_beyond_a_rank_are_as_many_as_uniform_numbers_say(rank: int) -> None:
    inside, outside = np.zeros(1000), np.append(np.zeros(6), -np.ones(4))
    levels = regions.rectangle(0.05)
    found = [
        int(regions.at_rank("out", rank, (inside, np.sort(outside)), levels, seed).counts.hits)
        for seed in range(400)
    ]
    expected = 1000 * rank / 7  # of 6 uniform numbers the largest are missed by so many
    assert np.mean(found) == pytest.approx(expected, abs=40)


def test_cells_are_on_the_safe_side_of_the_curve_that_they_cover() -> None:
    counts = regions.Counts(5, 1000, 300, 1000)
    for objective in (regions.epsilons(1e-5), regions.mus):
        found = [
            float(
                objective(regions.region(counts, regions.quarter_ellipse(0.05, 0.5, cells))).min()
            )
            for cells in (16, 64, 256, 4096)
        ]
        assert found == sorted(found)
        assert found[-1] < found[-2] * 1.003


@pytest.mark.parametrize(("count", "trials"), [(0, 10), (3, 40), (40, 40), (17, 1000)])
def test_rates_are_the_exact_ones_of_clopper_and_pearson(count: int, trials: int) -> None:
    level = np.array([0.025])
    upper, lower = (
        float(one(count, trials, level)[0]) for one in (regions.upper_rate, regions.lower_rate)
    )
    if count < trials:
        assert 0.02499 < binom.cdf(count, trials, upper) <= 0.025
    if count > 0:
        assert 0.02499 < binom.sf(count - 1, trials, lower) <= 0.025


def test_both_ends_of_a_rate_have_the_level_of_that_rate() -> None:
    found = regions.region(regions.Counts(3, 40, 25, 60), (np.array([0.01]), np.array([0.04])))
    assert found.q + found.rest == pytest.approx(1, abs=1e-9)
    assert found.p + found.miss == pytest.approx(1, abs=1e-9)


def test_scores_at_a_threshold_are_above_it() -> None:
    rule = regions.at_threshold(
        np.array([2.0, 1.0]), np.array([1.0, 1.0, 0.0]), 1.0, regions.rectangle(0.05)
    )
    assert (rule.counts.errors, rule.counts.hits) == (2, 2)


@pytest.mark.parametrize(
    ("objective", "known"),
    [(regions.epsilons(1e-5), 3.151196972288175665870741), (regions.mus, 1.661538408473707943)],
)
def test_a_threshold_with_700_misses_and_5_false_alarms_has_the_check_value(
    objective: Any, known: float
) -> None:
    numbers = np.arange(1000)
    scores = (numbers >= 700).astype(float), (numbers < 5).astype(float)
    rule = regions.at_threshold(*scores, 0.5, regions.rectangle(0.05))
    assert known * (1 - 1e-7) <= regions.best_of([rule], objective)[0] <= known


def test_one_run_has_the_check_values_and_is_above_the_bound_that_was_published() -> None:
    guesses = Guesses(1000, 100, 95)
    assert 1 - 1e-7 <= epsilon_by_binomial(guesses, 0.0, 0.05) / 2.1724340431929 <= 1
    assert epsilon_by_binomial(guesses, 1e-5, 0.05) > 2.1651757997140519769 + 0.006
    assert 1 - 1e-7 <= largest_rejected(guesses, 0.05, of_gaussians) / 0.7868118146825 <= 1


CLAIMED = hs.Gaussian(noise_multiplier=1.0)


def test_too_little_noise_is_refuted_and_enough_is_not() -> None:
    scores = gaussian(2.0, 1000)
    found = audit.falsify(CLAIMED, *scores, delta=1e-5)
    assert isinstance(found, audit.Refuted)
    assert found.point is not None
    assert found.claimed_tpr is not None
    assert found.point.tpr > found.claimed_tpr >= hs.tradeoff(CLAIMED).power(found.point.fpr)
    assert isinstance(audit.falsify(hs.Gaussian(0.5), *scores), audit.Consistent)
    assert 1.0 < audit.lower_mu(*scores).value < 2.0


def test_a_plan_without_noise_is_consistent_with_everything() -> None:
    scores = np.ones(1000), np.zeros(1000)
    assert isinstance(audit.falsify(hs.Gaussian(0.0), *scores), audit.Consistent)
    assert isinstance(audit.falsify(hs.PureDP(0.0), *scores), audit.Refuted)


@pytest.mark.parametrize(("claimed", "actual"), [(1.0, 0.9), (1.0, 0.5)])
def test_so_many_trials_refute_as_often_as_planned(claimed: float, actual: float) -> None:
    plan, power, repetitions = hs.Gaussian(claimed), 0.8, 100
    trials = audit.trials_needed(plan, hs.Gaussian(actual), power=power)
    test = audit.detection(plan, hs.Gaussian(actual), trials)
    assert test.power >= power
    said: dict[str, Any] = {"threshold": float(norm.isf(test.fpr)), "share": test.share}
    found = sum(
        isinstance(audit.falsify(plan, *gaussian(1 / actual, trials, i), **said), audit.Refuted)
        for i in range(repetitions)
    )
    assert found >= binom.ppf(1e-4, repetitions, test.power)
    assert found <= binom.isf(1e-4, repetitions, min(test.power + 0.05, 1.0))


def test_one_run_refutes_too_little_noise_and_not_enough() -> None:
    random = np.random.default_rng(2029)
    included = random.random(2000) < 0.5
    scores = random.normal(0.0, 1.0, 2000) + 4.0 * included
    assert isinstance(audit.falsify_one_run(CLAIMED, scores, included), audit.Refuted)
    assert isinstance(audit.falsify_one_run(hs.Gaussian(0.25), scores, included), audit.Consistent)
    assert 1.0 < audit.one_run_mu(scores, included).value < 4.0


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_lines_below_a_curve_refute_nearly_what_the_curve_does(mu: float) -> None:
    guesses = Guesses(1000, 300, 240)
    limit = largest_rejected(guesses, 0.05, of_gaussians)
    for factor, expected in ((0.97, True), (1.0001, False)):
        inverse = inverse_of(GaussianTradeOff(limit * factor))
        assert bool(rejected(guesses, 0.05, inverse, np.zeros(1))[0]) == expected
    rates = np.linspace(1e-6, 1.0, 999)
    exact = of_gaussians(rates, np.full(999, mu))
    found = inverse_of(GaussianTradeOff(mu))(rates, np.zeros(1))
    assert (found <= exact * (1 + 1e-12)).all()
    assert (found >= exact * 0.99 - 1e-7).all()


def test_ties_are_no_way_to_smuggle_in_who_was_included() -> None:
    included = np.arange(400) < 200
    assert audit.one_run(np.zeros(400), included, delta=0.0).value == 0.0
    for m in (240, 260):
        wrong = 0.0
        for k in range(m // 2 - 20, m // 2 + 21):
            found = audit.one_run(np.zeros(m), np.arange(m) < k, delta=0.0)
            wrong += float(binom.pmf(k, m, 0.5)) * (found.value > 0.0)
        assert wrong < 0.1
