"""Opacus on a ledger: steps that are reserved, counted before the model changes, and committed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("opacus")

import torch

import hockeystick as hs
from hockeystick.adapters.opacus import PrivacyEngine, drawn_rate
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError

pytestmark = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook is firing"),
    pytest.mark.filterwarnings("ignore:PrivacyEngine detected new dataset"),
]
STEP = hs.PoissonSubsampled(hs.Gaussian(1.0), drawn_rate(1 / 4))
STEPS = 10


@pytest.fixture
def ledger(tmp_path: Path) -> hs.Ledger:
    return hs.Ledger(tmp_path / "ledger.db", "x", hs.RenyiDP({4.0: 5.0}))


def cost(steps: int, path: Path) -> Any:
    alone = hs.Ledger(path / f"{steps} steps.db", "x", hs.RenyiDP({4.0: 5.0}))
    alone.step(STEP**steps)
    return alone.status.spent


class Training:
    """A model, its optimizer and its loader, made private by an engine."""

    def __init__(self, engine: PrivacyEngine, model: Any = None, **options: Any) -> None:
        self.engine, self.model = engine, model or torch.nn.Linear(3, 2)
        dataset = torch.utils.data.TensorDataset(
            torch.randn(40, 3), torch.zeros(40, dtype=torch.long)
        )
        self.private, self.optimizer, self.loader = engine.make_private(
            module=self.model,
            optimizer=torch.optim.SGD(self.model.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(dataset, batch_size=10),
            **({"noise_multiplier": 1.0, "max_grad_norm": 1.0} | options),
        )

    def step(self, steps: int) -> None:
        while steps:
            for inputs, labels in self.loader:
                self.optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(self.private(inputs), labels)
                loss.backward()
                self.optimizer.step()
                steps -= 1
                if not steps:
                    break
            self.loader.batch_sampler.drawn._open = False  # an epoch that is broken off


def test_steps_are_reserved_first_and_committed_as_counted(
    ledger: hs.Ledger, tmp_path: Path
) -> None:
    engine = PrivacyEngine()
    training = Training(engine, ledger=ledger.charging(note="cats"), key="cats", steps=STEPS)
    assert (ledger.status.spent, ledger.status.unresolved) == (cost(STEPS, tmp_path), 1)
    training.step(3)
    assert (engine.counted, len(engine.accountant)) == (3, 3)
    engine.close()
    assert (ledger.status.spent, ledger.status.unresolved) == (cost(3, tmp_path), 0)
    assert ledger.history()[-1].mechanism == STEP**3
    with pytest.raises(IncompatibleError, match="this run is closed"):
        training.step(1)


def test_a_step_beyond_those_reserved_changes_no_weight(ledger: hs.Ledger) -> None:
    engine = PrivacyEngine()
    training = Training(engine, ledger=ledger, key="cats", steps=2)
    training.step(2)
    weights = training.model.weight.clone()
    with pytest.raises(BudgetExhausted, match="3 steps of"):
        training.step(1)
    assert torch.equal(training.model.weight, weights)
    engine.close()
    assert ledger.history()[-1].mechanism == STEP**2


def test_a_step_with_other_noise_is_refused_uncounted(ledger: hs.Ledger) -> None:
    engine = PrivacyEngine()
    training = Training(engine, ledger=ledger, key="cats", steps=2)
    training.optimizer.noise_multiplier = 2.0
    with pytest.raises(IncompatibleError, match="a noise multiplier of 2 is not the 1 that"):
        training.step(1)
    assert (engine.counted, len(engine.accountant)) == (0, 0)


def test_what_the_ledger_refuses_leaves_the_model_as_it_was(ledger: hs.Ledger) -> None:
    model = torch.nn.Linear(3, 2)
    with pytest.raises(BudgetExhausted, match="on 'x'"):
        Training(PrivacyEngine(), model, ledger=ledger, key="cats", steps=10_000)
    assert [one.kind for one in ledger.history()[1:]] == ["refuse"]
    Training(PrivacyEngine(), model, ledger=ledger, key="cats", steps=1).step(1)


def test_a_run_goes_on_by_key_and_journal_alone(ledger: hs.Ledger, tmp_path: Path) -> None:
    options: Any = {"ledger": ledger, "key": "cats", "steps": STEPS}
    first = PrivacyEngine()
    Training(first, **options, journal=tmp_path / "journal").step(2)
    first.close(final=False)
    for other in ({}, {"journal": tmp_path / "other"}):
        with pytest.raises(ParameterError, match="the run for which 'cats' was reserved"):
            Training(PrivacyEngine(), **options, **other)
    with pytest.raises(ParameterError, match="a key of its own: it stands for"):
        Training(PrivacyEngine(), **options | {"steps": 11}, journal=tmp_path / "journal")
    again = PrivacyEngine()
    Training(again, **options, journal=tmp_path / "journal").step(1)
    assert again.counted == 3
    again.close()
    assert ledger.status.spent == cost(3, tmp_path)


def test_what_is_missing_or_too_much_is_named(ledger: hs.Ledger) -> None:
    with pytest.raises(ParameterError, match=r"^steps must be given with a ledger"):
        Training(PrivacyEngine(), ledger=ledger, key="cats")
    with pytest.raises(ParameterError, match=r"^key must be given"):
        Training(PrivacyEngine(), ledger=ledger, steps=3)
    with pytest.raises(ParameterError, match=r"^steps must be left out"):
        Training(PrivacyEngine(), steps=3)
    with pytest.raises(ParameterError, match=r"^journal must be left out"):
        Training(PrivacyEngine(), journal="journal")
    with pytest.raises(ParameterError, match=r"^ledger must be given to make_private"):
        PrivacyEngine().make_private_with_epsilon(ledger=ledger)
    assert len(ledger.history()) == 1


def test_an_engine_has_one_reserved_run_at_a_time(ledger: hs.Ledger) -> None:
    engine = PrivacyEngine()
    Training(engine, ledger=ledger, key="cats", steps=1)
    with pytest.raises(IncompatibleError, match="close it"):
        Training(engine, ledger=ledger, key="dogs", steps=1)
    engine.close()
    Training(engine, ledger=ledger, key="dogs", steps=1).step(1)
    engine.close()
    assert ledger.history()[-1].key == "dogs"


_KILLED = """
import os, signal, sys, warnings, torch
warnings.simplefilter("ignore")
import hockeystick as hs
from hockeystick.adapters.opacus import PrivacyEngine

