"""Processes, kills and power cuts: never above the budget, nothing acknowledged is lost."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

import hockeystick as hs
from tests.ledger import auditor, postgres

_NUMBERS: Final = count()
AUDITOR: Final = Path(auditor.__file__)


def command(url: str, logs: Path, **options: float) -> list[str]:
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "tests.ledger.stress", url, str(logs), *flags]


def stressed(url: str, folder: Path, **options: float) -> dict[str, Any]:
    """Let processes work on a ledger, audit it, and return what was done."""
    logs = folder / "logs"
    logs.mkdir()
    done = subprocess.run(
        command(url, logs, **options), capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert wrong_with(url, logs) == []
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def wrong_with(url: str, logs: Path) -> list[str]:
    """Return what a program that knows nothing of the package finds wrong."""
    audited = subprocess.run(
        [sys.executable, str(AUDITOR), url], capture_output=True, text=True, check=False
    )
    assert audited.returncode == 0, audited.stderr
    found = json.loads(audited.stdout)
    wrong: list[str] = found["wrong"]
    allowed = {"reserved": {"reserve", "commit", "release"}, "ran": {"reserve", "commit"}}
    allowed |= {"committed": {"commit"}, "released": {"release"}}
    for log in logs.iterdir():
        # A kill or a power cut may leave the last line unfinished.
        for line in log.read_text().splitlines(keepends=True):
            word, *where = line.split()
            if not line.endswith("\n") or word not in allowed:
                continue
            last = found["datasets"][where[0]]["last"].get(where[1])
            if last not in allowed[word]:
                wrong.append(f"{log.name} has {line}, the ledger {last}")
    return wrong


def test_eight_processes_that_are_killed_never_overspend(folder: Path) -> None:
    done = stressed(str(folder / "l.db"), folder, operations=100, life=0.5, kills=40, budget=5.0)
    assert done["refused"] > 20


@pytest.mark.extras
def test_eight_processes_never_overspend_on_a_server(server: postgres.Server, folder: Path) -> None:
    url = server.new_database(f"stress-{next(_NUMBERS)}")
    done = stressed(url, folder, operations=60, life=1.0, kills=20, budget=3.0)
    assert done["refused"] > 20


@contextmanager
def stopped(group: int) -> Iterator[None]:
    """Stop all processes of a group where they are, and let them go on later."""
    os.killpg(group, signal.SIGSTOP)
    try:
        until = time.monotonic() + 600
        while not all(state in "TZ" for state in states(group)):
            assert time.monotonic() < until
            time.sleep(0.001)
        yield
    finally:
        os.killpg(group, signal.SIGCONT)


def states(group: int) -> list[str]:
    """Return what the processes of a group do, as Linux tells it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group:
            found.append(fields[0])
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads states of processes as Linux tells them")
@pytest.mark.parametrize("cuts", [5, 40])
def test_copies_at_random_moments_have_all_that_was_acknowledged(folder: Path, cuts: int) -> None:
    draw, live = random.Random(cuts), folder / "live"
    (live / "logs").mkdir(parents=True)
    file = live / "l.db"
    options = {"processes": 2, "operations": 100_000, "kills": 0, "budget": 1e6}
    program = command(str(file), live / "logs", **options)
    with subprocess.Popen(program, start_new_session=True) as runs:
        try:
            while not any((live / "logs").iterdir()):
                assert runs.poll() is None
                time.sleep(0.01)
            for cut in range(cuts):
                time.sleep(draw.uniform(0.0, 0.1))
                with stopped(runs.pid):
                    shutil.copytree(live, folder / f"cut{cut}")
        finally:
            os.killpg(runs.pid, signal.SIGKILL)
    journals = 0
    for cut in range(cuts):
        copy = folder / f"cut{cut}"
        journals += (copy / "l.db-journal").exists()
        assert all(hs.Ledger(copy / "l.db", name).verify().sound for name in ("whole", "cap"))
        assert wrong_with(str(copy / "l.db"), copy / "logs") == []
    assert journals or cuts < 40


@pytest.mark.extras
def test_a_server_that_crashes_has_all_that_was_acknowledged(folder: Path) -> None:
    if reason := postgres.missing():
        pytest.skip(reason)
    with postgres.server() as server:
        ledger = hs.Ledger(server.new_database("crash"), "d", hs.ZCDP(rho=0.5))
        ledger.reserve(hs.Gaussian(2.0), key="before")
        head = ledger.status.head
        server.stop("immediate")
        with pytest.raises(hs.errors.LedgerError, match="cannot be used now"):
            ledger.reserve(hs.Gaussian(2.0), key="during")
        server.start()
        assert hs.Ledger(server.url("crash"), "d").verify(head=head).sound
        held = ledger.reserve(hs.Gaussian(2.0), key="before", resume=True)
        assert held.resumed
        assert ledger.remaining == hs.ZCDP(rho=0.375)
        ledger.close()
