"""Training loops on a ledger: reserved before the first step, and never less than was released."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.release.counting import first
from tests.adapters.torch.loops import do_steps as ran
from tests.adapters.torch.loops import make_loop

LOSS = torch.nn.functional.cross_entropy
PLAN = hs.DPSGD(examples=20, sampling="full-batch", steps=8, noise_multiplier=4)  # rho 1/32 a step


@pytest.fixture
def ledger(tmp_path: Path) -> hs.Ledger:
    return hs.Ledger(tmp_path / "ledger.db", "digits", hs.ZCDP(rho=0.5))


def loop(plan: hs.DPSGD = PLAN, **options: Any) -> Any:
    return make_loop(plan, **options)


def rho(ledger: hs.Ledger) -> float:
    spent = ledger.status.spent
    assert isinstance(spent, hs.ZCDP)
    return float(spent.rho)


def test_the_plan_is_reserved_before_the_first_step_and_what_ran_is_committed(
    ledger: hs.Ledger,
) -> None:
    private = loop(ledger=ledger.charging(by="ana", note="digits"), key="run 1")
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    ran(private, 3).close()
    assert (rho(ledger), ledger.status.unresolved) == (3 / 32, 0)
    assert ledger.history()[-1].mechanism == first(PLAN, 3)
    with pytest.raises(IncompatibleError, match="closed"):
        ran(private, 1)


@pytest.mark.parametrize("other", ["none", "another", "checkpoint"])
def test_the_key_without_its_journal_is_refused(
    ledger: hs.Ledger, tmp_path: Path, other: str
) -> None:
    options: Any = {"ledger": ledger, "key": "run 1"}
    ran(loop(**options, journal=tmp_path / "journal"), 2).close(final=False)
    journals = {"none": {}, "another": {"journal": tmp_path / "j"}}
    given: Any = journals.get(other, {"checkpoint": tmp_path / "run.pt"})
    with pytest.raises(ParameterError, match="the run for which 'run 1' was reserved"):
        loop(**options, **given)
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)


def test_what_cannot_be_reserved_is_refused_by_name(ledger: hs.Ledger) -> None:
    with pytest.raises(ParameterError, match=r"^key must be given"):
        loop(ledger=ledger)
    with pytest.raises(ParameterError, match=r"^ledger must be"):
        loop(key="run 1")
    with pytest.raises(ParameterError, match=r"^ledger must be"):
        loop(ledger="ledger.db", key="run 1")
    with pytest.raises(IncompatibleError, match="no ledger covers"):
        loop(ledger=ledger, key="run 1", not_private=1)
    with pytest.raises(BudgetExhausted, match="on 'digits'"):
        loop(replace(PLAN, noise_multiplier=1), ledger=ledger, key="run 1")
    assert [str(one.kind) for one in ledger.history()] == ["open", "refuse"]


def test_a_replay_of_the_loop_reserves_nothing(ledger: hs.Ledger) -> None:
    private = loop(ledger=ledger, key="run 1")
    assert hs.audit.record(private.as_replay(LOSS)) is not None
    assert len(ledger.history()) == 2
    private.close()
    assert rho(ledger) == 0


_KILLED_AT = """
import os, signal, sys, torch
import hockeystick as hs
from hockeystick.adapters.torch import Counting, _noise, _loop, make_private

torch.set_num_threads(1)
plan = hs.DPSGD(examples=20, sampling="full-batch", steps=8, noise_multiplier=4)
model = torch.nn.Linear(3, 2)
dataset = torch.utils.data.TensorDataset(torch.randn(20, 3), torch.randint(2, (20,)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
places = ("begin", "between", "gradients", "noise", "optimizer", "end", "nowhere")

def train(place, key):
    folder = sys.argv[1]
    ledger = hs.Ledger(os.path.join(folder, "ledger.db"), key, hs.ZCDP(rho=0.5))

    def dying_at(name, real):
        def called(*arguments, **options):
            if name == "optimizer":
                os.write(1, b"r")  # what it gets is released
            if name == place and (name in ("begin", "end") or private.steps == 3):
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return called

    between = dying_at("between", int)
    _loop.individual = dying_at("gradients", _loop.individual)
    _noise.rounded_gaussian = dying_at("noise", _noise.rounded_gaussian)
    optimizer.step = dying_at("optimizer", optimizer.step)
    hs.ledger.Reservation.commit = dying_at("end", hs.ledger.Reservation.commit)
    path = os.path.join(folder, key)
    counting = Counting(ledger=ledger, key=key, journal=path)
    with make_private(model, optimizer, dataset, plan, counting=counting) as private:
        dying_at("begin", int)()
        for batch in private.loader:
            between()
            private.step(torch.nn.functional.cross_entropy, batch)

for key in places[:-1]:
    for place in (key, "nowhere"):
        child = os.fork()
        if child == 0:
            train(place, key)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        ledger = hs.Ledger(os.path.join(sys.argv[1], "ledger.db"), key)
        told = [key, os.waitstatus_to_exitcode(status), ledger.status.spent.rho * 32]
        told += [ledger.status.unresolved, len(ledger.verify().problems)]
        os.write(1, (" " + " ".join(map(str, told)) + "\\n").encode())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_wherever_a_kill_strikes_the_ledger_has_every_release(tmp_path: Path) -> None:
    """All 8 steps count until the run is gone on with; what both released is at most 8."""
    command = [sys.executable, "-c", _KILLED_AT, os.fspath(tmp_path)]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert ended.stdout.splitlines() == [
        " begin -9 8.0 1 0",
        "rrrrrrrr begin 0 8.0 0 0",
        "rrr between -9 8.0 1 0",
        "rrrrr between 0 8.0 0 0",
        "rrr gradients -9 8.0 1 0",
        "rrrrr gradients 0 8.0 0 0",
        "rr noise -9 8.0 1 0",
        "rrrrr noise 0 8.0 0 0",
        "rrr optimizer -9 8.0 1 0",
        "rrrrr optimizer 0 8.0 0 0",
        "rrrrrrrr end -9 8.0 1 0",
        " end 0 8.0 0 0",
    ]
