"""Batches are drawn as the plan says, and each step's is used."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import hockeystick as hs
from hockeystick.adapters.loop import Sampler
from hockeystick.errors import ParameterError
from tests.adapters.torch.loops import DEVICE, make_private

# A binomial count is this many standard deviations away in less than one of 10^8 runs, so that
# a thousand of them all stay within in all but one of 10^5.
_FAR = 6.0


def _sampler(seed: int | None = None, **fields: Any) -> Sampler:
    """Return what draws the batches of a plan, of as many examples as it says."""
    return Sampler(hs.DPSGD(noise_multiplier=1, **fields), fields["examples"], seed)


def _close(counts: Any, trials: int, rate: float) -> bool:
    """Return whether binomial counts are what they should be, each for itself."""
    far = _FAR * math.sqrt(trials * rate * (1 - rate))
    return bool(((counts - trials * rate).abs() < far).all())


def _included(sampler: Sampler, steps: int, examples: int) -> Any:
    """Return which examples each step has: a row of ones and zeros for each."""
    rows = torch.zeros(steps, examples)
    for step in range(steps):
        drawn = torch.from_numpy(sampler.draw(step))
        rows[step].index_put_((drawn,), torch.ones(len(drawn)), accumulate=True)
    return rows


def test_poisson_draws_each_example_on_its_own_with_the_plans_rate() -> None:
    steps, examples, rate = 4000, 40, 0.15
    rows = _included(_sampler(examples=examples, batch_size=6, steps=steps), steps, examples)
    assert _close(rows.sum(dim=0), steps, rate)
    assert _close(rows.sum(), steps * examples, rate)
    together = rows.T @ rows
    pairs = together[torch.triu(torch.ones_like(together), diagonal=1).bool()]
    assert _close(pairs, steps, rate**2)
    sizes = rows.sum(dim=1)
    variance = examples * rate * (1 - rate)
    assert 0.85 * variance < float(sizes.var()) < 1.15 * variance


def test_a_cap_keeps_any_part_of_a_batch_that_is_too_large() -> None:
    steps, examples = 3000, 20
    fields: dict[str, Any] = {"examples": examples, "batch_size": 10, "steps": steps}
    rows = _included(_sampler(batch_cap=5, **fields), steps, examples)
    sizes = rows.sum(dim=1)
    assert float(sizes.max()) == 5
    assert _close(rows.sum(dim=0), steps, float(sizes.mean()) / examples)


def test_the_rate_follows_the_batch_schedule() -> None:
    schedule = hs.schedules.Values([0.5, 1.0, 2.0])
    plan: dict[str, Any] = {
        "examples": 10_000,
        "batch_size": 1000,
        "steps": 3,
        "batch_schedule": schedule,
    }
    sampler = _sampler(**plan)
    for step, rate in enumerate((0.05, 0.1, 0.2)):
        assert sampler.expected(step) == pytest.approx(10_000 * rate)
        assert _close(torch.tensor(float(len(sampler.draw(step)))), 10_000, rate)


def test_fixed_sizes_are_sets_that_hold_each_example_as_often() -> None:
    steps, examples = 3000, 20
    sampler = _sampler(examples=examples, batch_size=5, steps=steps, sampling="fixed-size")
    rows = _included(sampler, steps, examples)
    assert set(rows.unique().tolist()) == {0.0, 1.0}
    assert bool((rows.sum(dim=1) == 5).all())
    assert _close(rows.sum(dim=0), steps, 0.25)


def test_places_with_replacement_hold_any_example() -> None:
    steps, examples = 3000, 20
    fields: dict[str, Any] = {"sampling": "with-replacement", "adjacency": "replace-one"}
    sampler = _sampler(examples=examples, batch_size=5, steps=steps, **fields)
    rows = _included(sampler, steps, examples)
    assert bool((rows.sum(dim=1) == 5).all())
    assert float(rows.max()) > 1
    assert _close(rows.sum(dim=0), 5 * steps, 1 / examples)


def test_an_allocation_puts_each_example_into_one_step_of_each_epoch_independently() -> None:
    epochs, examples, length = 2000, 20, 4
    plan: dict[str, Any] = {"examples": examples, "batch_size": 5, "epochs": epochs}
    sampler = _sampler(sampling="random-allocation", **plan)
    rows = _included(sampler, epochs * length, examples).reshape(epochs, length, examples)
    assert bool((rows.sum(dim=1) == 1).all())
    assert _close(rows.sum(dim=0), epochs, 1 / length)
    together = (rows[:, :, 0] * rows[:, :, 1]).sum()
    assert _close(together, epochs, 1 / length)
    assert rows.sum(dim=2).unique().numel() > 5  # sizes vary, as those of a shuffle do not


def test_a_shuffle_cuts_each_epoch_into_batches_of_one_size() -> None:
    epochs, examples, length = 2000, 20, 4
    plan: dict[str, Any] = {
        "examples": examples,
        "batch_size": 5,
        "epochs": epochs,
        "adjacency": "zero-out",
    }
    sampler = _sampler(sampling="shuffle", **plan)
    rows = _included(sampler, epochs * length, examples).reshape(epochs, length, examples)
    assert bool((rows.sum(dim=1) == 1).all())
    assert bool((rows.sum(dim=2) == 5).all())
    assert _close(rows.sum(dim=0), epochs, 1 / length)


def test_a_full_batch_is_every_example() -> None:
    sampler = _sampler(examples=7, steps=1, sampling="full-batch")
    assert sampler.draw(0).tolist() == list(range(7))
    assert sampler.expected(0) == 7


def test_batches_differ_from_run_to_run_and_a_seed_repeats_them() -> None:
    fields: dict[str, Any] = {"examples": 1000, "batch_size": 500, "steps": 5}
    assert _sampler(**fields).draw(0).tolist() != _sampler(**fields).draw(0).tolist()
    seeded = [_sampler(7, **fields).draw(step).tolist() for step in (3, 3, 4)]
    assert seeded[0] == seeded[1] != seeded[2]


class Pictures(torch.utils.data.Dataset):  # type: ignore[misc]  # torch may have no types
    """Examples one by one, of some kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __len__(self) -> int:
        return 8

    def __getitem__(self, place: int) -> Any:
        pair = (torch.full((2,), float(place)), place % 2)
        return {"pair": pair, "one": pair[0], "text": {"input": "a text"}}[self.kind]


def _loop(kind: str) -> Any:
    model = torch.nn.Linear(2, 2).to(DEVICE)
    plan = hs.DPSGD(examples=8, sampling="full-batch", steps=2, noise_multiplier=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return make_private(model, optimizer, Pictures(kind), plan)


def test_examples_are_stacked_with_their_targets() -> None:
    batch = next(iter(_loop("pair").loader))
    inputs, targets = batch.examples
    assert inputs.shape == (8, 2)
    assert targets.tolist() == [0, 1] * 4
    private = _loop("one")
    private.step(lambda output: output.square().sum(), next(iter(private.loader)))
    assert private.steps == 1


def test_what_does_not_stack_into_tensors_is_refused() -> None:
    with pytest.raises(ParameterError, match="a tuple of tensors"):
        next(iter(_loop("text").loader))
