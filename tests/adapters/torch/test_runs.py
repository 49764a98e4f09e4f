"""No way around the count of a private loop: not by its state, its processes or its optimizer."""

from __future__ import annotations

import copy
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import hockeystick as hs
from hockeystick import _files
from hockeystick.adapters.torch import Online
from hockeystick.adapters.torch._loop import _ALONE
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.release.counting import first
from tests.adapters.torch.loops import (
    DEVICE,
    EXAMPLES,
    FULL,
    LOSS,
    do_step,
    do_steps,
    make_data,
    make_loop,
    make_private,
)

POISSON = hs.DPSGD(examples=60, batch_size=6, steps=40, noise_multiplier=1.5)
ALLOCATED = hs.DPSGD(
    examples=60, batch_size=12, epochs=3, noise_multiplier=1.5, sampling="random-allocation"
)


# What is spent, and where it ends.


def test_a_loop_runs_the_plan_and_spends_what_it_costs() -> None:
    private = make_loop(POISSON)
    assert private.spent(1e-5).upper == 0.0
    assert len(private.loader) == 40
    assert do_steps(private, 7).spent(1e-5) == make_spent(first(POISSON, 7))
    batch = next(iter(private.loader))
    do_steps(private)
    weight = private.model.weight.clone()
    assert private.spent(1e-5) == make_spent(POISSON)
    assert list(private.loader) == []
    with pytest.raises(BudgetExhausted, match="41 steps of"):
        private.step(LOSS, batch)
    assert torch.equal(private.model.weight, weight)
    assert private.steps == 40


def make_spent(plan: hs.DPSGD) -> Any:
    """Return what a loop says that a plan costs."""
    answer = hs.epsilon(plan, 1e-5)
    name = f"{answer.accountant} assuming gradients that no microbatch changes"
    return replace(answer, accountant=name, assumptions=(*answer.assumptions, _ALONE))


@pytest.mark.parametrize("plan", [POISSON, ALLOCATED], ids=["poisson", "allocated"])
def test_a_budget_stops_the_loop_before_the_step_that_would_overspend(plan: hs.DPSGD) -> None:
    budget = hs.ApproxDP(0.8 * hs.epsilon(plan, 1e-5).upper, 1e-5)
    private = make_loop(plan, budget=budget)
    with pytest.raises(BudgetExhausted, match="left for one step PureDP"):
        do_steps(private)
    assert 0 < private.steps < plan.total_steps
    assert private.steps % (plan.steps_per_epoch or 1) == 0
    assert private.spent(1e-5).upper <= budget.epsilon
    assert hs.epsilon(first(plan, private.steps + 1), 1e-5).upper > budget.epsilon


# States, checkpoints and journals.


@pytest.mark.parametrize(
    "change",
    [
        {"plan": "other"},
        {"steps": -1},
        {"steps": 41},
        {"kind": ""},
        {"not_private": True},
        {"arithmetic": "real"},
        {"run": "other"},
    ],
)
def test_a_state_of_something_else_is_refused(change: dict[str, Any]) -> None:
    private = do_steps(make_loop(POISSON), 3)
    state = private.state_dict()
    for wrong in (state | {"account": state["account"] | change}, change):
        with pytest.raises(ParameterError):
            private.load_state_dict(wrong)
    assert private.steps == 3


def test_a_state_goes_on_and_a_batch_from_before_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "run.account"
    private = do_steps(make_loop(ALLOCATED, clipping=Online(0.5), journal=path), 3)
    state, batch = private.state_dict(), next(iter(private.loader))
    private.load_state_dict(state)
    assert private.steps == 5  # an interrupted epoch counts as done
    with pytest.raises(ParameterError, match="batch"):
        private.step(LOSS, batch)
    private.close()
    resumed = make_loop(ALLOCATED, clipping=Online(0.5), journal=path)
    resumed.model.load_state_dict(private.model.state_dict())
    resumed.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert (resumed.steps, resumed.clipping_norm) == (5, state["norm"])
    assert do_steps(resumed).spent(1e-5) == make_spent(ALLOCATED)


def test_without_its_journal_no_state_is_gone_on_with_elsewhere(tmp_path: Path) -> None:
    for journals in ((None, None), (tmp_path / "a", None), (None, tmp_path / "b")):
        first = make_loop(journal=journals[0])
        stale = first.state_dict()
        second = make_loop(journal=journals[1])
        second.model.load_state_dict(first.model.state_dict())
        with pytest.raises(ParameterError, match="journal must be that of the run"):
            second.load_state_dict(stale)


def test_a_checkpoint_is_on_the_disk_and_counts_the_steps_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.pt"
    private, forced = make_loop(clipping=Online(1.0), checkpoint=path), list[int]()
    do_step(private)
    monkeypatch.setattr(_files, "force", lambda one: forced.append(os.fstat(one).st_ino))
    private.save()
    assert forced == [path.stat().st_ino]
    saved = copy.deepcopy(private.model.state_dict())
    do_steps(private, 3).close()
    second = make_loop(clipping=Online(1.0), checkpoint=path)
    second.load()
    assert second.steps == 4
    assert all(map(torch.equal, saved.values(), second.model.state_dict().values()))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.pt", "run.pt.journal"]


