"""Runs that are reserved as a whole: one charge, one run, also of the killed, and of forks."""

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.adapters.loop import Account
from hockeystick.errors import BudgetExhausted, IncompatibleError, LedgerError, ParameterError
from hockeystick.ledger import EntryKind, ReservationState, ReservedRun
from hockeystick.ledger.book import is_part
from hockeystick.mechanisms import schedules
from hockeystick.release.counting import first
from hockeystick.release.federated import ClientRounds
from tests.ledger.forks import PLAN, account, awaited, counted, die, forked, killed, outcome, rho

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
ROUNDS = hs.federated.FedSDP(
    noise_multiplier=4, total_clients=4, clients_per_round=4, rounds=8, sampling="poisson"
)


@pytest.fixture
def ledger(folder: Path) -> hs.Ledger:
    return hs.Ledger(folder / "ledger.db", "census", hs.ZCDP(rho=0.5))


def test_all_is_reserved_first_and_what_was_counted_is_committed(
    ledger: hs.Ledger, folder: Path
) -> None:
    run = account(ledger.charging(by="ana", note="the model"), folder / "journal")
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    counted(run, 3).close()
    assert (rho(ledger), ledger.status.unresolved) == (3 / 32, 0)
    reserve, commit = ledger.history()[1:]
    assert (reserve.by, commit.by, commit.note) == ("ana", "ana", "3 of 8 ran")
    assert reserve.note == f"the model [run {run.run}]"
    assert ledger.verify().problems == ()


def test_what_the_budget_of_a_run_does_not_cover_is_not_reserved(
    ledger: hs.Ledger, folder: Path
) -> None:
    few = hs.ApproxDP(hs.epsilon(first(PLAN, 5), 1e-5).upper, 1e-5)
    run = account(ledger, folder / "journal", budget=few)
    assert (run.limit, rho(ledger)) == (5, 5 / 32)
    with pytest.raises(BudgetExhausted):
        counted(run, 6)
    run.close()
    assert rho(ledger) == 5 / 32


PLANS = [
    hs.DPSGD(examples=60, batch_size=6, steps=7, noise_multiplier=2, **more)
    for more in (
        {},
        {"extra": hs.Gaussian(9)},
        {"batch_cap": 9},
        {"sampling": "fixed-size"},
        {"sampling": "with-replacement", "adjacency": "replace-one"},
        {"clipping": "batch"},
        {"schedule": schedules.Values([1, 1, 2, 2, 3, 1, 1])},
        {"schedule": schedules.Linear(2)},
        {"schedule": schedules.Exponential(0.9)},
        {"batch_schedule": schedules.Linear(2)},
    )
] + [
    hs.DPSGD(examples=60, batch_size=12, epochs=3, noise_multiplier=2, **more)
    for more in (
        {"sampling": "shuffle", "adjacency": "zero-out"},
        {"sampling": "random-allocation"},
        {
            "sampling": "random-allocation",
            "schedule": schedules.Piecewise([(5, 1), (5, 2), (5, 1)]),
        },
    )
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan}")
def test_the_first_steps_of_every_plan_are_a_part_of_it(plan: hs.DPSGD) -> None:
    for steps in range(plan.total_steps + 1):
        assert is_part(first(plan, steps), plan)
        assert steps == 0 or not is_part(plan @ first(plan, steps), plan)


_OF_A_RUN = "the run for which 'model' was reserved"
_OF_A_KEY = "on the same ledger by the same key"


