"""Reserved runs that are killed, forked, and begun by several processes at once."""

import os
import random
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.ledger import ReservationState
from tests.ledger.forks import account, awaited, counted, die, forked, killed, rho

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


@pytest.fixture
def ledger(folder: Path) -> hs.Ledger:
    return hs.Ledger(folder / "ledger.db", "census", hs.ZCDP(rho=0.5))


@POSIX
def test_of_processes_with_one_key_one_trains(ledger: hs.Ledger, folder: Path) -> None:
    """Each with a journal of its own, all at once: a single one is let in."""

    def train() -> None:
        own = hs.Ledger(folder / "ledger.db", "census")
        counted(account(own, folder / f"journal {os.getpid()}"), 4).close(final=False)

    children = [forked(train) for _ in range(6)]
    assert sorted(map(awaited, children)) == [0, 1, 1, 1, 1, 1]
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)


@POSIX
@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("before", [True, False], ids=["before it is counted", "after"])
def test_whoever_is_killed_leaves_all_counted_and_is_gone_on_with(
    ledger: hs.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch, steps: int, before: bool
) -> None:
    def dying() -> None:
        run = counted(account(hs.Ledger(folder / "ledger.db", "census"), folder / "j"), steps)
        if not before:
            run.count()
        die()

    killed(dying)
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    run = account(ledger, folder / "j")
    assert run.counted == steps + (not before)
    counted(run, 1).close()
    assert rho(ledger) == (steps + (not before) + 1) / 32


@POSIX
@pytest.mark.parametrize("name", ["begin", "end"])
def test_a_kill_around_the_commit_leaves_all_or_what_ran(
    ledger: hs.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    commit = hs.ledger.Reservation.commit

    def dying(*arguments: Any, **options: Any) -> None:
        if name == "end":
            commit(*arguments, **options)
        die()

    with monkeypatch.context() as patched:
        patched.setattr(hs.ledger.Reservation, "commit", dying)
        killed(lambda: counted(account(ledger, folder / "j"), 3).close())
    assert rho(ledger) == (0.25 if name == "begin" else 3 / 32)
    if name == "end":
        with pytest.raises(IncompatibleError, match="was committed before"):
            account(ledger, folder / "j")
    else:
        counted(account(ledger, folder / "j"), 1).close()
        assert rho(ledger) == 4 / 32


@POSIX
def test_kills_at_any_time_never_leave_less_than_was_released(
    ledger: hs.Ledger, folder: Path
) -> None:
    """Runs of 8 steps are killed and gone on with until they end; each release writes a byte."""
    chance = random.Random(1)

    def train(key: str) -> None:
        own = hs.Ledger(folder / "ledger.db", "census")
        run = account(own, folder / f"{key}.journal", key=key)
        with (folder / f"{key}.released").open("ab", buffering=0) as released:
            while run.counted < run.limit:
                run.count()
                released.write(b"r")
                time.sleep(0.02)
        run.close()

    kills = 0
    for key in ("a", "b"):
        longest = 0.02
        while _state(ledger, key) is not ReservationState.COMMITTED:
            child = forked(partial(train, key))
            time.sleep(chance.uniform(0, longest))
            longest *= 1.2  # so that a machine that has much else to do ends it as well
            os.kill(child, signal.SIGKILL)
            kills += awaited(child) == -signal.SIGKILL
            written = folder / f"{key}.released"
            assert not written.exists() or written.stat().st_size <= 8
            assert _state(ledger, key) is not None or not written.exists()
    assert kills >= 2
    assert rho(ledger) == 0.5
    assert [entry.kind for entry in ledger.history()[1:]] == ["reserve", "commit"] * 2
    assert ledger.verify().problems == ()


def _state(ledger: hs.Ledger, key: str) -> ReservationState | None:
    try:
        return ledger.reservation(key).state
    except ParameterError:
        return None


def test_a_step_that_is_being_counted_as_the_run_ends_is_committed(
    ledger: hs.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = account(ledger, folder / "journal")
    writing, go_on = threading.Event(), threading.Event()
    add = hs.ledger.CountedRun.add

    def slow(self: Any, steps: int) -> None:
        writing.set()
        assert go_on.wait(10)
        add(self, steps)

    monkeypatch.setattr(hs.ledger.CountedRun, "add", slow)
    counting = threading.Thread(target=run.count)
    closing = threading.Thread(target=run.close)
    counting.start()
    assert writing.wait(10)
    closing.start()
    closing.join(0.2)
    go_on.set()
    counting.join(10)
    closing.join(10)
    assert run.counted == 1
    assert rho(ledger) == 1 / 32
    with pytest.raises(IncompatibleError, match="closed"):
        run.count()
