"""Samples: their descriptions, their groups, and what they refuse."""

from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import schedules
from hockeystick.privacy_loss import ObservedMixtureLoss, dominating_pair


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


def test_what_needs_every_one_of_many_noises_is_refused() -> None:
    plan = hs.mechanisms.GaussianSequence(tuple(np.linspace(1.0, 2.0, 1000).tolist()), 0.01)
    with pytest.raises(hs.errors.UnsupportedError, match="levels of noise"):
        hs.epsilon(plan, 1e-5, digits=20)
    with pytest.raises(hs.errors.UnsupportedError, match="GaussianSequence"):
        hs.epsilon(plan, 1e-5, accountant="prv")


def test_a_group_grows() -> None:
    one = hs.Shuffled(hs.Gaussian(1.5), 100)
    assert one.for_group(3).for_group(4) == hs.Shuffled(hs.Gaussian(1.5), 100, group=12)
    assert (one**2).for_group(3) == one.for_group(3) ** 2


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
