"""Samples: their descriptions, their groups, and what they refuse."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.adjacency import Adjacency
from hockeystick.io import load_plan
from hockeystick.mechanisms import Gaussian, PoissonSubsampled, schedules
from hockeystick.privacy_loss import ObservedMixtureLoss, dominating_pair

CLIPPED = hs.FixedSizeSubsampled(hs.Gaussian(0.5), 3, 30, "zero-out", clipped=True)


def test_a_sample_says_that_its_contributions_are_clipped() -> None:
    plain = hs.FixedSizeSubsampled(hs.Gaussian(0.5), 3, 30, "zero-out")
    assert str(CLIPPED) == (
        "fixed-size-subsampled Gaussian (noise multiplier 0.5, 3 of 30, clipped, zero-out)"
    )
    assert "clipped" not in str(plain)
    assert len(CLIPPED.assumptions) == len(plain.assumptions) + 1
    assert any("L2 norm is at most half" in text for text in CLIPPED.assumptions)
    assert CLIPPED != plain
    with pytest.raises(hs.errors.NoGroupFormError, match=r"tradeoff\(plan\)\.group\(2\)"):
        CLIPPED.for_group(2)


def test_a_file_keeps_that_contributions_are_clipped(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    hs.save_plan(CLIPPED**5, path)
    assert "clipped = true" in path.read_text()
    assert load_plan(path).plan == CLIPPED**5
    hs.save_plan(hs.FixedSizeSubsampled(hs.Gaussian(0.5), 3, 30, "zero-out"), path)
    assert "clipped" not in path.read_text()


def parts(plan: hs.mechanisms.Plan) -> tuple[hs.Mechanism, ...]:
    assert isinstance(plan.mechanism, hs.Composed)
    return plan.mechanism.parts


def test_arrays_and_whole_numbers_are_noises_too() -> None:
    expected = hs.mechanisms.GaussianSequence((2.0, 1.0), 0.1)
    assert hs.mechanisms.GaussianSequence(np.array([2.0, 1.0]), 0.1) == expected
    assert hs.mechanisms.GaussianSequence([2, 1], 0.1) == expected
    assert hs.mechanisms.GaussianSequence(np.array([2, 1]), 0.1) == expected


def test_a_sequence_shares_no_sample() -> None:
    with pytest.raises(hs.errors.UnsupportedError, match="shares a sample"):
        hs.epsilon(hs.PoissonSubsampled(hs.mechanisms.GaussianSequence((1.0, 2.0), 0.1), 0.1), 1e-5)


def test_a_schedule_with_many_noises_is_one_sequence_for_each_rate() -> None:
    schedule = schedules.Linear(end=0.5)
    plan = hs.DPSGD(rate=0.01, steps=100, noise_multiplier=2.0, schedule=schedule)
    assert [type(part) for part in parts(plan)] == [hs.mechanisms.GaussianSequence]
    ramp = schedules.Staircase(end=2.0, stairs=2)
    both = hs.DPSGD(
        rate=0.01, steps=100, noise_multiplier=2.0, schedule=schedule, batch_schedule=ramp
    )
    rates = [getattr(part, "rate", None) for part in parts(both)]
    assert rates == [Fraction(1, 100), Fraction(1, 50)]
    few = hs.DPSGD(rate=0.01, steps=10, noise_multiplier=2.0, schedule=schedule)
    assert {type(part) for part in parts(few)} == {hs.Repeated}


def test_digits_of_very_many_noises_are_refused_with_a_reason() -> None:
    plan = hs.mechanisms.GaussianSequence(tuple(np.linspace(1.0, 2.0, 1000).tolist()), 0.01)
    with pytest.raises(hs.errors.UnsupportedError, match="levels of noise"):
        hs.epsilon(plan, 1e-5, digits=20)


def test_an_accountant_that_needs_every_run_names_the_sequence() -> None:
    plan = hs.mechanisms.GaussianSequence(tuple(np.linspace(1.0, 2.0, 1000).tolist()), 0.01)
    with pytest.raises(hs.errors.UnsupportedError, match="GaussianSequence"):
        hs.epsilon(plan, 1e-5, accountant="prv")


def test_add_remove_is_the_default_and_the_text_of_an_adjacency_is_accepted() -> None:
    assert PoissonSubsampled(Gaussian(1), 0.1).adjacency is Adjacency.ADD_REMOVE
    assert PoissonSubsampled(Gaussian(1), 0.1, "zero-out").adjacency is Adjacency.ZERO_OUT


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