torch.set_num_threads(1)
def train(die):
    model = torch.nn.Linear(3, 2)
    data = torch.utils.data.TensorDataset(torch.randn(40, 3), torch.zeros(40, dtype=torch.long))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    real = optimizer.step
    def step(*arguments, **options):
        os.write(1, b"r")  # what it gets is released
        if die and engine.counted == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    optimizer.step = step
    engine = PrivacyEngine()
    ledger = hs.Ledger(sys.argv[1] + "/ledger.db", "x")
    private, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer,
        data_loader=torch.utils.data.DataLoader(data, batch_size=10),
        noise_multiplier=1.0, max_grad_norm=1.0,
        ledger=ledger, key="cats", steps=10, journal=sys.argv[1] + "/journal",
    )
    try:
        while True:
            for inputs, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(private(inputs), labels).backward()
                optimizer.step()
    except hs.errors.BudgetExhausted:
        engine.close()

for die in (True, False):
    child = os.fork()
    if child == 0:
        train(die)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    unresolved = hs.Ledger(sys.argv[1] + "/ledger.db", "x").status.unresolved
    os.write(1, (" %d %d\\n" % (os.waitstatus_to_exitcode(status), unresolved)).encode())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_kill_within_a_step_leaves_it_counted(ledger: hs.Ledger, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _KILLED, os.fspath(tmp_path)]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    assert ended.stdout.splitlines() == ["rrr -9 1", "rrrrrrr 0 0"]
    assert ledger.status.spent == cost(10, tmp_path)
