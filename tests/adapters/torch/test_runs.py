"""No way around the count of a private loop: not by its state, its processes or its optimizer."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import hockeystick as hs
from hockeystick import _files
from hockeystick.adapters.loop import Account
from hockeystick.adapters.torch import Online
from hockeystick.errors import IncompatibleError, ParameterError
from tests.adapters.torch.loops import (
    DEVICE,
    EXAMPLES,
    FULL,
    LOSS,
    do_step,
    make_data,
    make_loop,
    make_private,
)


def test_weights_and_account_that_do_not_belong_together_are_refused() -> None:
    private = make_loop()
    stale = private.state_dict()
    do_step(private)
    with pytest.raises(ParameterError, match="that of the weights which the model has"):
        private.load_state_dict(stale)
    assert private.steps == 1


def test_without_its_journal_no_state_is_gone_on_with_elsewhere(tmp_path: Path) -> None:
    for journals in ((None, None), (tmp_path / "a", None), (None, tmp_path / "b")):
        first = make_loop(journal=journals[0])
        stale = first.state_dict()
        second = make_loop(journal=journals[1])
        second.model.load_state_dict(first.model.state_dict())
        with pytest.raises(ParameterError, match="journal must be that of the run"):
            second.load_state_dict(stale)


def test_a_checkpoint_counts_the_steps_after_it(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    first = make_loop(clipping=Online(1.0), checkpoint=path)
    do_step(first)
    first.save()
    saved = copy.deepcopy(first.model.state_dict())
    for _ in range(3):
        do_step(first)
    first.close()
    second = make_loop(clipping=Online(1.0), checkpoint=path)
    second.load()
    assert second.steps == 4
    assert all(map(torch.equal, saved.values(), second.model.state_dict().values()))
    do_step(second)
    second.save()
    assert second.spent(1e-5).upper == hs.epsilon(FULL, 1e-5).upper
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.pt", "run.pt.journal"]


def test_a_checkpoint_without_its_journal_or_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    private = make_loop(checkpoint=path)
    private.save()
    private.close()
    (tmp_path / "run.pt.journal").unlink()
    with pytest.raises(ParameterError, match="journal must be that of the run"):
        make_loop(checkpoint=path).load()
    torch.save({"model": {}}, path)
    with pytest.raises(ParameterError, match="checkpoint must be"):
        make_loop(checkpoint=path).load()
    for call in (make_loop().save, make_loop().load):
        with pytest.raises(ParameterError, match="checkpoint must be a path"):
            call()


def test_a_checkpoint_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(ParameterError, match="journal must be another file"):
        make_loop(checkpoint=tmp_path / "run", journal=tmp_path / "link")


def test_a_checkpoint_is_on_the_disk_once_it_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private, forced = make_loop(checkpoint=tmp_path / "run.pt"), list[int]()
    monkeypatch.setattr(_files, "force", lambda one: forced.append(os.fstat(one).st_ino))
    private.save()
    assert forced == [(tmp_path / "run.pt").stat().st_ino]


def test_a_journal_is_one_loops_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    first = make_loop(journal=path)
    with pytest.raises(ParameterError, match="no other run has open"):
        make_loop(journal=path)
    do_step(first)
    first.close()
    with pytest.raises(IncompatibleError, match="this run is closed"):
        do_step(first)
    assert make_loop(journal=path).steps == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("durable", [False, True])
def test_a_fork_counts_nothing(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    account = Account(FULL, None, path if durable else None)
    account.count()
    child = os.fork()
    if child == 0:
        try:
            account.count()
        except IncompatibleError as error:
            os._exit(7 if "was forked from" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    account.count()
    if durable:
        assert path.read_bytes().endswith(b"\n..")


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_loop_is_not_copied(copied: Callable[[Any], Any]) -> None:
    private = make_loop()
    for one in (private, private.loader):
        with pytest.raises(IncompatibleError, match="not copied or pickled"):
            copied(one)


# Steps outside the loop, and batches left out.


def test_the_optimizer_steps_by_the_private_loop_alone() -> None:
    private = make_loop()
    do_step(private)
    weight = private.model.weight.detach().clone()
    private.model(torch.ones(1, 3, device=DEVICE)).sum().backward()
    with pytest.raises(IncompatibleError, match=r"by private\.step alone"):
        private.optimizer.step()
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    with pytest.raises(IncompatibleError, match=r"by private\.step alone"):
        scaler.step(private.optimizer)
    assert torch.equal(private.model.weight, weight)
    do_step(private)
    assert private.steps == 2
    private.close()
    private.optimizer.step()


def test_the_optimizer_is_free_after_the_loop_is_gone() -> None:
    private = make_loop()
    optimizer, weight = private.optimizer, private.model.weight
    del private
    before, weight.grad = weight.detach().clone(), torch.ones_like(weight)
    optimizer.step()
    assert not torch.equal(weight, before)


def test_two_loops_may_share_an_optimizer() -> None:
    first = make_loop()
    second = make_private(first.model, first.optimizer, make_data(), replace(FULL, extra=FULL))
    do_step(first)
    do_step(second)
    assert (first.steps, second.steps) == (1, 1)
    with pytest.raises(IncompatibleError, match=r"by private\.step alone"):
        first.optimizer.step()


def test_open_gradients_are_not_used() -> None:
    torch.manual_seed(0)
    plain, charged = (make_loop(not_private=3) for _ in range(2))
    loss = 1e6 * charged.model(torch.ones(1, 3, device=DEVICE)).sum()
    loss.backward()
    do_step(plain)
    do_step(charged)
    assert torch.equal(plain.model.weight, charged.model.weight)


def test_a_parameter_that_was_added_later_is_refused() -> None:
    private = make_loop()
    private.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(3, device=DEVICE))]})
    with pytest.raises(ParameterError, match="the model does not have"):
        do_step(private)
    assert private.steps == 0


@pytest.mark.parametrize("clipping", [1.0, Online(1.0)], ids=["constant", "online"])
def test_layers_may_thaw_and_freeze_between_steps(clipping: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    private = make_loop(model=model, clipping=clipping)
    for trained in (False, True, False):
        model[0].requires_grad_(trained)
        weight = model[0].weight.detach().clone()
        do_step(private)
        assert torch.equal(model[0].weight, weight) is not trained
    model.requires_grad_(False)
    with pytest.raises(ParameterError, match="requires a gradient"):
        do_step(private)
    assert private.steps == 3


def test_a_loop_that_leaves_out_batches_ends_with_an_error() -> None:
    plan = hs.DPSGD(examples=EXAMPLES, rate=1e-9, steps=5, noise_multiplier=1)
    private = make_loop(plan)
    batches = iter(private.loader)
    assert len(next(batches)) == 0
    with pytest.raises(IncompatibleError, match="step 0 was drawn and not used"):
        next(batches)
    assert private.steps == 0
    with pytest.raises(IncompatibleError, match="was drawn and not used"):
        list(private.loader)


def test_one_step_runs_at_a_time() -> None:
    private = make_loop()
    batch = next(iter(private.loader))

    def inside(output: Any, target: Any) -> Any:
        private.step(LOSS, batch)
        return LOSS(output, target)

    with pytest.raises(IncompatibleError, match="under way"):
        private.step(inside, batch)
    assert private.steps == 0
    private.step(LOSS, batch)
    assert private.steps == 1


# Epochs, and what happens between them.


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"examples": 8, "batch_size": 2, "epochs": 3}, [4, 4, 4]),
        ({"examples": 8, "batch_size": 3, "epochs": 3}, [3, 3, 2]),
        ({"examples": 8, "batch_size": 2, "steps": 6}, [4, 2]),
        ({"examples": 8, "rate": 0.1, "epochs": 2}, [10, 10]),
        ({"examples": 8, "batch_size": 2, "epochs": 2, "sampling": "random-allocation"}, [4, 4]),
        ({"examples": 8, "steps": 3, "sampling": "full-batch"}, [1, 1, 1]),
    ],
    ids=str,
)
def test_epochs_have_the_steps_in_which_each_example_is_expected_once(
    fields: dict[str, Any], expected: list[int]
) -> None:
    plan = hs.DPSGD(noise_multiplier=1, **fields)
    private, found = make_loop(plan), []
    scheduler = torch.optim.lr_scheduler.StepLR(private.optimizer, 1, gamma=0.5)
    for epoch in private.epochs():
        found.append(0)
        for batch in epoch:
            private.step(LOSS, batch)
            found[-1] += 1
        scheduler.step()
        private.model.eval()
        private.model(torch.ones(1, 3, device=DEVICE))
        private.model.train()
    assert found == expected
    assert private.steps == plan.total_steps
    assert scheduler.get_last_lr() == [pytest.approx(0.1 * 0.5 ** len(expected))]


def test_a_loop_goes_on_within_an_epoch(tmp_path: Path) -> None:
    plan = hs.DPSGD(examples=EXAMPLES, batch_size=2, epochs=2, noise_multiplier=1)
    first = make_loop(plan, journal=tmp_path / "run.journal")
    do_step(first)
    first.close()
    second = make_loop(plan, journal=tmp_path / "run.journal")
    lengths = [sum(second.step(LOSS, batch) is None for batch in one) for one in second.epochs()]
    assert lengths == [3, 4]


def test_an_epoch_that_is_left_early_ends_with_an_error() -> None:
    plan = hs.DPSGD(examples=EXAMPLES, batch_size=2, epochs=2, noise_multiplier=1)
    private = make_loop(plan)
    epochs = private.epochs()
    private.step(LOSS, next(next(epochs)))
    with pytest.raises(IncompatibleError, match="ends with step 4 was left after 1"):
        next(epochs)


def test_frozen_statistics_of_batches_are_used_and_stay() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model[1].running_mean.copy_(torch.tensor([1.0, -1.0]))
    model[1].eval()
    private = make_loop(model=model)
    do_step(private)
    assert private.model[1].weight.grad is not None
    assert model[1].running_mean.tolist() == [1.0, -1.0]
    model.train()  # of all layers, as one forgets
    with pytest.raises(ParameterError, match=r"by eval\(\) .*BatchNorm1d at 1"):
        do_step(private)
    assert private.steps == 1
    for kind in (nn.BatchNorm1d(2, track_running_stats=False).eval(), nn.BatchNorm1d(2)):
        with pytest.raises(ParameterError, match="BatchNorm1d at 1"):
            make_loop(model=nn.Sequential(nn.Linear(3, 2), kind))
