"""Rates are bounded by exact binomial tails."""

import numpy as np
import pytest
from scipy.stats import binom

from hockeystick.audit._region import Counts, lower_rate, rectangle, region, upper_rate
from hockeystick.audit._rules import at_threshold


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
