"""Processes that reserve, commit, release and are killed, all on one ledger.

``python -m tests.ledger.stress URL FOLDER`` forks workers. Each writes a line to its own log
in the folder once the ledger has acknowledged something: ``reserved DATASET KEY`` before anything
is released, ``ran ...`` once something was, ``committed ...`` and ``released ...``. Workers are
killed at random moments, also while they write, and forked again until all operations are done.
Prints how many there were of each, as JSON.
"""

import argparse
import json
import math
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Final

import hockeystick as hs

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


def live(url: str, folder: Path, name: str, *, operations: range, seed: str) -> None:
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


def forked(url: str, folder: Path, name: str, *, operations: range, seed: str) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            live(url, folder, name, operations=operations, seed=seed)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    return pid


def run(given: argparse.Namespace) -> None:
    """Keep workers at it until all operations are done, and kill some of them on the way."""
    url, folder, kills = given.url, given.folder, given.kills
    draw, lives = random.Random(given.seed), Counter[str]()
    working: dict[int, tuple[str, float]] = {}
    pending = [f"w{index}" for index in range(given.processes)]
    while pending or working:
        for name in pending:
            # What a worker was killed in stays as it is: perhaps reserved, and then counted.
            left = range(done(folder, name) + (lives[name] > 0), given.operations)
            lives[name] += 1
            seed = f"{given.seed} {name} {lives[name]}"
            pid = forked(url, folder, name, operations=left, seed=seed)
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


def counted(folder: Path) -> Counter[str]:
    """Return how many lines of each word the logs have."""
    words = Counter[str]()
    for log in folder.iterdir():
        words.update(line.split()[0] for line in log.read_text().splitlines())
    return words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--operations", type=int, default=2000, help="of each process")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--life", type=float, default=2.0, help="mean seconds until a kill")
    parser.add_argument("--budget", type=float, default=200.0, help="the rho of the whole")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    url, whole = given.url, given.budget
    hs.Ledger(url, "whole", hs.ZCDP(rho=whole))
    hs.Ledger(url, "cap", hs.ZCDP(rho=whole / 4), within="whole")
    hs.Ledger(url, "block", hs.ZCDP(rho=whole / 2))
    began = time.perf_counter()
    run(given)
    seconds = round(time.perf_counter() - began, 1)
    words = counted(given.folder)
    sys.stdout.write(json.dumps({**words, "seconds": seconds}))


if __name__ == "__main__":
    main()
