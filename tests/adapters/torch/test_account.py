"""The account of a private loop: what is spent, where it stops, and what survives a kill."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import hockeystick as hs
from hockeystick.adapters.loop import Account
from hockeystick.adapters.torch import Online
from hockeystick.errors import BudgetExhausted, ParameterError
from hockeystick.release.counting import first
from tests.adapters.torch.loops import LOSS, do_steps, make_loop

POISSON = hs.DPSGD(examples=60, batch_size=6, steps=40, noise_multiplier=1.5)
ALLOCATED = hs.DPSGD(
    examples=60, batch_size=12, epochs=3, noise_multiplier=1.5, sampling="random-allocation"
)


def _loop(plan: hs.DPSGD = POISSON, **options: Any) -> Any:
    return make_loop(plan, **options)


def test_a_loop_runs_the_plan_and_spends_what_it_costs() -> None:
    private = _loop()
    assert private.spent(1e-5).upper == 0.0
    assert len(private.loader) == 40
    first = hs.DPSGD(examples=60, batch_size=6, steps=7, noise_multiplier=1.5)
    assert do_steps(private, 7).spent(1e-5).upper == hs.epsilon(first, 1e-5).upper
    do_steps(private, 10**6)
    assert private.steps == POISSON.total_steps
    assert private.spent(1e-5).upper == hs.epsilon(POISSON, 1e-5).upper
    assert list(private.loader) == []


def test_a_step_beyond_the_plan_is_refused_before_it_runs() -> None:
    private = _loop(hs.DPSGD(examples=60, batch_size=6, steps=1, noise_multiplier=1))
    batch = next(iter(private.loader))
    private.step(LOSS, batch)
    weight = private.model.weight.clone()
    with pytest.raises(BudgetExhausted, match="2 steps of"):
        private.step(LOSS, batch)
    assert torch.equal(private.model.weight, weight)
    assert private.steps == 1


@pytest.mark.parametrize(
    "plan", [pytest.param(POISSON, id="poisson"), pytest.param(ALLOCATED, id="allocated")]
)
def test_a_budget_stops_the_loop_before_the_step_that_would_overspend(plan: hs.DPSGD) -> None:
    length = plan.steps_per_epoch or 1
    whole = hs.epsilon(plan, 1e-5).upper
    budget = hs.ApproxDP(0.8 * whole, 1e-5)
    private = _loop(plan, budget=budget)
    with pytest.raises(BudgetExhausted, match="left for one step PureDP"):
        do_steps(private, 10**6)
    assert 0 < private.steps < plan.total_steps
    assert private.steps % length == 0
    assert private.spent(1e-5).upper <= budget.epsilon
    assert hs.epsilon(first(plan, private.steps + 1), 1e-5).upper > budget.epsilon


def test_a_budget_that_covers_the_plan_or_nothing() -> None:
    assert len(_loop(budget=hs.ApproxDP(100.0, 1e-5)).loader) == 40
    with pytest.raises(BudgetExhausted):
        next(iter(_loop(budget=hs.ApproxDP(1e-9, 1e-9)).loader))


def test_part_of_an_epoch_costs_at_most_all_of_it() -> None:
    private = do_steps(_loop(ALLOCATED), 6)
    assert private.plan.total_steps == 10
    assert private.spent(1e-5).upper == hs.epsilon(first(ALLOCATED, 10), 1e-5).upper


def test_a_state_goes_through_json_and_pickle_and_keeps_the_account(tmp_path: Path) -> None:
    path = tmp_path / "run.account"
    private = do_steps(_loop(clipping=Online(0.5), journal=path), 5)
    state = private.state_dict()
    assert json.loads(json.dumps(state["account"])) == state["account"]
    private.close()
    resumed = _loop(clipping=Online(0.5), journal=path)
    resumed.model.load_state_dict(private.model.state_dict())
    resumed.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert resumed.steps == 5
    assert resumed.clipping_norm == state["norm"]
    do_steps(resumed, 10**6)
    assert resumed.spent(1e-5).upper == hs.epsilon(POISSON, 1e-5).upper


def test_a_batch_that_was_drawn_before_a_state_was_loaded_is_not_used() -> None:
    private = do_steps(_loop(ALLOCATED), 3)
    batch = next(iter(private.loader))
    private.load_state_dict(private.state_dict())
    assert private.steps == 5  # an interrupted epoch counts as done
    with pytest.raises(ParameterError, match="batch"):
        private.step(LOSS, batch)


@pytest.mark.parametrize(
    "change",
    [
        {"plan": "other"},
        {"version": 1},
        {"steps": -1},
        {"steps": 41},
        {"steps": 1.0},
        {"kind": ""},
        {"not_private": True},
        {"arithmetic": "real"},
        {"run": "other"},
    ],
)
def test_a_state_of_something_else_is_refused(change: dict[str, Any]) -> None:
    private = do_steps(_loop(), 3)
    state = private.state_dict()
    with pytest.raises(ParameterError):
        private.load_state_dict(state | {"account": state["account"] | change})
    with pytest.raises(ParameterError):
        private.load_state_dict(change)
    assert private.steps == 3


def test_a_step_is_in_the_journal_before_its_noise_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.account"
    private = do_steps(_loop(journal=path), 2)

    def killed(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hockeystick.adapters.torch._noise.rounded_gaussian", killed)
    with pytest.raises(KeyboardInterrupt):
        do_steps(private, 1)
    assert private.steps == 3
    assert path.read_bytes().endswith(b"\n...")


def test_a_loss_that_fails_leaves_a_step_uncounted_and_its_batch_in_place() -> None:
    private = _loop(not_private=1)
    batch = next(iter(private.loader))
    assert len(batch) > 0
    with pytest.raises(TypeError):
        private.step(None, batch)
    assert private.steps == 0
    assert next(iter(private.loader)) is batch


def test_a_journal_is_gone_on_with_and_is_never_below_a_state(tmp_path: Path) -> None:
    path = tmp_path / "run.account"
    first = do_steps(_loop(journal=path), 2)
    older, weights = first.state_dict(), copy.deepcopy(first.model.state_dict())
    del first
    newer = do_steps(_loop(journal=path), 3).state_dict()
    assert newer["account"]["steps"] == 5
    resumed = _loop(journal=path)
    resumed.model.load_state_dict(weights)
    resumed.load_state_dict(older)
    assert resumed.steps == 5


@pytest.mark.parametrize("text", ["", "something else\n", "x"])
def test_a_journal_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.account"
    _loop(journal=path).close()
    path.write_bytes(path.read_bytes() + b".,." if not text else text.encode())
    with pytest.raises(ParameterError, match="journal"):
        _loop(journal=path)
    other = tmp_path / "other.account"
    _loop(ALLOCATED, journal=other)
    with pytest.raises(ParameterError, match="journal"):
        _loop(journal=other)


def test_counting_a_step_takes_no_questions_about_epsilon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account(POISSON, hs.ApproxDP(100.0, 1e-5), tmp_path / "run.account")
    monkeypatch.setattr(hs, "epsilon", None)
    for _ in range(40):
        account.count()
    assert account.counted == 40


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
    """Return the steps in a journal, whose first line says what of."""
    return journal.read_bytes().partition(b"\n")[2].count(b".")


_KILLED_AT = """
import os, signal, sys, torch
import hockeystick as hs
from hockeystick.adapters.torch import Counting, _noise, _loop, make_private

