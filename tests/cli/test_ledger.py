"""The commands `ledger ...`: what they print, what they charge, and how they end."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.cli.options import LEDGER
from hockeystick.ledger import Ledger
from tests.cli.conftest import Run, Write

# rho 1/4: two of them are the whole budget.
QUARTER = hs.Gaussian(2.0) ** 2
PLAN = "Gaussian(2)**2"
TRAINING = "[dpsgd]\nrate = 0.01\nsteps = 1000\nnoise_multiplier = 1.0\n"
RESERVE = ("ledger", "reserve", "census", PLAN, "--key", "k")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the ledger is, which the environment says."""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv(LEDGER, str(path))
    return path


@pytest.fixture
def opened(run: Run, file: Path) -> Path:
    assert run("ledger", "init", "census", "--budget", "ZCDP(rho=0.5)")[0] == 0
    return file


def words(out: str) -> str:
    return " ".join(out.split())


def test_all_terms_reach_the_ledger(run: Run, write: Write, file: Path) -> None:
    budget = ("--budget", "ApproxDP(epsilon=4, delta=1e-6)")
    whole = ("--expected", write(TRAINING), "--adjacency", "zero-out")
    assert run("ledger", "init", "images", *budget, *whole)[0] == 0
    assert run("ledger", "init", "images/team", *budget, "--within", "images")[0] == 0
    images, team = (hs.Ledger(file, name)._book.terms(name) for name in ("images", "images/team"))
    assert images.order is not None
    assert (team.within, str(team.adjacency)) == ("images", "zero-out")
    assert f"kept at Renyi order {images.order:g}" in words(run("ledger", "status", "images")[1])


def test_the_key_is_printed_once_the_charge_is_on_the_disk(run: Run, opened: Path) -> None:
    status, out, err = run("ledger", "reserve", "census", PLAN, "--note", "Q3")
    assert (status, err) == (0, "")
    (entry,) = hs.Ledger(opened, "census").history()[1:]
    assert (entry.key, entry.note, entry.mechanism) == (out.strip(), "Q3", QUARTER)
    status, out, _ = run(*RESERVE, "--json")
    told = json.loads(out)
    assert (status, told["key"], told["state"], told["resumed"]) == (0, "k", "reserved", False)
    assert told["mechanism"] == hs.calibration.describe(QUARTER)


@pytest.mark.parametrize("resolved", ["", "commit", "release"])
def test_a_key_is_charged_once_and_no_leave_to_run_once_it_is_resolved(
    run: Run, opened: Path, resolved: str
) -> None:
    assert run(*RESERVE) == (0, "k\n", "")
    if resolved:
        assert run("ledger", resolved, "census", "k")[0] == 0
    status, out, err = run(*RESERVE)
    assert (status, out) == (2, "")
    assert ("is no leave to run" if resolved else "that was not reserved before") in err
    status, out, err = run(*RESERVE, "--resume")
    if resolved:
        assert (status, out, "is no leave to run" in err) == (2, "", True)
    else:
        said = "hockeystick: 'k' was reserved before: charged once\n"
        assert (status, out, err) == (0, "k\n", said)
    left = hs.ZCDP(rho=0.5 if resolved == "release" else 0.25)
    assert hs.Ledger(opened, "census").remaining == left


def test_what_no_budget_covers_ends_with_status_4(run: Run, opened: Path) -> None:
    for key in ("a", "b"):
        run(*RESERVE[:-1], key)
    status, out, err = run(*RESERVE)
    assert (status, out, len(err.splitlines())) == (4, "", 1)
    assert "the budget does not cover Gaussian (noise multiplier 2) x 2 on 'census'" in err
    assert [one.kind for one in hs.Ledger(opened, "census").history()[-2:]] == ["reserve", "refuse"]


def test_a_part_is_committed_by_the_flags_of_a_plan(run: Run, write: Write, file: Path) -> None:
    training = write(TRAINING)
    run("ledger", "init", "images", "--budget", "ApproxDP(8, 1e-5)", "--expected", training)
    run("ledger", "reserve", "images", training, "--key", "run")
    full = hs.Ledger(file, "images").history()[-1].costs[0]
    done = run("ledger", "commit", "images", "run", training, "steps=400", "--note", "early")
    assert done == (0, "run: committed\n", "")
    last = hs.Ledger(file, "images").history()[-1]
    assert (last.costs[0], last.note) == (full * 400 / 1000, "early")