def test_a_checkpoint_without_its_journal_or_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    private = make_loop(checkpoint=path)
    private.save()
    private.close()
    (tmp_path / "run.pt.journal").unlink()
    with pytest.raises(ParameterError, match="journal must be that of the run"):
        make_loop(checkpoint=path).load()
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ParameterError, match="journal must be another file"):
        make_loop(checkpoint=path, journal=tmp_path / "link")
    torch.save({"model": {}}, path)
    with pytest.raises(ParameterError, match="checkpoint must be"):
        make_loop(checkpoint=path).load()
    for call in (make_loop().save, make_loop().load):
        with pytest.raises(ParameterError, match="checkpoint must be a path"):
            call()


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


def test_a_loop_is_not_copied_nor_given_the_state_of_other_weights() -> None:
    private = make_loop()
    stale = private.state_dict()
    for one in (private, private.loader):
        for copied in (copy.deepcopy, pickle.dumps):
            with pytest.raises(IncompatibleError, match="not copied or pickled"):
                copied(one)
    do_step(private)
    with pytest.raises(ParameterError, match="that of the weights which the model has"):
        private.load_state_dict(stale)
    assert private.steps == 1


# Steps outside the loop, and batches left out.


def test_the_optimizer_steps_by_the_private_loop_alone() -> None:
    private = make_loop()
    do_step(private)
    weight = private.model.weight.detach().clone()
    private.model(torch.ones(1, 3, device=DEVICE)).sum().backward()
    with pytest.raises(IncompatibleError, match=r"by private\.step alone"):
        private.optimizer.step()
    assert torch.equal(private.model.weight, weight)
    both = replace(FULL, extra=FULL)
    second = make_private(private.model, private.optimizer, make_data(), both)  # which shares it
    do_step(second)
    private.close()
    with pytest.raises(IncompatibleError, match=r"by private\.step alone"):
        private.optimizer.step()
    second.close()
    private.optimizer.step()


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


# Epochs, and what happens between them.


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"batch_size": 3, "epochs": 3}, [2, 3, 2]),
        ({"batch_size": 2, "steps": 6}, [3, 2]),
        ({"rate": 0.1, "epochs": 2}, [9, 10]),
        ({"batch_size": 2, "epochs": 2, "sampling": "random-allocation"}, [3, 4]),
        ({"steps": 3, "sampling": "full-batch"}, [1, 1]),
    ],
    ids=str,
)
def test_epochs_have_the_steps_in_which_each_example_is_expected_once(
    fields: dict[str, Any], expected: list[int]
) -> None:
    plan = hs.DPSGD(examples=8, noise_multiplier=1, **fields)
    private, found = make_loop(plan), []
    do_step(private)  # an epoch that has begun is gone on with
    for epoch in private.epochs():
        found.append(0)
        for batch in epoch:
            private.step(LOSS, batch)
            found[-1] += 1
    assert found == expected
    assert private.steps == plan.total_steps
    private = make_loop(plan)
    epochs = private.epochs()
    private.step(LOSS, next(next(epochs)))
    if expected[0] > 1:
        with pytest.raises(IncompatibleError, match="was left after 1"):
            next(epochs)


def test_frozen_statistics_of_batches_are_used_and_stay() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    model[1].running_mean.copy_(torch.tensor([1.0, -1.0]))
    model[1].eval()
    private = make_loop(model=model)
    do_step(private)
    assert model[1].running_mean.tolist() == [1.0, -1.0]
    model.train()  # of all layers, as one forgets
    with pytest.raises(ParameterError, match=r"by eval\(\) .*BatchNorm1d at 1"):
        do_step(private)
    assert private.steps == 1


# Kills.


_TRAINING = """
import os, sys, torch
import hockeystick as hs
from hockeystick.adapters.torch import Counting, make_private

torch.set_num_threads(1)
plan = hs.DPSGD(examples=60, batch_size=6, steps=10**6, noise_multiplier=1.5)
model = torch.nn.Linear(3, 2)
dataset = torch.utils.data.TensorDataset(torch.randn(60, 3), torch.randint(2, (60,)))

class Told(torch.optim.SGD):
    # Says that a gradient was released as soon as it is.
    def step(self, closure=None):
        os.write(1, b"r")
        return super().step(closure)

optimizer = Told(model.parameters(), lr=0.1)
private = make_private(model, optimizer, dataset, plan, counting=Counting(journal=sys.argv[1]))
os.write(1, b"%d\\n" % private.steps)
for batch in private.loader:
    private.step(torch.nn.functional.cross_entropy, batch)
"""


def _counted(journal: Path) -> int:
    return journal.read_bytes().partition(b"\n")[2].count(b".")


def test_after_a_kill_the_account_is_never_less_than_what_was_released(tmp_path: Path) -> None:
    path = tmp_path / "run.account"
    command = [sys.executable, "-c", _TRAINING, os.fspath(path)]
    released = 0
    chance = random.Random(1)
    for _ in range(3):
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        counted = int(child.stdout.readline())
        assert counted >= released
        assert child.stdout.read(1) == b"r"
        time.sleep(chance.uniform(0.05, 0.5))  # anywhere between steps and inside
        child.send_signal(signal.SIGKILL)
        told = child.stdout.read()
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        assert told.strip(b"r") == b""
        released += 1 + len(told)
        journal = _counted(path)
        assert released <= journal <= released + 3  # at most one step each time is counted in vain