torch.set_num_threads(1)
plan = hs.DPSGD(examples=60, batch_size=30, steps=10, noise_multiplier=1.5)
model = torch.nn.Linear(3, 2)
dataset = torch.utils.data.TensorDataset(torch.randn(60, 3), torch.randint(2, (60,)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(place):
    path = os.path.join(sys.argv[1], place)
    private = make_private(model, optimizer, dataset, plan, counting=Counting(journal=path))

    def dying_at(name, real):
        def called(*arguments, **options):
            if name == "optimizer":
                os.write(1, b"r")  # what it gets is released
            if name == place and private.steps == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return called

    between = dying_at("between", int)
    _loop.individual = dying_at("gradients", _loop.individual)
    _noise.rounded_gaussian = dying_at("noise", _noise.rounded_gaussian)
    optimizer.step = dying_at("optimizer", optimizer.step)
    for batch in private.loader:
        between()
        private.step(torch.nn.functional.cross_entropy, batch)

for place in ("between", "gradients", "noise", "optimizer"):
    child = os.fork()
    if child == 0:
        train(place)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os.write(1, b" %s %d\\n" % (place.encode(), os.waitstatus_to_exitcode(status)))
"""


def test_wherever_a_kill_strikes_the_journal_has_every_release(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED_AT, os.fspath(tmp_path)]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert ended.stdout.splitlines() == [
        "rrr between -9",
        "rrr gradients -9",
        "rr noise -9",
        "rrr optimizer -9",
    ]
    for place in ("between", "gradients", "noise", "optimizer"):
        assert _counted(tmp_path / place) == 3


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