def test_several_datasets_are_charged_together_and_their_status_is_exact(
    run: Run, opened: Path
) -> None:
    run("ledger", "init", "2026-02", "--budget", "ZCDP(rho=0.3)")
    run(*RESERVE, "--also", "2026-02")
    told = json.loads(run("ledger", "status", "--json")[1])["datasets"]
    read = hs.calibration.read_description
    for one, name in zip(told, ("2026-02", "census"), strict=True):
        status = hs.Ledger(opened, name).status
        for amount in ("budget", "spent", "remaining"):
            assert read(one[amount]) == getattr(status, amount)
        assert (one["head"], one["unresolved"], one["entries"]) == (status.head, 1, 2)


def test_a_damaged_ledger_ends_with_status_1(run: Run, opened: Path) -> None:
    run(*RESERVE)
    status, out, err = run("ledger", "verify")
    assert (status, err, words(out)[:13]) == (0, "", "census sound ")
    with closing(sqlite3.connect(opened)) as connection:
        connection.execute("UPDATE hockeystick_entries SET note = 'another' WHERE seq = 1")
        connection.commit()
    status, out, _ = run("ledger", "verify", "census")
    assert (status, words(out)[:17]) == (1, "census not sound ")
    assert "entry 1: it was changed: its hash is another one" in words(out)
    status, out, _ = run("ledger", "verify", "--json")
    assert (status, json.loads(out)["datasets"][0]["sound"]) == (1, False)


def test_heads_that_were_noted_show_what_was_taken_away(
    run: Run, opened: Path, tmp_path: Path
) -> None:
    before = opened.read_bytes()
    run(*RESERVE)
    noted = tmp_path / "heads.json"
    noted.write_text(run("ledger", "status", "--json")[1], encoding="utf-8")
    head = hs.Ledger(opened, "census").status.head
    heads = (("--head", str(noted)), ("census", "--head", head))
    assert [run("ledger", "verify", *one)[0] for one in heads] == [0, 0]
    opened.write_bytes(before)
    assert run("ledger", "verify")[0] == 0, "an old copy is a chain of its own"
    for asked in heads:
        status, out, _ = run("ledger", "verify", *asked)
        assert status == 1
        assert f"the head that was noted, {head}, is not in the chain" in words(out)
    told = json.loads(noted.read_text(encoding="utf-8"))
    told["datasets"] = [{**told["datasets"][0], "dataset": "lost"}]
    noted.write_text(json.dumps(told), encoding="utf-8")
    status, out, _ = run("ledger", "verify", "--head", str(noted))
    assert (status, "lost not sound" in words(out)) == (1, True)


def test_what_reads_writes_nothing(run: Run, opened: Path) -> None:
    run(*RESERVE)
    before = opened.read_bytes()
    os.chmod(opened, 0o400)
    for asked in ("status", "verify"):
        assert run("ledger", asked)[0] == 0
    entries = json.loads(run("ledger", "log", "census", "--json")[1])["entries"]
    head = hs.Ledger(opened, "census", read_only=True).status.head
    assert f"{len(entries)}:{entries[-1]['hash']}" == head
    assert opened.read_bytes() == before


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_says_under_which_key_something_may_be_reserved(
    run: Run, opened: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    own = Ledger.reserve

    def interrupted(self: Ledger, *given: Any, **asked: Any) -> Any:
        if when == "after":
            own(self, *given, **asked)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "reserve", interrupted)
        status, out, err = run(*RESERVE[:-2], "--json")
    error = json.loads(out)["error"]
    key = error["message"].split("'")[1]
    assert (status, err) == (130, f"hockeystick: {error['message']}\n")
    assert error["message"].startswith(f"interrupted; {key!r} may be reserved: ask again")
    assert len(hs.Ledger(opened, "census").history()) == (2 if when == "after" else 1)
    assert run(*RESERVE[:-1], key, "--resume")[:2] == (0, f"{key}\n")
    assert hs.Ledger(opened, "census").remaining == hs.ZCDP(rho=0.25), "charged once"


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_ctrl_c_ends_what_waits_for_another(opened: Path) -> None:
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from hockeystick.cli import main; import threading;"
        "threading.Timer(1.0, signal.raise_signal, [signal.SIGINT]).start();"
        "sys.exit(main(sys.argv[1:]))"
    )
    with closing(sqlite3.connect(opened, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        done = subprocess.run(
            [sys.executable, "-c", script, *RESERVE],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        holder.execute("ROLLBACK")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-1] == "hockeystick: interrupted"
    assert hs.Ledger(opened, "census").status.entries == 1
