"""A sequence of Gaussians: its description, what it stands for, and what it refuses."""

from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import ACCOUNTANTS
from hockeystick.mechanisms import schedules


def parts(plan: hs.mechanisms.Plan) -> tuple[hs.Mechanism, ...]:
    """Return the parts of what a plan stands for."""
    assert isinstance(plan.mechanism, hs.Composed)
    return plan.mechanism.parts


def test_a_sequence_stands_for_the_composition_of_its_releases() -> None:
    sequence = hs.mechanisms.GaussianSequence((2.0, 1.5, 2.0), 0.05)
    step = {z: hs.PoissonSubsampled(hs.Gaussian(z), 0.05) for z in (1.5, 2.0)}
    composed = step[2.0] ** 2 @ step[1.5]
    for name in ACCOUNTANTS:
        try:
            answer = hs.epsilon(composed, 1e-5, accountant=name)
        except hs.errors.UnsupportedError:
            with pytest.raises(hs.errors.UnsupportedError):
                hs.epsilon(sequence, 1e-5, accountant=name)
            continue
        assert str(hs.epsilon(sequence, 1e-5, accountant=name)) == str(answer)


def test_a_sequence_on_no_data_releases_nothing() -> None:
    assert hs.epsilon(hs.mechanisms.GaussianSequence((1.0, 2.0) * 20, 0.0), 1e-6).upper == 0.0


def test_arrays_and_whole_numbers_are_noises_too() -> None:
    expected = hs.mechanisms.GaussianSequence((2.0, 1.0), 0.1)
    assert hs.mechanisms.GaussianSequence(np.array([2.0, 1.0]), 0.1) == expected
    assert hs.mechanisms.GaussianSequence([2, 1], 0.1) == expected
    assert hs.mechanisms.GaussianSequence(np.array([2, 1]), 0.1) == expected


def test_replaced_examples_are_refused_with_what_to_do_instead() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="compose PoissonSubsampled"):
        hs.mechanisms.GaussianSequence((1.0,), 0.1, "replace-one")


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


def test_batches_clipped_as_a_whole_have_half_of_the_noise() -> None:
    schedule = schedules.Linear(end=0.5)
    whole = hs.DPSGD(
        rate=0.01, steps=100, noise_multiplier=4.0, clipping="batch", schedule=schedule
    )
    each = hs.DPSGD(rate=0.01, steps=100, noise_multiplier=2.0, schedule=schedule)
    assert whole.mechanism == each.mechanism


def test_digits_of_very_many_noises_are_refused_with_a_reason() -> None:
    plan = hs.mechanisms.GaussianSequence(tuple(np.linspace(1.0, 2.0, 1000).tolist()), 0.01)
    with pytest.raises(hs.errors.UnsupportedError, match="levels of noise"):
        hs.epsilon(plan, 1e-5, digits=20)


def test_an_accountant_that_needs_every_run_names_the_sequence() -> None:
    plan = hs.mechanisms.GaussianSequence(tuple(np.linspace(1.0, 2.0, 1000).tolist()), 0.01)
    with pytest.raises(hs.errors.UnsupportedError, match="GaussianSequence"):
        hs.epsilon(plan, 1e-5, accountant="prv")
