"""A batch that was drawn is used once, whoever fetches it, and whatever happens meanwhile."""

from __future__ import annotations

import os
import random
import signal
import time
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import Dataset, TensorDataset, get_worker_info

import hockeystick as hs
from hockeystick.errors import ParameterError
from tests.adapters.torch.loops import DEVICE, make_private

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # of threads that fork
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]

LOSS = torch.nn.functional.cross_entropy
EXAMPLES = 30
PLAN = hs.DPSGD(examples=EXAMPLES, batch_size=10, steps=5, noise_multiplier=1)
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
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = Places() if dataset is None else dataset
    return make_private(model, optimizer, given, plan, **options)


def _drawn(private: Any, found: list[list[int]] | None = None) -> list[list[int]]:
    """Use all batches, and return their examples, after those of batches before."""
    found = [] if found is None else found
    for batch in private.loader:
        inputs = batch.examples[0] if batch.examples else torch.zeros(0, 2)
        found.append(inputs[:, 0].int().tolist())
        private.step(LOSS, batch)
    return found


@pytest.mark.parametrize("sampling", ["poisson", "random-allocation", "fixed-size"])
def test_workers_fetch_the_batches_that_are_drawn(sampling: str) -> None:
    length = {"epochs": 2} if sampling == "random-allocation" else {"steps": 6}
    fields: dict[str, Any] = {"batch_size": 10, "sampling": sampling, **length}
    plan = hs.DPSGD(examples=EXAMPLES, noise_multiplier=1, **fields)
    options: dict[str, Any] = {"not_private": 3}
    private = _loop(plan=plan, **options)
    expected = _drawn(private)
    assert len({str(one) for one in expected}) == plan.total_steps
    other = _loop(plan=plan, **WORKERS, **options)
    assert _drawn(other) == expected
    assert torch.equal(private.model.weight, other.model.weight)
    other.close()


def _interrupting() -> Any:
    """Return what interrupts the fourth example, once."""
    asked = []

    def spoiled(place: int) -> None:
        asked.append(place)
        if len(asked) == 4:
            raise KeyboardInterrupt

    return spoiled


def test_an_interruption_loses_no_batch() -> None:
    private = _loop(Places(_interrupting()))
    with pytest.raises(KeyboardInterrupt):
        next(iter(private.loader))
    (drawn,) = (one.tolist() for one in private.loader._drawn.values())
    assert _drawn(private)[0] == drawn
    assert private.steps == PLAN.total_steps


def _dying(path: Path) -> Any:
    """Return what kills a worker, once."""

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


def test_a_closed_loops_journal_is_free_though_it_had_workers(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    private = _loop(**WORKERS, journal=path)
    batch = next(iter(private.loader))
    private.step(LOSS, batch)
    private.close()
    again = _loop(journal=path, **WORKERS)
    assert again.steps == 1
    assert len(_drawn(again)) == 4


def test_a_state_that_is_ahead_is_gone_on_with(tmp_path: Path) -> None:
    plan = hs.DPSGD(
        examples=EXAMPLES, batch_size=10, epochs=3, noise_multiplier=1, sampling="random-allocation"
    )
    path = tmp_path / "run.pt"
    first = _loop(plan=plan, checkpoint=path, **WORKERS)
    batches = iter(first.loader)
    first.step(LOSS, next(batches))
    first.save()
    first.load()  # the rest of the epoch is lost
    assert first.steps == 3
    rest = _drawn(first)
    assert [sorted(chain(*rest[start : start + 3])) for start in (0, 3)] == [[*range(30)]] * 2
    first.close()


def test_several_examples_at_once_are_asked_of_torchs_own_tensors_alone() -> None:
    data = TensorDataset(torch.ones(EXAMPLES, 2), torch.zeros(EXAMPLES, dtype=torch.long))
    options: dict[str, Any] = {"not_private": 3}
    private, other = _loop(data, **options), _loop(data, **WORKERS, **options)
    assert _drawn(private) == _drawn(other)
    assert torch.equal(private.model.weight, other.model.weight)
    other.close()


@pytest.mark.parametrize(
    "loading",
    [{"num_workers": -1}, {"prefetch_factor": 2}, {"num_workers": "2"}, {"loading": {}}],
    ids=str,
)
def test_options_that_are_none_of_torchs_loader_are_refused(loading: Any) -> None:
    with pytest.raises(ParameterError, match=r"loading must be"):
        _loop(**loading)


def test_workers_fetch_ahead_while_a_step_runs(tmp_path: Path) -> None:
    def touched(place: int) -> None:
        (tmp_path / f"{place}").touch()

    plan = hs.DPSGD(
        examples=EXAMPLES, batch_size=5, epochs=1, noise_multiplier=1, sampling="random-allocation"
    )
    private = _loop(Places(touched), plan=plan, **WORKERS | {"prefetch_factor": 5})
    first = next(iter(private.loader))
    until = time.monotonic() + 600
    while len(list(tmp_path.iterdir())) < EXAMPLES and time.monotonic() < until:
        time.sleep(0.01)
    assert len(list(tmp_path.iterdir())) == EXAMPLES > len(first)
    private.close()


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
