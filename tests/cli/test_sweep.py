import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.cli.sweep import load_grid, processes
from tests.cli.conftest import Run, Write

ROOT = Path(__file__).parents[2]
PLAN = "[dpsgd]\nexamples = 6000\nbatch_size = 60\n"
SMALL = f"{PLAN}epochs = 2\n[grid]\nnoise_multiplier = [1, 2]\ndelta = [1e-5, 1e-6]\n[ask]\n"
SMALL += 'find = "epsilon"\n'


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def small_plan(**fields: Any) -> hs.DPSGD:
    return hs.DPSGD(**{"noise_multiplier": 1, "examples": 6000, "batch_size": 60, **fields})


def test_a_grid_file_is_swept_into_a_file(run: Run, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    status, shown, err = run("sweep", write(SMALL), "--out", str(out))
    assert (status, err) == (0, "")
    assert "rows.csv" in "".join(shown.split())
    rows = rows_of(out)
    cells = [(noise, delta) for noise in "12" for delta in ("1e-05", "1e-06")]
    assert [(row["noise_multiplier"], row["delta"]) for row in rows] == cells
    for row in rows:
        plan = small_plan(epochs=2, noise_multiplier=float(row["noise_multiplier"]))
        assert float(row["upper"]) == hs.epsilon(plan, float(row["delta"])).upper


def test_json_says_what_became_of_it(run: Run, write: Write, tmp_path: Path) -> None:
    out = str(tmp_path / "rows.csv")
    text = SMALL.replace("[1, 2]", "[1, -2]").replace("delta = [1e-5, 1e-6]", "")
    status, shown, err = run("sweep", write(f"{text}\ndelta = 1e-5"), "--out", out, "--json")
    assert (status, err) == (0, "")
    told = json.loads(shown)
    assert (told["rows"], told["errors"], told["resumed"], told["out"]) == (2, 1, 0, out)
    assert told["first_error"] == "noise_multiplier must be a number >= 0 or inf; got -2"
    assert (told["find"], told["at"]) == ("epsilon", {"delta": 1e-5})
    assert told["grid"] == {"noise_multiplier": [1, -2]}


def test_what_is_solved_for_meets_the_budget_of_its_cell(tmp_path: Path, write: Write) -> None:
    text = f"{PLAN}epochs = 2\n[grid]\nepsilon = [2, 4]\n"
    file = load_grid(write(f'{text}[ask]\nfind = "noise_multiplier"\ndelta = 1e-5\n'))
    for row, epsilon in zip(hs.sweep(file.grid, file.question), (2, 4), strict=True):
        plan = small_plan(epochs=2, noise_multiplier=row["value"])
        assert row["achieved_upper"] == hs.epsilon(plan, 1e-5).upper <= epsilon


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("{from = 0.1, to = 0.5, count = 5}", (0.1, 0.2, 0.3, 0.4, 0.5)),
        ("{from = 1, to = 100, count = 3, log = true}", (1.0, pytest.approx(10, rel=1e-15), 100.0)),
        ("{from = 1, to = 3, count = 9, whole = true}", (1, 2, 3)),
        ("[1, 2.5]", (1, 2.5)),
    ],
)
def test_a_range_has_both_ends_and_even_steps(
    write: Write, given: str, values: tuple[float, ...]
) -> None:
    text = f"{PLAN}noise_multiplier = 1\n[grid]\nepochs = {given}\n[ask]\ndelta = 1e-5\n"
    assert load_grid(write(text)).grid["epochs"] == values


@pytest.mark.parametrize(
    ("grid", "ask", "allowed"),
    [
        ("", 'find = "epsilon"', "needs a table [grid]"),
        ("epochs = [1]", 'find = "epsilon"', "[ask] or [grid] needs delta, to find epsilon"),
        ("delta = [1]", 'find = "delta"\nepsilon = 1', "[grid] cannot have delta, which is what"),
        ("epochs = [1]", "find = 3", 'find must be "epsilon", "delta"'),
        ("epochs = [1]", 'delta = 0.1\naccountant = "x"', "accountant must be one of"),
        ("epochs = [1]", "delta = 2", "delta must be a number from 0 to 1; got 2"),
        ("epochs = []", "delta = 0.1", "epochs must be a sequence of at least one value"),
        ("epochs = {from = 1, too = 2}", "delta = 0.1", "epochs.too (did you mean 'to'?)"),
        ("epochs = {from = 0, to = 2, count = 3, log = true}", "delta = 0.1", "from must be a fin"),
        ("epochs = {from = 1, to = 2, count = 3, log = 1}", "delta = 0.1", "log must be true or"),
        ("delta = [0.2]", "delta = 0.1", "delta is given twice, in [ask] and in [grid]; give"),
        ("epochs = [1]", "delta = 0.1\nepsilon = 1", "[ask] cannot have epsilon, which is"),
    ],
)
def test_a_file_that_is_no_grid_is_refused_in_one_line(
    run: Run, write: Write, tmp_path: Path, grid: str, ask: str, allowed: str
) -> None:
    text = f"{PLAN}noise_multiplier = 1\n"
    text += f"epochs = 1\n[grid]\n{grid}\n[ask]\n{ask}\n"
    status, out, err = run("sweep", write(text), "--out", str(tmp_path / "rows.csv"))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert allowed in err
    assert not list(tmp_path.glob("rows*"))


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_a_sweep_that_is_stopped_leaves_no_workers_and_is_taken_up(
    tmp_path: Path, write: Write, how: str
) -> None:
    text = SMALL.replace("[1, 2]", "{from = 1, to = 3, count = 300}")
    out, journal = tmp_path / "rows.csv", tmp_path / "rows.csv.journal"
    command = [sys.executable, "-m", "hockeystick", "sweep", write(text), "--out", str(out)]
    command += ["--workers", "2", "--json"]
    running = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    )
    deadline = time.monotonic() + 600
    while not journal.exists() or journal.read_bytes().count(b"\n") < 50:
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    if how == "killed":
        running.kill()  # the parent alone: its workers must notice
    else:
        os.killpg(running.pid, signal.SIGINT)
    shown, err = running.communicate(timeout=600)
    while True:
        try:
            os.killpg(running.pid, 0)
        except ProcessLookupError:
            break
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.05)
    kept = journal.read_bytes().count(b"\n") - 1
    if how == "interrupted":
        told = f"interrupted: {kept} of 600 kept in {journal}; run again to go on"
        assert (running.returncode, err) == (130, f"hockeystick: {told}\n".encode())
        assert json.loads(shown)["error"]["message"] == told
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert (answer["rows"], answer["errors"], len(rows_of(out))) == (600, 0, 600)
    assert kept <= answer["resumed"] + 1


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows blocks no signals")
def test_no_interrupt_reaches_a_worker_while_it_imports() -> None:
    mine = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with processes(2) as executor:
        assert executor is not None
        asked = executor.submit(signal.pthread_sigmask, signal.SIG_BLOCK, [])
        assert signal.SIGINT in asked.result()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mine
