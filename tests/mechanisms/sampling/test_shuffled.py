"""Shuffled epochs and revealed samples as descriptions: what they say, and what they refuse."""

import math
from typing import Any, cast

import pytest

import hockeystick as hs
from hockeystick.privacy_loss import ObservedMixtureLoss, dominating_pair


def test_a_group_is_said_and_grows() -> None:
    one = hs.Shuffled(hs.Gaussian(1.5), 100)
    assert str(one.for_group(3)) == (
        "shuffled Gaussian (noise multiplier 1.5, 100 batches, group of 3, zero-out)"
    )
    assert one.for_group(3).for_group(4) == hs.Shuffled(hs.Gaussian(1.5), 100, group=12)
    assert (one**2).for_group(3) == one.for_group(3) ** 2
    assert "all of one size" in " ".join(one.assumptions)
    for bad in (0, 1.5, -1, 10**16, "two"):
        with pytest.raises(hs.errors.ParameterError, match="group"):
            hs.Shuffled(hs.Gaussian(1.5), 100, group=cast(Any, bad))


def test_add_remove_is_refused_with_what_to_use() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="use zero-out or replace-one"):
        hs.Shuffled(hs.Gaussian(1.0), 10, "add-remove")


@pytest.mark.parametrize(
    "inner",
    [hs.Laplace(1.0), hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1), hs.Gaussian(1.0) ** 2],
    ids=str,
)
def test_other_noise_is_refused_with_what_to_use(inner: hs.Mechanism) -> None:
    with pytest.raises(
        hs.errors.IncompatibleError, match="one run of the inner mechanism per epoch"
    ):
        hs.Shuffled(inner, 10)


def test_it_composes_only_with_the_same_adjacency() -> None:
    plan = hs.Shuffled(hs.Gaussian(2.0), 10)
    with pytest.raises(hs.errors.IncompatibleError):
        plan @ hs.PoissonSubsampled(hs.Gaussian(2.0), 0.1)
    assert (plan @ hs.Gaussian(2.0)).adjacency is hs.Adjacency.ZERO_OUT


def test_a_revealed_sample_at_the_ends_of_the_rate() -> None:
    inner = hs.Gaussian(2.0)
    assert dominating_pair(hs.mechanisms.RevealedSample(inner, 1)) == dominating_pair(inner)
    assert dominating_pair(hs.mechanisms.RevealedSample(inner, 0.0)) == (None, None)
    assert dominating_pair(hs.mechanisms.RevealedSample(hs.Gaussian(math.inf), 0.3)) == (None, None)


def test_one_revealed_sample_costs_the_rate_times_what_the_mechanism_costs() -> None:
    for inner in (hs.Gaussian(1.5), hs.Laplace(2.0), hs.RandomizedResponse(1.0)):
        plan = hs.mechanisms.RevealedSample(inner, 0.25)
        loss = dominating_pair(plan).removing
        assert isinstance(loss, ObservedMixtureLoss)
        assert loss.closed_form_profile is not None
        whole, found = hs.delta(inner, 0.4), hs.delta(plan, 0.4)
        assert found.accountant == "closed-form"
        assert found.lower <= 0.25 * whole.upper
        assert 0.25 * whole.lower <= found.upper <= 0.25 * whole.upper * (1 + 1e-12)


def test_a_revealed_sample_of_data_without_noise_shows_it_as_often_as_it_is_used() -> None:
    found = hs.delta(hs.mechanisms.RevealedSample(hs.Gaussian(0.0), 0.25) ** 2, 3.0)
    assert found.lower <= 1.0 - 0.75**2 <= found.upper <= found.lower + 1e-12


@pytest.mark.parametrize(
    ("inner", "match"),
    [
        (hs.Gaussian(1.0) ** 2, "repeat or compose the sampled mechanism instead"),
        (hs.ApproxDP(1.0, 1e-6), "sample its pure part"),
        (hs.RenyiDP({2.0: 0.1}), "only some bounds"),
    ],
    ids=str,
)
def test_a_revealed_sample_of_what_has_no_distribution_is_refused(
    inner: hs.Mechanism, match: str
) -> None:
    with pytest.raises(hs.errors.UnsupportedError, match=match):
        hs.epsilon(hs.mechanisms.RevealedSample(inner, 0.5), 1e-5)
