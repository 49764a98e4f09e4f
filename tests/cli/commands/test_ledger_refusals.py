"""How the commands `ledger ...` end where they cannot do what they are asked: one line, no harm."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.ledger import Ledger

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("status lost", "dataset must be one of this ledger: 'census'"),
        ("init x", "Missing option '--budget'"),
        ("reserve census", "Give a plan file, a plan as"),
        ("reserve census nowhere.toml", "no such file"),
        ("commit census lost", "key must be that of a reservation"),
        ("verify --head 1:2", "head must be a head that was noted, or a file"),
        ("verify census --head 1:2", "head must be a head as status has it"),
        ("verify --head nowhere.json", "a file that ledger status --json printed; got 'nowhere"),
        ("status --delta 1e-6 --delta 1e-7", "--delta is given twice"),
        ("status --ledger ''", "Missing --ledger"),
        ("status --ledger nowhere.db", "there is no ledger at"),
        ("status --ledger mysql://u:secret@h/d", "url must be the path of a file"),
        ("spend census", "No such command 'spend'"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(
    run: Run, opened: Path, arguments: str, told: str
) -> None:
    status, out, err = run("ledger", *(one.strip("'") for one in arguments.split()))
    assert (status, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1
    assert "secret" not in err


def test_what_reads_writes_nothing(run: Run, plan: str, opened: Path) -> None:
    run("ledger", "reserve", "census", plan, "--key", "k")
    before = opened.read_bytes()
    os.chmod(opened, 0o400)
    for asked in ("status", "log census", "verify"):
        assert run("ledger", *asked.split())[0] == 0
    assert opened.read_bytes() == before


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_says_under_which_key_something_may_be_reserved(
    run: Run, plan: str, opened: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    own = Ledger.reserve

    def interrupted(self: Ledger, *given: Any, **asked: Any) -> Any:
        if when == "after":
            own(self, *given, **asked)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "reserve", interrupted)
        status, out, err = run("ledger", "reserve", "census", plan)
    (told,) = err.splitlines()
    key = told.split("'")[1]
    assert (status, out) == (130, "")
    assert told.startswith(f"hockeystick: interrupted; {key!r} may be reserved: ask again")
    assert len(hs.Ledger(opened, "census").history()) == (2 if when == "after" else 1)
    again = run("ledger", "reserve", "census", plan, "--key", key, "--resume")
    assert again[:2] == (0, f"{key}\n")
    assert hs.Ledger(opened, "census").remaining == hs.ZCDP(rho=0.25), "charged once"


def test_programs_are_told_once_what_may_be_reserved_and_what_was(
    run: Run, plan: str, opened: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    asked = "ledger", "reserve", "census", plan, "--key", "k", "--resume", "--json"
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "reserve", interrupted)
        status, out, err = run(*asked)
    error = json.loads(out)["error"]
    assert (status, err) == (130, f"hockeystick: {error['message']}\n")
    assert "'k' may be reserved" in error["message"]
    for resumed in (False, True):
        status, out, err = run(*asked)
        assert (status, err, json.loads(out)["resumed"]) == (0, "", resumed)


@pytest.fixture
def holder(opened: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(opened, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield connection


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_ctrl_c_ends_what_waits_for_another(holder: Any, plan: str, opened: Path) -> None:
    asked = ["ledger", "reserve", "census", plan]
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from hockeystick.cli import main; import threading;"
        "threading.Timer(1.0, signal.raise_signal, [signal.SIGINT]).start();"
        "sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *asked],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == "hockeystick: interrupted"
    holder.execute("ROLLBACK")
    assert hs.Ledger(opened, "census").status.entries == 1
