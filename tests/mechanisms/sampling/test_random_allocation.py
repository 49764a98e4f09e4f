"""Random allocation: its description."""

from typing import Any, cast

import pytest

import hockeystick as hs
from hockeystick.mechanisms import RandomAllocation

INNER = hs.Gaussian(1.0)


def test_equal_descriptions_are_equal_values() -> None:
    mechanism = RandomAllocation(INNER, cast(Any, 10.0), participations=2)
    assert mechanism == RandomAllocation(hs.Gaussian(1), 10, 2, "add-remove")
    assert hash(mechanism) == hash(RandomAllocation(hs.Gaussian(1), 10, 2))
    assert isinstance(mechanism.steps, int)


def test_each_record_is_in_one_step_unless_more_are_given() -> None:
    assert RandomAllocation(INNER, 10).participations == 1


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((1.0, 10), "inner"),
        ((INNER, 0), "steps"),
        ((INNER, -3), "steps"),
        ((INNER, 2.5), "steps"),
        ((INNER, float("nan")), "steps"),
        ((INNER, True), "steps"),
        ((INNER, 10, 11), "participations"),
        ((INNER, 10, -1), "participations"),
        ((INNER, 10, 0.5), "participations"),
        ((INNER, 10, 1, "both"), "adjacency"),
    ],
)
def test_what_is_outside_its_domain_is_refused_by_name(arguments: Any, name: str) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        RandomAllocation(*arguments)
    assert caught.value.name == name


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


def test_the_text_names_steps_and_noise() -> None:
    assert (
        str(RandomAllocation(INNER, 9, 2)) == "Gaussian in 2 of 9 random steps (noise multiplier 1)"
    )
    text = "Gaussian in 1 of 9 random steps (noise multiplier 1, zero-out)"
    assert str(RandomAllocation(INNER, 9, adjacency="zero-out")) == text
