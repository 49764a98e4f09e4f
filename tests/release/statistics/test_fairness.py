"""Fairness of groups: rates against their definitions, counts with noise, and what has no rate."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs
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


def test_one_record_is_in_one_cell() -> None:
    predictions, labels, groups = records()
    whole = GroupFairness.count(predictions, labels, groups)
    moved = whole - GroupFairness.count(predictions[1:], labels[1:], groups[1:])
    assert np.abs(moved).sum() == 1
    changed = predictions.copy()
    changed[0] = 1 - changed[0]
    assert np.abs(whole - GroupFairness.count(changed, labels, groups)).sum() == 2


def test_noisy_counts_are_charged_and_give_rates_between_0_and_1() -> None:
    account = hs.Accountant()
    counts = hs.release.geometric(
        hs.DiscreteLaplace(scale=5), GroupFairness.count(*records()), charge=account
    )
    found = GroupFairness(counts - 20)
    assert (found.counts >= 0).all()
    assert ((found.accuracies >= 0) & (found.accuracies <= 1)).all()
    assert hs.epsilon(account.plan, 0).upper == pytest.approx(0.2)


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
