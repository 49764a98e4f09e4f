"""Curves of scores: ties counted exactly, as scikit-learn counts them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.audit import attacks
from hockeystick.errors import ParameterError

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=40)


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
    outside = np.arange(10.0)
    assert attacks.tpr_at([6.5, 6.9, 7.0], outside, fpr=0.3) == 1.0
    assert attacks.tpr_at([6.5, 6.9, 7.0], outside, fpr=0.29) == 0.0


@pytest.mark.parametrize("function", [attacks.roc, attacks.auc])
@pytest.mark.parametrize(
    "bad", [[], [np.nan], [[1.0]], 1.0, "scores", [True], [1j], [[1.0], [1.0, 2.0]]]
)
def test_what_is_no_row_of_numbers_is_refused(function: Any, bad: Any) -> None:
    with pytest.raises(ParameterError, match="scores_in must be a one-dimensional array"):
        function(bad, [1.0])
    with pytest.raises(ParameterError, match="scores_out must be"):
        function([1.0], bad)


@pytest.mark.parametrize("fpr", [-0.1, 1.1, np.nan, "0.1", None])
def test_a_rate_is_from_0_to_1(fpr: Any) -> None:
    with pytest.raises(ParameterError, match="fpr must be a number from 0 to 1"):
        attacks.tpr_at([1.0], [0.0], fpr=fpr)
