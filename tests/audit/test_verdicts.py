"""Plans refuted, or not, by scores and by one run; and how many trials that takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import hockeystick as hs
from hockeystick import audit
from hockeystick.audit.one_run import Guesses, inverse_of, largest_rejected, of_gaussians, rejected
from hockeystick.tradeoffs import GaussianTradeOff

CLAIMED = hs.Gaussian(noise_multiplier=1.0)


def gaussian(mu: float, trials: int, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng([2028, seed])
    return random.normal(mu, 1.0, trials), random.normal(0.0, 1.0, trials)


def canaries(mu: float, number: int, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng([2029, seed])
    included = random.random(number) < 0.5
    return random.normal(0.0, 1.0, number) + mu * included, included


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
    scores, included = canaries(4.0, 2000)
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
