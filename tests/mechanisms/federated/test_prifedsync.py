"""LocalTraining and PriFedSync: what they take, and what they come down to."""

import math
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import ParameterError

SETTINGS: dict[str, Any] = {
    "examples": 600,
    "batch_size": 16,
    "noise_multiplier": 2.0,
    "local_steps": 38,
}
LOCAL = hs.federated.LocalTraining(**SETTINGS)
SMALL = hs.federated.LocalTraining(**(SETTINGS | {"batch_size": 8, "local_steps": 76}))


def test_local_training_is_a_gaussian_of_half_the_multiplier_on_batches_of_a_fixed_size() -> None:
    step = hs.FixedSizeSubsampled(hs.Gaussian(1.0), 16, 600, "replace-one")
    assert LOCAL.mechanism == step**38
    assert LOCAL.rate == Fraction(16, 600)
    assert LOCAL.adjacency is hs.Adjacency.REPLACE_ONE


def test_one_client_for_all_needs_no_split() -> None:
    assert hs.federated.PriFedSync(clients=LOCAL, rounds=93).mechanism == LOCAL**93
    assert hs.federated.PriFedSync(clients=[LOCAL], rounds=93).mechanism == LOCAL**93


def test_several_clients_are_parts_by_client() -> None:
    plan = hs.federated.PriFedSync(clients=[LOCAL, SMALL], rounds=93)
    assert plan.mechanism == hs.Parallel((LOCAL, SMALL), split="client") ** 93
    assert plan.of_client(1) == SMALL**93


@pytest.mark.parametrize("index", [-1, 2, 0.5, math.nan])
def test_a_client_that_is_not_there_is_refused(index: Any) -> None:
    with pytest.raises(ParameterError, match="index must be an integer from 0 to 1"):
        hs.federated.PriFedSync(clients=(LOCAL, SMALL), rounds=93).of_client(index)


def test_two_federations_of_as_many_clients_have_the_same_ones_in_one_order() -> None:
    # Batches of all examples are quickly accounted for.
    first, second = (
        hs.federated.LocalTraining(examples=9, batch_size=9, noise_multiplier=noise, local_steps=3)
        for noise in (8.0, 6.0)
    )
    one, other = (
        hs.federated.PriFedSync(clients=both, rounds=2)
        for both in ((first, second), (second, first))
    )
    assert any(text.endswith("the same clients, in the same order.") for text in one.assumptions)
    either = [hs.delta(a**2 @ b**2, 3.0) for a, b in ((first, second), (second, first))]
    found = hs.delta(one @ other, 3.0)
    assert (found.lower, found.upper) == (either[0].lower, either[0].upper)
    alike = hs.federated.PriFedSync(clients=LOCAL, rounds=2)
    assert not any("Another federation" in text for text in alike.assumptions)
