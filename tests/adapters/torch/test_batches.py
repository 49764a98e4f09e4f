"""Batches are drawn as the plan says, and each is used once, whoever fetches it."""

from __future__ import annotations

import math
import os
import random
import signal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import Dataset, get_worker_info

import hockeystick as hs
from hockeystick.adapters.loop import Sampler
from hockeystick.errors import ParameterError
from tests.adapters.torch.loops import LOSS, make_loop

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # of threads that fork
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]

# A binomial count is this many standard deviations away in less than one of 10^8 runs, so that
# a thousand of them all stay within in all but one of 10^5.
_FAR = 6.0


def _sampler(seed: int | None = None, **fields: Any) -> Sampler:
    return Sampler(hs.DPSGD(noise_multiplier=1, **fields), fields["examples"], seed)


def _close(counts: Any, trials: int, rate: float) -> bool:
    far = _FAR * math.sqrt(trials * rate * (1 - rate))
    return bool(((counts - trials * rate).abs() < far).all())


def _included(sampler: Sampler, steps: int, examples: int) -> Any:
    rows = torch.zeros(steps, examples)
    for step in range(steps):
        drawn = torch.from_numpy(sampler.draw(step))
        rows[step].index_put_((drawn,), torch.ones(len(drawn)), accumulate=True)
    return rows


EPOCHS, RECORDS = 3000, 20


@pytest.mark.parametrize(
    ("fields", "sizes", "share", "pair"),
    [
        ({}, None, 1 / 4, 1 / 16),
        ({"sampling": "fixed-size"}, {5}, 1 / 4, 1 / 19),
        (
            {"sampling": "with-replacement", "adjacency": "replace-one"},
            {5},
            None,
            1 - 2 * 0.95**5 + 0.9**5,
        ),
        ({"sampling": "random-allocation"}, None, 1, 1 / 4),
        ({"sampling": "shuffle", "adjacency": "zero-out"}, {5}, 1, 4 / 19),
    ],
    ids=str,
)
def test_an_example_is_drawn_at_its_rate_and_beside_any_other(
    fields: dict[str, Any], sizes: Any, share: float | None, pair: float
) -> None:
    epochs = fields.get("sampling") in ("random-allocation", "shuffle")
    length = {"epochs": EPOCHS} if epochs else {"steps": EPOCHS}
    sampler = _sampler(examples=RECORDS, batch_size=5, **length, **fields)
    steps = EPOCHS * (4 if epochs else 1)
    rows = _included(sampler, steps, RECORDS)
    found = set(rows.sum(dim=1).tolist())
    assert found == sizes if sizes else len(found) > 8
    if share is None:  # an example may be there several times
        assert float(rows.max()) > 1
        assert _close(rows.sum(dim=0), 5 * steps, 1 / RECORDS)
    elif share == 1:
        assert bool((rows.reshape(EPOCHS, 4, RECORDS).sum(dim=1) == 1).all())
        assert _close(rows.reshape(EPOCHS, 4, RECORDS).sum(dim=0), EPOCHS, 1 / 4)
    else:
        assert set(rows.unique().tolist()) == {0.0, 1.0}
        assert _close(rows.sum(dim=0), steps, share)
    together = rows.clamp(max=1).T @ rows.clamp(max=1)
    pairs = together[torch.triu(torch.ones_like(together), diagonal=1).bool()]
    assert _close(pairs, EPOCHS, pair)


def test_a_cap_keeps_any_part_of_a_batch_that_is_too_large() -> None:
    fields: dict[str, Any] = {"examples": RECORDS, "batch_size": 10, "steps": EPOCHS}
    rows = _included(_sampler(batch_cap=5, **fields), EPOCHS, RECORDS)
    sizes = rows.sum(dim=1)
    assert float(sizes.max()) == 5
    assert _close(rows.sum(dim=0), EPOCHS, float(sizes.mean()) / RECORDS)


def test_batches_differ_from_run_to_run_and_a_seed_repeats_them() -> None:
    fields: dict[str, Any] = {"examples": 1000, "batch_size": 500, "steps": 5}
    assert _sampler(**fields).draw(0).tolist() != _sampler(**fields).draw(0).tolist()
    seeded = [_sampler(7, **fields).draw(step).tolist() for step in (3, 3, 4)]
    assert seeded[0] == seeded[1] != seeded[2]


# Who fetches them.

EXAMPLES = 30
PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=5, noise_multiplier=1)
ALLOCATED = hs.DPSGD(
    examples=EXAMPLES, batch_size=10, epochs=3, noise_multiplier=1, sampling="random-allocation"
)
WORKERS: dict[str, Any] = {
    "num_workers": 2,
    "prefetch_factor": 3,
    "multiprocessing_context": "fork",
}


