"""Fairness of groups: rates against their definitions, counts with noise, and what has no rate."""

import math
from typing import Any

import numpy as np
import pytest

from hockeystick.errors import ParameterError
from hockeystick.release import GroupFairness


def records(seed: Any = 1) -> Any:
    random = np.random.default_rng(seed)
    return random.integers(0, 2, 400), random.integers(0, 2, 400), random.integers(0, 3, 400)


def test_rates_are_the_shares_that_define_them() -> None:
    predictions, labels, groups = records()
    found = GroupFairness.of(predictions, labels, groups)
    for group in range(3):
        own = groups == group
        truth, said = labels[own], predictions[own]
        assert found.positive_rates[group] == pytest.approx(said.mean())
        assert found.true_positive_rates[group] == pytest.approx(said[truth == 1].mean())
        assert found.false_positive_rates[group] == pytest.approx(said[truth == 0].mean())
        assert found.accuracies[group] == pytest.approx((said == truth).mean())


def test_differences_are_the_largest_less_the_least() -> None:
    found = GroupFairness.of(*records())
    rates = [found.positive_rates, found.true_positive_rates, found.accuracies]
    shown = [found.demographic_parity, found.equal_opportunity, found.accuracy_difference]
    assert shown == [np.ptp(one) for one in rates]
    assert found.equalized_odds == max(
        np.ptp(found.true_positive_rates), np.ptp(found.false_positive_rates)
    )


def test_one_record_is_in_one_cell() -> None:
    """Which is what noise on the counts is charged for."""
    predictions, labels, groups = records()
    whole = GroupFairness.count(predictions, labels, groups)
    moved = whole - GroupFairness.count(predictions[1:], labels[1:], groups[1:])
    assert np.abs(moved).sum() == 1
    changed = predictions.copy()
    changed[0] = 1 - changed[0]
    assert np.abs(whole - GroupFairness.count(changed, labels, groups)).sum() == 2


def test_a_group_without_such_records_has_no_rate_and_is_left_out() -> None:
    found = GroupFairness.of([1, 0, 1], [0, 1, 1], [0, 1, 2])
    assert np.isnan(found.true_positive_rates).tolist() == [True, False, False]
    assert found.equal_opportunity == 1
    assert math.isnan(GroupFairness.of([1], [1], [0]).equal_opportunity)
    assert found.equalized_odds == 1  # one group alone has false positives


def test_a_public_number_of_groups_is_counted_whoever_occurs() -> None:
    assert GroupFairness.count([1], [1], [0], number=3).shape == (3, 2, 2)
    none = np.zeros(0, dtype=int)
    assert not GroupFairness.count(none, none, none, number=2).any()
    assert GroupFairness.of(none, none, none).counts.shape == (0, 2, 2)
    with pytest.raises(ParameterError, match=r"^groups"):
        GroupFairness.count([1], [1], [3], number=3)


WRONG: Any = [
    ([2, 0], [1, 1], [0, 0], "predictions"),
    ([1, 0], [1, 3], [0, 0], "labels"),
    ([1, 0], [1, 1], [0, -1], "groups"),
    ([1, 0], [1], [0, 0], "predictions, labels, groups"),
    ([0.5, 1.0], [1, 1], [0, 0], "predictions"),
    ([[1, 0]], [1, 1], [0, 0], "predictions"),
]


@pytest.mark.parametrize(("predictions", "labels", "groups", "name"), WRONG)
def test_bad_input_is_refused(predictions: Any, labels: Any, groups: Any, name: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}"):
        GroupFairness.of(predictions, labels, groups)
    with pytest.raises(ParameterError, match=r"^counts"):
        GroupFairness(np.zeros((2, 3), dtype=int))


def test_noisy_counts_give_rates_between_0_and_1() -> None:
    found = GroupFairness(np.array([[[-3, 7], [0, -1]]]))
    assert found.counts.tolist() == [[[0, 7], [0, 0]]]
    assert found.accuracies.tolist() == [0.0]
