"""Processes, kills and power cuts: never above the budget, nothing acknowledged is lost.

``python -m tests.ledger.test_crashes URL FOLDER`` forks workers on one ledger. Each writes a line
to a log of its own once the ledger has acknowledged something: ``reserved DATASET KEY`` before
anything is released, ``ran ...`` once something was, ``committed ...`` and ``released ...``.
Workers are killed at random moments, also while they write, and forked again until all is done.
Prints how many lines there are of each word, as JSON.
"""

import argparse
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

import hockeystick as hs
from tests.ledger import auditor, postgres
from tests.ledger.forks import forked

NOISE: Final = (5.0, 3.0, 7.7, 12.25)


class Worker:
    """One life of a process that works on a ledger."""

    def __init__(self, url: str, folder: Path, name: str, seed: str) -> None:
        self.log = os.open(folder / name, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self.draw = random.Random(seed)
        self.name = name
        self.ledgers = [hs.Ledger(url, one) for one in ("whole", "cap", "block")]

    def note(self, word: str, what: str = "") -> None:
        """Write a line that stays when the process is killed."""
        os.write(self.log, f"{word} {what}\n".encode())

    def operate(self, number: int) -> None:
        """Reserve something, let it run or not, and resolve it or not."""
        own = self.draw.random() < 0.8
        key = f"{self.name}-{number}" if own else f"any-{number}"
        mechanism = hs.Gaussian(NOISE[number % len(NOISE)]) ** (1 + number % 5)
        ledger = self.draw.choice(self.ledgers)
        also = ("block",) if self.draw.random() < 0.2 else ()
        try:
            held = ledger.reserve(mechanism, key=key, by=self.name, also=also, resume=True)
        except hs.errors.BudgetExhausted:
            self.note("refused")
            return
        except (hs.errors.ParameterError, hs.errors.IncompatibleError):
            self.note("taken")
            return
        where = f"{ledger.dataset} {key}"
        self.note("reserved", where)
        if held.resumed:
            return
        self.resolve(held, mechanism, where)

    def resolve(self, held: hs.ledger.Reservation, mechanism: hs.Mechanism, where: str) -> None:
        """Commit all or a part of what is reserved, release it, or leave it open."""
        choice = self.draw.random()
        if choice < 0.35:
            self.note("ran", where)
            held.commit()
            self.note("committed", where)
        elif choice < 0.5:
            assert isinstance(mechanism, hs.Repeated)
            self.note("ran", where)
            held.commit(ran=mechanism.inner ** self.draw.randrange(1, mechanism.count + 1))
            self.note("committed", where)
        elif choice < 0.9:
            held.release()
            self.note("released", where)


def live(url: str, folder: Path, name: str, operations: range, seed: str) -> None:
    worker = Worker(url, folder, name, seed)
    for number in operations:
        worker.operate(number)
        worker.note("done", str(number))


def done(folder: Path, name: str) -> int:
    """Return how many operations a worker has ended, or been killed in before the last one."""
    log = folder / name
    lines = log.read_text().splitlines() if log.exists() else []
    ends = [int(line.split()[1]) for line in lines if line.startswith("done ")]
    return max(ends, default=-1) + 1


def run(given: argparse.Namespace) -> None:
    """Keep workers at it until all operations are done, and kill some of them on the way."""
    url, folder, kills = given.url, given.folder, given.kills
    draw, lives = random.Random(1), Counter[str]()
    working: dict[int, tuple[str, float]] = {}
    pending = [f"w{index}" for index in range(given.processes)]
    while pending or working:
        for name in pending:
            # What a worker was killed in stays as it is: perhaps reserved, and then counted.
            left = range(done(folder, name) + (lives[name] > 0), given.operations)
            lives[name] += 1
            pid = forked(partial(live, url, folder, name, left, f"{name} {lives[name]}"))
            working[pid] = name, time.monotonic() + draw.expovariate(1 / given.life)
        pending = []
        due = [pid for pid, (_, end) in working.items() if end < time.monotonic()][:kills]
        for pid in due:
            os.kill(pid, signal.SIGKILL)
            working[pid] = working[pid][0], math.inf
        kills -= len(due)
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            time.sleep(0.001)
            continue
        name, _ = working.pop(pid)
        if os.WIFSIGNALED(status):
            pending = [name]
        elif status:
            raise SystemExit(f"{name} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--operations", type=int, default=2000, help="of each process")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--life", type=float, default=2.0, help="mean seconds until a kill")
    parser.add_argument("--budget", type=float, default=200.0, help="the rho of the whole")
    given = parser.parse_args()
    url, whole = given.url, given.budget
    hs.Ledger(url, "whole", hs.ZCDP(rho=whole))
    hs.Ledger(url, "cap", hs.ZCDP(rho=whole / 4), within="whole")
    hs.Ledger(url, "block", hs.ZCDP(rho=whole / 2))
    run(given)
    logs = (log.read_text().splitlines() for log in given.folder.iterdir())
    sys.stdout.write(json.dumps(Counter(line.split()[0] for lines in logs for line in lines)))


AUDITOR: Final = Path(auditor.__file__)


def command(url: str, logs: Path, **options: float) -> list[str]:
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "tests.ledger.test_crashes", url, str(logs), *flags]


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
    url = server.new_database("stress")
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


if __name__ == "__main__":
    main()
