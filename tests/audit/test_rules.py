"""Rates are bounded by exact binomial tails, and thresholds judged on scores that chose nothing."""

import numpy as np
import pytest
from scipy.stats import binom

from hockeystick.audit import _rules
from hockeystick.audit._binomial import lower_rate, upper_rate
from hockeystick.audit._region import Counts, epsilons, rectangle, region
from hockeystick.audit._rules import at_threshold, held_out


@pytest.mark.parametrize(("count", "trials"), [(0, 10), (3, 40), (40, 40), (17, 1000)])
def test_rates_are_the_exact_ones_of_clopper_and_pearson(count: int, trials: int) -> None:
    level = np.array([0.025])
    upper, lower = (float(one(count, trials, level)[0]) for one in (upper_rate, lower_rate))
    if count < trials:
        assert 0.02499 < binom.cdf(count, trials, upper) <= 0.025
    if count > 0:
        assert 0.02499 < binom.sf(count - 1, trials, lower) <= 0.025


def test_both_ends_of_a_rate_have_the_level_of_that_rate() -> None:
    found = region(Counts(3, 40, 25, 60), (np.array([0.01]), np.array([0.04])))
    assert found.q + found.rest == pytest.approx(1, abs=1e-9)
    assert found.p + found.miss == pytest.approx(1, abs=1e-9)


def test_scores_at_a_threshold_are_above_it() -> None:
    rule = at_threshold(np.array([2.0, 1.0]), np.array([1.0, 1.0, 0.0]), 1.0, rectangle(0.05))
    assert (rule.counts.errors, rule.counts.hits) == (2, 2)


def test_a_threshold_is_judged_on_the_scores_that_did_not_choose_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_rules, "quarter_ellipse", lambda alpha, *_: rectangle(alpha))
    inside, outside = np.arange(5.0, 45.0), np.arange(20.0)
    (rule,) = held_out(inside, outside, 0.05, epsilons(0.0), 1)
    assert {rule.counts.error_trials, rule.counts.hit_trials} == {28, 14}