class Places(Dataset):  # type: ignore[misc]  # torch may have no types
    """Examples that say which they are, and that go wrong once where they are told to."""

    def __init__(self, spoiled: Any = None) -> None:
        self.spoiled = spoiled

    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, place: int) -> Any:
        if self.spoiled is not None:
            self.spoiled(place)
        return torch.full((2,), float(place)), place % 2

    def __getitems__(self, places: Any) -> Any:
        raise AssertionError("asked for several examples at once")


def _loop(dataset: Any = None, plan: hs.DPSGD = PLAN, **options: Any) -> Any:
    given = Places() if dataset is None else dataset
    torch.manual_seed(0)
    return make_loop(plan, torch.nn.Linear(2, 2), given, **options)


def _drawn(private: Any, found: list[list[int]] | None = None) -> list[list[int]]:
    """Use all batches, and return their examples, after those of batches before."""
    found = [] if found is None else found
    for batch in private.loader:
        inputs = batch.examples[0] if batch.examples else torch.zeros(0, 2)
        found.append(inputs[:, 0].int().tolist())
        private.step(LOSS, batch)
    return found


def test_workers_fetch_the_batches_that_are_drawn() -> None:
    private = _loop(not_private=3)
    expected = _drawn(private)
    assert len({str(one) for one in expected}) == PLAN.total_steps
    other = _loop(**WORKERS, not_private=3)
    assert _drawn(other) == expected
    assert torch.equal(private.model.weight, other.model.weight)
    other.close()


def _dying(path: Path) -> Any:
    def spoiled(place: int) -> None:
        if get_worker_info() is not None and not path.exists():
            path.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return spoiled


def test_a_worker_that_dies_loses_no_batch(tmp_path: Path) -> None:
    private = _loop(Places(_dying(tmp_path / "died")), **WORKERS)
    found: list[list[int]] = []
    with pytest.raises(RuntimeError, match="worker"):
        _drawn(private, found)
    drawn = {step: places.tolist() for step, places in private.loader._drawn.items()}
    assert private.steps in drawn
    _drawn(private, found)
    assert private.steps == PLAN.total_steps
    assert [found[step] for step in drawn] == list(drawn.values())


@pytest.mark.parametrize("loading", [{}, WORKERS], ids=["alone", "workers"])
def test_a_bad_example_gives_one_clear_error_and_stays_drawn(loading: dict[str, Any]) -> None:
    class Ragged(Places):
        def __getitem__(self, place: int) -> Any:
            return torch.ones(1 + place), 0

    private = _loop(Ragged(), **loading)
    for _ in range(2):
        with pytest.raises(ParameterError, match="examples that differ"):
            next(iter(private.loader))
    assert private.steps == 0


def test_a_state_that_is_ahead_is_gone_on_with(tmp_path: Path) -> None:
    first = _loop(plan=ALLOCATED, checkpoint=tmp_path / "run.pt", **WORKERS)
    batches = iter(first.loader)
    first.step(LOSS, next(batches))
    first.save()
    first.load()  # the rest of the epoch is lost
    assert first.steps == 3
    rest = _drawn(first)
    assert [sorted(chain(*rest[start : start + 3])) for start in (0, 3)] == [[*range(30)]] * 2
    first.close()


class Augmented(Places):
    """Examples that draw what is made of them."""

    def __getitem__(self, place: int) -> Any:
        shifted = float(torch.rand(())) + random.random() + np.random.random()  # noqa: NPY002
        return torch.tensor([float(place), shifted], dtype=torch.float64).float(), place % 2


@pytest.mark.parametrize("loading", [{}, WORKERS])
@pytest.mark.parametrize("collated", [False, True])
def test_what_examples_draw_is_not_decided_by_seeds_that_others_know(
    loading: Any, collated: bool
) -> None:
    """One example more would move what all after it draw; known draws tell how many there are."""

    def noisy(examples: Any) -> Any:
        ((rows, target),) = examples
        return torch.stack([rows[0], torch.rand(())]).unsqueeze(0), torch.tensor([target])

    plan = hs.DPSGD(examples=EXAMPLES, sampling="full-batch", steps=2, noise_multiplier=1)
    given: Any = (Places(), noisy) if collated else (Augmented(), None)
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        private = _loop(given[0], plan, **loading, collate=given[1])
        for batch in private.loader:
            found.append(tuple(batch.examples[0][:, 1].tolist()))
            private.step(LOSS, batch)
        private.close()
    assert len(set(found)) == 4
    assert len(set(found[0])) > EXAMPLES // 2
