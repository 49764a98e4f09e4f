"""Curves of scores: ties counted exactly, as scikit-learn counts them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.audit import attacks

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=40)


@given(SCORES, SCORES)
def test_each_point_is_the_share_at_or_above_its_threshold(
    inside: list[float], outside: list[float]
) -> None:
    found = attacks.roc(inside, outside)
    assert found.thresholds[0] == np.inf
    assert list(found.thresholds[1:]) == sorted({*inside, *outside}, reverse=True)
    for threshold, fpr, tpr in zip(found.thresholds, found.fpr, found.tpr, strict=True):
        assert tpr == sum(one >= threshold for one in inside) / len(inside)
        assert fpr == sum(one >= threshold for one in outside) / len(outside)


@given(SCORES, SCORES)
def test_the_area_is_the_share_of_pairs_in_order_and_that_under_the_curve(
    inside: list[float], outside: list[float]
) -> None:
    pairs = [(s, t) for s in inside for t in outside]
    right = sum(2 * (s > t) + (s == t) for s, t in pairs)
    assert attacks.auc(inside, outside) == right / (2 * len(pairs))
    found = attacks.roc(inside, outside)
    heights = (found.tpr[1:] + found.tpr[:-1]) / 2
    assert attacks.auc(inside, outside) == pytest.approx(float(heights @ np.diff(found.fpr)))


@given(SCORES, SCORES, st.floats(0, 1))
def test_the_rate_at_few_false_positives_is_the_best_threshold_that_has_no_more(
    inside: list[float], outside: list[float], fpr: float
) -> None:
    best = 0.0
    for threshold in {*inside, *outside}:
        if sum(one >= threshold for one in outside) / len(outside) <= fpr:
            best = max(best, sum(one >= threshold for one in inside) / len(inside))
    assert attacks.tpr_at(inside, outside, fpr=fpr) == best


def test_rates_are_those_that_a_decimal_names() -> None:
    """3/10 is allowed where 0.3 is asked for, though the float is a little less."""
    outside = np.arange(10.0)
    assert attacks.tpr_at([6.5, 6.9, 7.0], outside, fpr=0.3) == 1.0
    assert attacks.tpr_at([6.5, 6.9, 7.0], outside, fpr=0.29) == 0.0


def test_infinite_scores_are_compared_as_all_others() -> None:
    found = attacks.roc([math.inf, 1.0], [1.0, -math.inf])
    assert found.thresholds.tolist() == [math.inf, math.inf, 1.0, -math.inf]
    assert found.fpr.tolist() == [0.0, 0.0, 0.5, 1.0]
    assert found.tpr.tolist() == [0.0, 0.5, 1.0, 1.0]
    assert attacks.auc([math.inf, 1.0], [1.0, -math.inf]) == 0.875
    assert attacks.tpr_at([math.inf, 1.0], [1.0, -math.inf], fpr=0.0) == 0.5
