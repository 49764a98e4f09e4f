"""No way around the count of a private loop: not by its state, its processes or its optimizer."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import hockeystick as hs
from hockeystick import _files
from hockeystick.adapters.torch import Online, _loop, _noise
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
from tests.ledger.forks import die, killed, outcome, rho

POISSON = hs.DPSGD(examples=60, batch_size=6, steps=40, noise_multiplier=1.5)
ALLOCATED = hs.DPSGD(
    examples=60, batch_size=12, epochs=3, noise_multiplier=1.5, sampling="random-allocation"
)


# What is spent, and where it ends.


def test_a_loop_runs_the_plan_and_spends_what_it_costs() -> None:
    private = make_loop(POISSON)
    assert private.spent(1e-5).upper == 0.0
    assert len(private.loader) == 40
    spent = hs.epsilon(first(POISSON, 7), 1e-5)
    assert do_steps(private, 7).spent(1e-5).upper == spent.upper
    batch = next(iter(private.loader))
    do_steps(private)
    weight = private.model.weight.clone()
    assert private.spent(1e-5).upper == hs.epsilon(POISSON, 1e-5).upper
    assert list(private.loader) == []
    with pytest.raises(BudgetExhausted, match="41 steps of"):
        private.step(LOSS, batch)
    assert torch.equal(private.model.weight, weight)
    assert private.steps == 40


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
    assert do_steps(resumed).spent(1e-5).upper == hs.epsilon(ALLOCATED, 1e-5).upper


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


@pytest.mark.parametrize("journals", [(None, None), ("a", None), (None, "b"), ("a", "b")])
def test_without_its_journal_no_state_is_gone_on_with_elsewhere(
    journals: Any, tmp_path: Path
) -> None:
    first, second = (make_loop(journal=name and tmp_path / name) for name in journals)
    second.model.load_state_dict(first.model.state_dict())
    with pytest.raises(ParameterError, match="journal must be that of the run"):
        second.load_state_dict(first.state_dict())


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    torch.save({"model": {}}, path)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ParameterError, match="journal must be another file"):
        make_loop(checkpoint=path, journal=tmp_path / "link")
    with pytest.raises(ParameterError, match="checkpoint must be"):
        make_loop(checkpoint=path).load()
    for call in (make_loop().save, make_loop().load):
        with pytest.raises(ParameterError, match="checkpoint must be a path"):
            call()


def test_a_loop_is_not_given_the_state_of_other_weights() -> None:
    private = make_loop()
    stale = private.state_dict()
    do_step(private)
    with pytest.raises(ParameterError, match="that of the weights which the model has"):
        private.load_state_dict(stale)
    assert private.steps == 1


# Steps outside the loop, and batches left out.


def test_of_two_loops_the_optimizer_is_free_when_both_are_closed() -> None:
    private = make_loop()
    do_step(private)
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


@pytest.mark.parametrize("clipping", [1.0, Online(1.0)], ids=["constant", "online"])
def test_layers_may_thaw_and_freeze_between_steps(clipping: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    private = make_loop(model=model, clipping=clipping)
    for trained in (False, True, False):
        model[0].requires_grad_(trained)
        weight = model[0].weight.detach().clone()
        do_step(private)
        assert torch.equal(model[0].weight, weight) is not trained
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


# Epochs, and what happens between them.


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"batch_size": 3, "epochs": 3}, [2, 3, 2]),
        ({"rate": 0.1, "epochs": 2}, [9, 10]),
        ({"batch_size": 2, "epochs": 2, "sampling": "random-allocation"}, [3, 4]),
        ({"steps": 3, "sampling": "full-batch"}, [1, 1]),
    ],
    ids=str,
)
def test_epochs_have_the_steps_in_which_each_example_is_expected_once(
    fields: dict[str, Any], expected: list[int]
) -> None:
    private, found = make_loop(hs.DPSGD(examples=8, noise_multiplier=1, **fields)), []
    do_step(private)  # an epoch that has begun is gone on with
    for epoch in private.epochs():
        found.append(0)
        for batch in epoch:
            private.step(LOSS, batch)
            found[-1] += 1
    assert found == expected
    assert private.left == 0


def test_an_epoch_that_is_left_ends_with_an_error() -> None:
    private = make_loop(POISSON)
    epochs = private.epochs()
    private.step(LOSS, next(next(epochs)))
    with pytest.raises(IncompatibleError, match="was left after 1"):
        next(epochs)


# On a ledger: reserved before the first step, and never less than was released.

SMALL = hs.DPSGD(examples=20, sampling="full-batch", steps=8, noise_multiplier=4)  # rho 1/32 a step


@pytest.fixture
def ledger(tmp_path: Path) -> hs.Ledger:
    return hs.Ledger(tmp_path / "ledger.db", "digits", hs.ZCDP(rho=0.5))


def test_what_cannot_be_reserved_is_refused(ledger: hs.Ledger) -> None:
    with pytest.raises(ParameterError, match=r"^key must be given"):
        make_loop(SMALL, ledger=ledger)
    with pytest.raises(IncompatibleError, match="no ledger covers"):
        make_loop(SMALL, ledger=ledger, key="run 1", not_private=1)
    with pytest.raises(BudgetExhausted, match="on 'digits'"):
        make_loop(replace(SMALL, noise_multiplier=1), ledger=ledger, key="run 1")
    assert [str(one.kind) for one in ledger.history()] == ["open", "refuse"]


def test_a_replay_of_the_loop_reserves_nothing(ledger: hs.Ledger) -> None:
    private = make_loop(SMALL, ledger=ledger, key="run 1")
    assert hs.audit.record(private.as_replay(LOSS)) is not None
    assert len(ledger.history()) == 2
    private.close()
    assert rho(ledger) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of threads that fork
@pytest.mark.parametrize("place", ["begin", "between", "gradients", "noise", "optimizer", "end"])
def test_wherever_a_kill_strikes_the_ledger_has_every_release(
    place: str, ledger: hs.Ledger, tmp_path: Path
) -> None:
    """All 8 steps count until the run is gone on with; what both released is at most 8."""
    released = tmp_path / "released"

    def train(place: str) -> None:
        torch.set_num_threads(1)  # those of the parent are not there after a fork

        def dying(name: str, real: Any) -> Any:
            def called(*arguments: Any, **options: Any) -> Any:
                if name == "optimizer":
                    with released.open("a") as told:
                        told.write("r")
                if name == place and (name in ("begin", "end") or private.steps == 3):
                    die()
                return real(*arguments, **options)

            return called

        for owner, attribute, name in (
            (_loop, "individual", "gradients"),
            (_noise, "rounded_gaussian", "noise"),
            (hs.ledger.Reservation, "commit", "end"),
        ):
            setattr(owner, attribute, dying(name, getattr(owner, attribute)))
        with make_loop(SMALL, ledger=ledger, key="run 1", journal=tmp_path / "journal") as private:
            private.optimizer.step = dying("optimizer", private.optimizer.step)
            dying("begin", int)()
            for batch in private.loader:
                dying("between", int)()
                private.step(LOSS, batch)

    killed(lambda: train(place))
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    assert outcome(lambda: train("nowhere")) == 0
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 0)
    assert ledger.verify().sound
    assert len(released.read_text()) == 8 - (place == "noise")
