"""Plans refuted, or not, by scores and by one run; and how many trials that takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import hockeystick as hs
from hockeystick import audit
from hockeystick.audit._one_run_tests import Guesses, largest_rejected, of_gaussians, rejected
from hockeystick.audit.one_run import inverse_of
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


def test_a_true_claim_is_refuted_no_more_often_than_the_confidence_says() -> None:
    plan = hs.GDP(1.0)
    wrong = sum(
        isinstance(
            audit.falsify(plan, *gaussian(1.0, 100, i), confidence=0.9, seed=i), audit.Refuted
        )
        for i in range(80)
    )
    assert wrong <= binom.isf(1e-4, 80, 0.1)


def test_a_gaussian_is_refuted_exactly_where_mu_is_bounded_above_its_own() -> None:
    verdicts = set()
    for i in range(8):
        scores = gaussian(1.3, 300, i)
        mu = audit.lower_mu(*scores, seed=i).value
        for claimed in (mu * 0.999, mu * 1.001):
            found = audit.falsify(hs.GDP(claimed), *scores, seed=i)
            assert isinstance(found, audit.Refuted) == (claimed < mu)
            verdicts.add(type(found))
    assert len(verdicts) == 2


@pytest.mark.parametrize(
    "plan",
    [
        hs.DPSGD(rate=0.01, steps=100, noise_multiplier=1.0),
        hs.Laplace(1.0),
        hs.PureDP(1.0),
        hs.ApproxDP(1.0, 1e-5),
        hs.Composed((hs.Gaussian(2.0), hs.Laplace(3.0))),
        GaussianTradeOff(1.0),
    ],
    ids=str,
)
def test_whatever_can_be_accounted_for_can_be_refuted(plan: Any) -> None:
    found = audit.falsify(plan, *gaussian(5.0, 200), delta=1e-5)
    assert isinstance(found, audit.Refuted)
    assert found.claimed_epsilon is not None
    assert found.epsilon is not None
    assert found.epsilon.delta == 1e-5
    assert isinstance(audit.falsify(plan, *gaussian(0.0, 200)), audit.Consistent)


def test_a_test_has_the_power_that_sums_over_all_counts_have() -> None:
    plan, actual, trials = hs.Gaussian(1.0), hs.Gaussian(0.5), 40
    test = audit.detection(plan, actual, trials)
    numbers, exact = np.arange(trials), 0.0
    for y in range(trials + 1):
        for x in range(trials + 1):
            mass = binom.pmf(y, trials, test.fpr) * binom.pmf(x, trials, test.tpr)
            if mass < 1e-4:
                continue
            scores = (numbers < x).astype(float), (numbers < y).astype(float)
            found = audit.falsify(plan, *scores, threshold=0.5, share=test.share)
            exact += float(mass) * isinstance(found, audit.Refuted)
    assert exact - 0.02 < test.power < exact + 0.02
    assert test.as_dict()["power"] == test.power


def test_one_run_refutes_too_little_noise_and_not_enough() -> None:
    scores, included = canaries(4.0, 2000)
    assert isinstance(audit.falsify_one_run(CLAIMED, scores, included), audit.Refuted)
    assert isinstance(audit.falsify_one_run(hs.Gaussian(0.25), scores, included), audit.Consistent)


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


def test_one_run_is_above_the_truth_no_more_often_than_it_says() -> None:
    wrong = np.zeros(3)
    for i in range(60):
        scores, included = canaries(1.0, 200, i)
        asked: dict[str, Any] = {"confidence": 0.9, "guesses": 100, "seed": i}
        wrong[0] += audit.one_run_mu(scores, included, **asked).value > 1.0
        random = np.random.default_rng([2030, i])
        kept = (random.random(200) < 1 / (1 + np.exp(-1.0))) == included
        for at, method in enumerate(("binomial", "f-dp")):
            found = audit.one_run(kept.astype(float), included, delta=0.0, method=method, **asked)
            wrong[1 + at] += found.value > 1.0
    assert (wrong <= binom.isf(1e-4, 60, 0.1)).all()


def test_ties_are_no_way_to_smuggle_in_who_was_included() -> None:
    included = np.arange(400) < 200
    assert audit.one_run(np.zeros(400), included, delta=0.0).value == 0.0
    for m in (240, 260):
        wrong = 0.0
        for k in range(m // 2 - 20, m // 2 + 21):
            found = audit.one_run(np.zeros(m), np.arange(m) < k, delta=0.0)
            wrong += float(binom.pmf(k, m, 0.5)) * (found.value > 0.0)
        assert wrong < 0.1