@pytest.mark.parametrize(
    ("before", "how", "error", "words"),
    [
        ("as it was", {"journal": None}, ParameterError, _OF_A_RUN),
        ("as it was", {"journal": "other"}, ParameterError, _OF_A_RUN),
        ("without its journal", {}, ParameterError, _OF_A_RUN),
        ("as it was", {"key": "other"}, ParameterError, _OF_A_KEY),
        ("as it was", {"dataset": "other"}, ParameterError, _OF_A_KEY),
        ("committed", {}, IncompatibleError, "was committed before"),
        ("released", {}, IncompatibleError, "was released before"),
    ],
)
def test_what_would_use_one_charge_twice_is_refused(
    ledger: hs.Ledger,
    folder: Path,
    before: str,
    how: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    counted(account(ledger, folder / "journal"), 2).close(final=False)
    if before == "without its journal":
        (folder / "journal").unlink()
    elif before == "committed":
        ledger.reservation("model").commit()
    elif before == "released":
        ledger.reservation("model").release()
    spent, options = ledger.status.spent, {"dataset": "census", "journal": "journal", **how}
    own = hs.Ledger(folder / "ledger.db", options.pop("dataset"), hs.ZCDP(rho=0.5))
    journal = options.pop("journal")
    with pytest.raises(error, match=words):
        account(own, None if journal is None else folder / journal, **options)
    assert ledger.status.spent == spent


def test_a_run_that_the_ledger_has_lost_is_not_charged_afterwards(
    ledger: hs.Ledger, folder: Path
) -> None:
    counted(account(ledger, folder / "journal"), 2).close(final=False)
    ledger.close()
    (folder / "ledger.db").unlink()
    new = hs.Ledger(folder / "ledger.db", "census", hs.ZCDP(rho=0.5))
    with pytest.raises(IncompatibleError, match=r"has 2 steps of 'model', which .* does not have"):
        account(new, folder / "journal")
    assert rho(new) == 0


def test_a_run_without_a_ledger_is_given_none_later(ledger: hs.Ledger, folder: Path) -> None:
    account(ledger, folder / "on it", key="k").close(final=False)
    with pytest.raises(ParameterError, match="on the same ledger by the same key"):
        Account(PLAN, journal=folder / "on it")
    ledger.reservation("k").release()
    counted(Account(PLAN, journal=folder / "journal"), 2).close()
    with pytest.raises(ParameterError, match="on the same ledger by the same key"):
        account(ledger, folder / "journal")
    assert rho(ledger) == 0


def test_a_run_is_gone_on_with_by_key_and_journal_alone(ledger: hs.Ledger, folder: Path) -> None:
    counted(account(ledger, folder / "journal"), 3).close(final=False)
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    again = account(hs.Ledger(folder / "ledger.db", "census"), folder / "journal")
    assert again.counted == 3
    with pytest.raises(BudgetExhausted):
        counted(again, 6)
    again.close()
    assert rho(ledger) == 0.25
    assert [entry.kind for entry in ledger.history()[1:]] == [EntryKind.RESERVE, EntryKind.COMMIT]


def test_one_journal_counts_for_one_process_at_a_time(ledger: hs.Ledger, folder: Path) -> None:
    run = account(ledger, folder / "journal")
    with pytest.raises(ParameterError, match="no other run has open"):
        account(ledger, folder / "journal")
    counted(run, 2).close()
    assert rho(ledger) == 2 / 32


def test_a_ledger_that_is_busy_at_the_end_is_told_later(
    ledger: hs.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = counted(account(ledger, folder / "journal"), 3)
    with monkeypatch.context() as patched:

        def busy(*_: Any, **__: Any) -> None:
            raise LedgerError("busy")

        patched.setattr(hs.ledger.Reservation, "commit", busy)
        with pytest.raises(LedgerError):
            run.close()
    with pytest.raises(IncompatibleError, match="closed"):
        run.count()
    with pytest.raises(ParameterError, match="no other run has open"):
        account(ledger, folder / "journal")
    run.close()
    assert rho(ledger) == 3 / 32


def test_the_first_close_decides(ledger: hs.Ledger, folder: Path) -> None:
    """Who has left a run to others commits nothing: they may have counted more."""
    left = counted(account(ledger, folder / "journal"), 1)
    left.close(final=False)
    again = counted(account(ledger, folder / "journal"), 4)
    left.close()
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    again.close()
    again.close(final=False)
    again.close()
    assert rho(ledger) == 5 / 32


EPOCHS = hs.DPSGD(
    examples=60, batch_size=12, epochs=3, noise_multiplier=2, sampling="random-allocation"
)


def _count(plan: hs.DPSGD, run: ReservedRun) -> Callable[[], object]:
    return Account(plan, journal=run).count


@pytest.mark.parametrize(
    ("opened", "runs", "error"),
    [
        (lambda run: _count(PLAN, run), 3, BudgetExhausted),
        (lambda run: _count(EPOCHS, run), 5, BudgetExhausted),
        (lambda run: ClientRounds(ROUNDS, 2, 1.0, journal=run).draw, 3, IncompatibleError),
        (
            lambda run: partial(run.open("", hs.Gaussian(4.0).__pow__, 8).add, 1),
            3,
            IncompatibleError,
        ),
    ],
)
def test_no_more_runs_than_is_reserved(
    ledger: hs.Ledger,
    opened: Callable[[ReservedRun], Callable[[], object]],
    runs: int,
    error: type[Exception],
) -> None:
    count = opened(ReservedRun(ledger, "k", most=3))
    for _ in range(runs):
        count()
    with pytest.raises(error):
        count()


@pytest.mark.parametrize(
    ("arguments", "options", "name"),
    [
        ((None, "k"), {}, "ledger"),
        ((hs.Accountant(), "k"), {}, "ledger"),
        (("given", ""), {}, "key"),
        (("given", "k", 3), {}, "journal"),
        (("given", "k"), {"most": 2.5}, "most"),
    ],
)
def test_what_is_no_such_argument_is_named(
    ledger: hs.Ledger, arguments: tuple[Any, ...], options: dict[str, Any], name: str
) -> None:
    given: list[Any] = [ledger if one == "given" else one for one in arguments]
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        ReservedRun(*given, **options)


def _alone(work: Callable[[], object]) -> Callable[[], object]:
    return lambda: (signal.alarm(3), work())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize(("name", "status"), [("count", 1), ("close", 0), ("load", 1)])
def test_a_fork_waits_for_no_lock_that_it_took_along(name: str, status: int) -> None:
    run = Account(PLAN)
    works: dict[str, Callable[[], object]] = {
        "count": run.count,
        "close": run.close,
        "load": lambda: run.load(run.state()),
    }
    with run._lock:
        assert outcome(_alone(works[name])) == status


def test_another_process_neither_counts_nor_commits(
    ledger: hs.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ReservedRun(ledger, "k").open("", hs.Gaussian(4.0).__pow__, 8)
    monkeypatch.setattr(os, "getpid", lambda: 0)
    for asked in (partial(run.add, 1), run.finish):
        with pytest.raises(IncompatibleError, match="was forked from"):
            asked()


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
