import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.answers.wording import loader_notes


def plan(examples: int, batch_size: int, **options: Any) -> hs.DPSGD:
    given = {"steps": 9, "noise_multiplier": 1, **options}
    return hs.DPSGD(examples=examples, batch_size=batch_size, **given)


def test_the_note_names_the_rates_of_a_loader_with_and_without_its_last_batch() -> None:
    assert loader_notes(plan(50_000, 4096)) == (
        "a loader with batches of 4,096 (Opacus) has ceil(50000 / 4096) = 13 of them: for it give "
        "--rate 1/13, or with drop_last --rate 1/12",
    )


@pytest.mark.parametrize(
    "rounded_little",
    [
        plan(50_000, 500),
        plan(60_000, 256),
        plan(50_000, 4096, sampling="fixed-size"),
        plan(50_000, 4096, batch_cap=5000),
        hs.DPSGD(examples=50_000, rate=0.08192, steps=9, noise_multiplier=1),
        hs.Gaussian(1),
    ],
)
def test_nothing_is_said_where_a_loader_rounds_little_or_is_no_poisson_sampler(
    rounded_little: hs.Mechanism,
) -> None:
    assert loader_notes(rounded_little) == ()


def test_a_rate_within_a_plan_of_several_parts_is_no_flag() -> None:
    (note,) = loader_notes(plan(50_000, 4096) @ hs.Laplace(1))
    assert note.endswith("for it give rate=1/13, or with drop_last rate=1/12")


def test_of_a_size_that_was_solved_for_the_sizes_with_as_many_batches_are_named() -> None:
    assert loader_notes(plan(50_000, 643)) == ()
    (note,) = loader_notes(plan(50_000, 643), solved=True)
    assert note == (
        "a loader with batches of 643 (Opacus) has ceil(50000 / 643) = 78 of them, as with 642 to "
        "649: for it ask hockeystick epsilon with --rate 1/78, or with drop_last --rate 1/77"
    )
    assert loader_notes(plan(50_000, 500), solved=True) == ()
    assert "as with" not in loader_notes(plan(50_000, 51), solved=True)[0]


@pytest.mark.parametrize(("examples", "size"), [(50_000, 643), (50_000, 450), (1010, 45), (9, 5)])
def test_the_sizes_that_are_named_have_as_many_batches_and_their_neighbours_do_not(
    examples: int, size: int
) -> None:
    (note,) = loader_notes(plan(examples, size), solved=True)
    low, _, high = note.partition("as with ")[2].partition(":")[0].partition(" to ")
    batches = [math.ceil(examples / other) for other in (int(low) - 1, int(low), int(high))]
    assert batches[0] > batches[1] == batches[2] == math.ceil(examples / size)
    assert math.ceil(examples / (int(high) + 1)) < batches[2]
