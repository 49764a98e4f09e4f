"""Random allocation: its description."""

import pytest

import hockeystick as hs
from hockeystick.mechanisms import RandomAllocation

INNER = hs.Gaussian(1.0)


def test_each_record_is_in_one_step_unless_more_are_given() -> None:
    assert RandomAllocation(INNER, 10).participations == 1


def test_other_noise_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(
        hs.errors.IncompatibleError, match=r"Gaussian noise only.*PoissonSubsampled"
    ):
        RandomAllocation(hs.Laplace(1.0), 10)


def test_a_sampled_gaussian_is_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="Gaussian noise only"):
        RandomAllocation(hs.PoissonSubsampled(INNER, 0.1), 10)


def test_replace_one_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="use add-remove or zero-out"):
        RandomAllocation(INNER, 10, adjacency="replace-one")


def test_the_assumptions_say_how_records_are_allocated() -> None:
    text = " ".join(RandomAllocation(INNER, 1000, 3).assumptions)
    assert "exactly 3 of an epoch's 1,000 steps" in text
    assert "kept secret" in text
    assert "Fresh Gaussian noise" in text
