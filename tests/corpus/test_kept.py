"""What was written by earlier versions is read: the same counts, and no other costs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.answers import load_answer
from hockeystick.calibration import read_description
from hockeystick.mechanisms import MECHANISMS
from tests.corpus.kept import (
    ASK,
    COSTS,
    DELTA,
    GRID,
    ON_LEDGER,
    PLAN,
    RECORDED,
    RECORDERS,
    RUNS,
    STORED,
    cost_of,
    counted,
    ends,
    run_of,
)

STATES = json.loads((STORED / "states.json").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that has what was stored."""
    return Path(shutil.copytree(STORED, tmp_path / "kept"))


def same(found: list[Any], stored: list[Any]) -> bool:
    """Return whether a count is the stored one, and its cost is that or within it."""
    count, low, high = stored
    return bool(found[0] == count and low * (1 - 1e-9) <= found[1] <= found[2] <= high * (1 + 1e-9))


@pytest.mark.parametrize("name", RUNS)
def test_runs_go_on_with_their_journals(name: str, folder: Path) -> None:
    run = run_of(name, folder)
    assert same(cost_of(run), COSTS[name])
    counted(run, 1).close(final=False)
    again = run_of(name, folder)
    assert again.counted > COSTS[name][0]
    again.close(final=False)


@pytest.mark.parametrize("name", [name for name in RUNS if name not in ON_LEDGER])
def test_what_is_renamed_refuses_no_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Descriptions stay what they are; how plans are shown and accountants write may change."""
    counted(run_of(name, tmp_path), 1).close(final=False)
    monkeypatch.setattr("hockeystick.calibration.session.runs.VERSION", 9)
    for kind in MECHANISMS.values():
        monkeypatch.setattr(kind, "__repr__", object.__repr__)
    run_of(name, tmp_path).close(final=False)


@pytest.mark.parametrize("name", ON_LEDGER)
def test_reserved_runs_are_committed_as_counted(name: str, folder: Path) -> None:
    ledger = hs.Ledger(folder / "ledger.db", ON_LEDGER[name][0])
    before = ledger.status
    assert ledger.verify().sound
    run = run_of(name, folder)
    assert ledger.status.spent == before.spent
    assert run.released == counted(run, 0).released
    run.close()
    assert ledger.history()[-1].mechanism == run.released
    assert (before.unresolved, ledger.status.unresolved) == (1, 0)


def test_the_state_of_a_loop_is_that_of_its_journal(folder: Path) -> None:
    run = run_of("steps", folder)
    run.load(STATES["account"])
    assert run.counted == 3
    run.close()


@pytest.mark.parametrize("name", RECORDERS)
def test_recorders_go_on_from_their_states(name: str) -> None:
    read, made, cost = RECORDERS[name]
    recorder = read(STATES[name])
    assert same([len(recorder), *ends(cost(recorder))], COSTS[name])
    fresh = made()
    fresh.load_state_dict(STATES[name])
    recorder.step(hs.Gaussian(9.0))
    assert len(recorder) == len(fresh) + 1 == sum(RECORDED.values()) + 1


@pytest.mark.parametrize("name", ["answer", "solve"])
def test_answers_are_read_and_hold(name: str) -> None:
    answer = json.loads(load_answer(STORED / f"{name}.json"))
    claimed = answer if name == "answer" else answer["achieved"]
    found = hs.epsilon(read_description(answer["description"]), DELTA)
    assert same([0, *ends(found)], [0, claimed["lower"], claimed["upper"]])
    pytest.importorskip("flint", reason="needs the extra verify")
    assert hs.answers.verify(STORED / f"{name}.json").status == "verified"


def test_plans_are_read() -> None:
    assert hs.load_plan(STORED / "plan.toml").plan == PLAN
    assert read_description(json.loads((STORED / "plan.json").read_text())) == PLAN


def test_a_sweep_goes_on_with_its_journal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this version: another one refuses it, as the answers of two may differ."""
    monkeypatch.setattr("hockeystick.calibration.sweeps.sweep.__version__", "0.1.0")
    told: list[tuple[int, int]] = []
    out = folder / "begun.csv"
    list(hs.sweep(GRID, ASK, out=out, progress=lambda *one: told.append(one)))
    assert told[0] == (2, 3)
    assert out.read_text() == (STORED / "sweep.csv").read_text()
