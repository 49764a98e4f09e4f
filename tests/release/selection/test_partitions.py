"""Partitions as they are released, and the bounding of what one user contributes."""

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.release import partition_selection, users_by_partition
from hockeystick.release.samplers import discrete_gaussian, discrete_laplace
from tests.release.bits import none_left, seeded

PartitionSelection = hs.mechanisms.PartitionSelection
GAUSSIAN = PartitionSelection(hs.DiscreteGaussian(3.0), 12, partitions=2)
LAPLACE = PartitionSelection(hs.DiscreteLaplace(3.0), 12.5, partitions=2)
COUNTS = {f"key {n:03}": n for n in range(1, 60)}


@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [
        (GAUSSIAN, lambda: discrete_gaussian(3.0, 59, bits=seeded(4))),
        (LAPLACE, lambda: discrete_laplace(3.0, 59, bits=seeded(4))),
    ],
)
def test_what_reaches_the_threshold_is_shown_with_its_noisy_number(
    mechanism: Any, noise: Any
) -> None:
    noisy = dict(zip(COUNTS, (np.arange(1, 60) + noise()).tolist(), strict=True))
    expected = {key: n for key, n in noisy.items() if n >= mechanism.threshold}
    assert 0 < len(expected) < 59
    assert partition_selection(mechanism, COUNTS, bits=seeded(4)) == expected


def test_the_threshold_itself_is_shown_at_its_larger_reading() -> None:
    still = hs.DiscreteGaussian(0.0)
    assert partition_selection(PartitionSelection(still, 5), {"a": 4, "b": 5}) == {"b": 5}
    assert partition_selection(PartitionSelection(still, 4.000000001), {"a": 4}) == {}


def test_the_order_says_nothing_about_the_data() -> None:
    turned = dict(sorted(COUNTS.items(), reverse=True))
    first, second = (
        partition_selection(GAUSSIAN, counts, bits=seeded(5)) for counts in (COUNTS, turned)
    )
    assert list(first) == list(second) == sorted(first)


def test_a_user_alone_is_shown_as_often_as_the_losses_say() -> None:
    from hockeystick.privacy_loss.selection.partition_selection import shown_alone

    said, runs, bits = PartitionSelection(hs.DiscreteLaplace(1.0), 3), 4000, seeded(6)
    seen = sum(bool(partition_selection(said, {"a": 1}, bits=bits)) for _ in range(runs))
    p = float(shown_alone(said.noise, said.threshold)[0])
    assert abs(seen / runs - p) < 5 * (p * (1 - p) / runs) ** 0.5


def test_the_selection_is_charged_before_any_noise_is_drawn() -> None:
    account = hs.Accountant()
    assert partition_selection(GAUSSIAN, {}, charge=account) == {}
    assert account.plan == GAUSSIAN

    class Refusing:
        def step(self, mechanism: Any) -> None:
            assert mechanism == GAUSSIAN
            raise InterruptedError

    with pytest.raises(InterruptedError):
        partition_selection(GAUSSIAN, COUNTS, charge=Refusing(), bits=none_left)


def test_a_user_is_counted_once_in_each_partition() -> None:
    pairs = [("ann", 1), ("bob", 1), ("ann", 1), ("ann", 2), (b"cy", 2)]
    assert users_by_partition(pairs, 2, bits=none_left) == {1: 2, 2: 2}
    assert users_by_partition(np.array([[0, 7], [0, 7], [1, 7]]), 1) == {7: 2}
    assert users_by_partition([], 3) == {}


def test_of_too_many_partitions_each_choice_is_as_likely() -> None:
    runs, bits = 3000, seeded(8)
    pairs = [("ann", key) for key in "abcd"]
    seen = Counter(tuple(sorted(users_by_partition(pairs, 2, bits=bits))) for _ in range(runs))
    assert set(seen) == set(itertools.combinations("abcd", 2))
    p = 1 / 6
    for number in seen.values():
        assert abs(number / runs - p) < 5 * (p * (1 - p) / runs) ** 0.5


def test_whatever_others_do_a_user_changes_at_most_k_counts_by_1() -> None:
    """With the same words for the others, a user who comes last moves k counts by one."""
    others: list[tuple[Any, int]] = [
        (user, (user * step) % 17) for user in range(9) for step in range(1, 8)
    ]
    own = [("new", key) for key in range(10)]
    before = users_by_partition(others, 3, bits=seeded(9))
    after = users_by_partition(others + own, 3, bits=seeded(9))
    moved = {key: after.get(key, 0) - before.get(key, 0) for key in {*before, *after}}
    assert sorted(n for n in moved.values() if n) == [1, 1, 1]


@pytest.mark.parametrize(
    ("name", "mechanism", "users"),
    [
        ("mechanism", PartitionSelection(hs.Gaussian(3.0), 9), {"a": 3}),
        ("mechanism", hs.DiscreteGaussian(3.0), {"a": 3}),
        ("sigma", PartitionSelection(hs.DiscreteGaussian(2.0**50), 9), {"a": 3}),
        ("users", GAUSSIAN, ["a", "b"]),
        ("users", GAUSSIAN, {"a": 0}),
        ("users", GAUSSIAN, {"a": -1}),
        ("users", GAUSSIAN, {"a": 1.5}),
        ("users", GAUSSIAN, {"a": True}),
        ("users", GAUSSIAN, {"a": 3, 1: 3}),
        ("users", GAUSSIAN, {float("nan"): 3, 1.0: 3}),
        ("users", GAUSSIAN, {frozenset("a"): 3, frozenset("b"): 3}),
        ("users", GAUSSIAN, {"a": 2**63}),
    ],
)
def test_arguments_are_refused_by_name_without_a_charge(
    name: str, mechanism: Any, users: Any
) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError) as caught:
        partition_selection(mechanism, users, charge=account, bits=none_left)
    assert caught.value.name == name
    assert account.plan == hs.Accountant().plan


@pytest.mark.parametrize("pairs", ["ab", 3, {"a": 1}, ["ab"], [("a",)], [("a", 1, 2)], [("a", [])]])
def test_pairs_are_refused_by_name(pairs: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        users_by_partition(pairs, 1)
    assert caught.value.name == "pairs"


@pytest.mark.parametrize("partitions", [0, 1.5, Fraction(1, 2), "2"])
def test_the_number_of_partitions_is_refused_by_name(partitions: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        users_by_partition([], partitions)
    assert caught.value.name == "partitions"


def test_of_too_many_partitions_a_user_counts_in_as_many_as_are_allowed() -> None:
    for allowed in (1, 2):
        counted = users_by_partition([("ann", key) for key in "abc"], allowed)
        assert sum(counted.values()) == allowed
