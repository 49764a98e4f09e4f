"""Ledgers: what is charged, what is refused, what is given back, on both databases."""

import copy
import math
import os
import pickle
import signal
import socket
import sys
import threading
import time
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.calibration.session.runs import EVALUATING
from hockeystick.ledger import EntryKind, ReservationState
from hockeystick.ledger.database import Database
from tests.ledger import postgres
from tests.ledger.forks import outcome

HALF = hs.ZCDP(rho=0.5)
STEP = hs.Gaussian(2.0)  # rho 1/8


@pytest.fixture
def ledger(url: str) -> hs.Ledger:
    return hs.Ledger(url, "census", HALF)


def reserved(ledger: hs.Ledger, *keys: str) -> list[hs.ledger.Reservation]:
    return [ledger.reserve(STEP, key=key, by="ana") for key in keys]


def test_what_is_reserved_counts_before_it_runs(ledger: hs.Ledger) -> None:
    ledger.reserve(STEP**3, key="means", by="ana", note="Q3")
    assert ledger.remaining == hs.ZCDP(rho=0.125)
    assert ledger.status.spent == hs.ZCDP(rho=0.375)
    assert ledger.status.unresolved == 1
    opened, entry = ledger.history()
    assert (opened.kind, entry.kind) == (EntryKind.OPEN, EntryKind.RESERVE)
    assert (entry.key, entry.by, entry.note, entry.mechanism) == ("means", "ana", "Q3", STEP**3)
    assert (entry.costs, entry.total) == ((Fraction(3, 8),), (Fraction(3, 8),))


def test_nothing_is_charged_beyond_the_budget_and_all_of_it_can_be(ledger: hs.Ledger) -> None:
    reserved(ledger, "a", "b", "c", "d")
    with pytest.raises(hs.errors.BudgetExhausted, match="on 'census'") as caught:
        ledger.reserve(hs.Gaussian(1e9), key="e")
    assert caught.value.left == hs.ZCDP(rho=0)
    assert caught.value.spent == HALF
    assert len(ledger.history()) == 5
    ledger.reserve(hs.PureDP(0), key="costs nothing")


def test_ten_tenths_are_one_whatever_their_order(url: str) -> None:
    ledger = hs.Ledger(url, "tenths", hs.PureDP(1.0))
    for index in range(10):
        ledger.reserve(hs.PureDP(0.1), key=str(index))
    assert ledger.remaining == hs.PureDP(0)
    assert ledger.history()[-1].total == (Fraction(1),)


def test_the_same_key_is_the_same_reservation_once_it_is_resumed(ledger: hs.Ledger) -> None:
    first = ledger.reserve(STEP, key="run 7", by="ana", resume=True)
    again = ledger.reserve(STEP, key="run 7", by="bea", resume=True)
    assert (first.resumed, again.resumed) == (False, True)
    assert len(ledger.history()) == 2
    for resume in (False, True):
        with pytest.raises(hs.errors.ParameterError, match="stands for Gaussian"):
            ledger.reserve(STEP**2, key="run 7", resume=resume)
    assert ledger.remaining == hs.ZCDP(rho=0.375)


def test_a_job_started_again_has_no_leave_to_release_on_the_same_charge(
    ledger: hs.Ledger, url: str
) -> None:
    released = []

    def job(**how: Any) -> None:
        hs.Ledger(url, "census").reserve(STEP, key="job", **how)
        released.append(STEP)  # and is killed before it commits

    job()
    with pytest.raises(hs.errors.ParameterError, match=r"^key must be one that was not reserved"):
        job()
    with pytest.raises(hs.errors.ParameterError, match=r"^key must be one that was not reserved"):
        ledger.charging().reserve(STEP, key="job", told="")
    assert (released, ledger.remaining) == ([STEP], hs.ZCDP(rho=0.375))
    job(resume=True)
    assert ledger.remaining == hs.ZCDP(rho=0.375)


def test_without_keys_each_call_is_charged(ledger: hs.Ledger) -> None:
    assert ledger.reserve(STEP).key != ledger.reserve(STEP).key
    assert ledger.remaining == hs.ZCDP(rho=0.25)


def test_a_key_of_other_datasets_is_refused(url: str) -> None:
    first = hs.Ledger(url, "first", HALF)
    hs.Ledger(url, "second", HALF)
    first.reserve(STEP, key="k")
    with pytest.raises(hs.errors.ParameterError, match="other datasets"):
        first.reserve(STEP, key="k", also=["second"])


def test_a_block_that_ends_commits_and_one_that_fails_stays_counted(ledger: hs.Ledger) -> None:
    with ledger.reserve(STEP, key="ends"):
        pass
    with pytest.raises(ZeroDivisionError), ledger.reserve(STEP, key="fails"):
        _ = 1 / 0
    assert ledger.reservation("ends").state is ReservationState.COMMITTED
    assert ledger.reservation("fails").state is ReservationState.RESERVED
    assert ledger.remaining == hs.ZCDP(rho=0.25)
    assert ledger.status.unresolved == 1
    ledger.reservation("fails", by="bea").release(note="it had not begun")
    assert ledger.remaining == hs.ZCDP(rho=0.375)
    assert (ledger.history()[-1].by, ledger.history()[-1].note) == ("bea", "it had not begun")


def test_of_what_stops_early_only_what_ran_counts(ledger: hs.Ledger) -> None:
    plan = STEP**2 @ hs.Laplace(2.0)
    with ledger.reserve(plan, key="early") as held:
        held.commit(ran=STEP)
    assert ledger.remaining == hs.ZCDP(rho=0.375)
    assert ledger.reservation("early").state is ReservationState.COMMITTED
    assert ledger.history()[-1].mechanism == STEP


def test_fewer_steps_of_a_training_run_are_a_part_of_it(url: str) -> None:
    budget = hs.ApproxDP(8.0, 1e-5)
    plan = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1.0)
    ledger = hs.Ledger(url, "images", budget, expected=plan)
    fewer = hs.DPSGD(rate=0.01, steps=400, noise_multiplier=1.0)
    held = ledger.reserve(plan, key="run")
    full = ledger.history()[-1].costs
    held.commit(ran=fewer)
    assert ledger.history()[-1].costs[0] == full[0] * 400 / 1000


@pytest.mark.parametrize(
    "ran", [STEP**4, hs.Gaussian(3.0), STEP @ hs.Gaussian(3.0), hs.Gaussian(2.0 + 1e-15)], ids=str
)
def test_what_is_no_part_of_the_reservation_settles_nothing(
    ledger: hs.Ledger, ran: hs.Mechanism
) -> None:
    held = ledger.reserve(STEP**3, key="k")
    with pytest.raises(hs.errors.IncompatibleError, match="no part of"):
        held.commit(ran=ran)
    assert held.state is ReservationState.RESERVED
    assert ledger.remaining == hs.ZCDP(rho=0.125)


def test_resolving_twice_is_once_and_otherwise_is_refused(ledger: hs.Ledger) -> None:
    kept, given = reserved(ledger, "kept", "given")
    for _ in range(2):
        kept.commit()
        given.release()
    assert len(ledger.history()) == 5
    with pytest.raises(hs.errors.IncompatibleError, match="was committed"):
        kept.release()
    with pytest.raises(hs.errors.IncompatibleError, match="was released"):
        given.commit()
    with pytest.raises(hs.errors.IncompatibleError, match="was committed before, as Gaussian"):
        ledger.reservation("kept").commit(ran=STEP**0)
    assert ledger.remaining == hs.ZCDP(rho=0.375)


def test_a_resolved_key_is_no_leave_to_run(ledger: hs.Ledger) -> None:
    kept, given = reserved(ledger, "kept", "given")
    kept.commit()
    given.release()
    for key, resume in product(("kept", "given"), (False, True)):
        with pytest.raises(hs.errors.IncompatibleError, match="no leave to run"):
            ledger.reserve(STEP, key=key, resume=resume)
        with pytest.raises(hs.errors.IncompatibleError, match="no leave to run"):
            ledger.reservation(key).__enter__()


def test_of_what_was_committed_in_part_all_is_not_taken_for_the_same(ledger: hs.Ledger) -> None:
    first, second = (ledger.reserve(STEP**3, key="k", resume=True) for _ in range(2))
    first.commit(ran=STEP)
    with pytest.raises(hs.errors.IncompatibleError, match="committed before, as Gaussian"):
        second.commit()
    first.commit(ran=STEP)
    assert ledger.remaining == hs.ZCDP(rho=0.375)


def test_one_reservation_is_entered_once(ledger: hs.Ledger) -> None:
    held = ledger.reserve(STEP, key="k")
    with pytest.raises(ZeroDivisionError), held:
        _ = 1 / 0
    with pytest.raises(hs.errors.IncompatibleError, match="covers no second release"):
        held.__enter__()
    assert ledger.remaining == hs.ZCDP(rho=0.375)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_one_reservation_is_one_leave_in_one_process(ledger: hs.Ledger) -> None:
    held = ledger.reserve(STEP, key="k")
    assert outcome(held.__enter__) == 1
    for made in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(hs.errors.IncompatibleError, match="not copied or pickled"):
            made(held)
    held.__enter__()


def test_several_datasets_are_charged_all_or_none(url: str) -> None:
    january = hs.Ledger(url, "2026-01", HALF)
    february = hs.Ledger(url, "2026-02", hs.ZCDP(rho=0.2))
    held = january.reserve(STEP, key="both", also=["2026-02"])
    assert held.together == ("2026-01", "2026-02")
    with pytest.raises(hs.errors.BudgetExhausted, match="on '2026-02'"):
        january.reserve(STEP, key="too much", also=["2026-02"])
    assert (january.remaining, february.remaining) == (hs.ZCDP(rho=0.375), hs.ZCDP(rho=0.075))
    february.reservation("both").release()
    assert (january.remaining, february.remaining) == (HALF, hs.ZCDP(rho=0.2))
    assert january.verify().sound
    assert february.verify().sound


def test_a_cap_charges_its_whole_as_well(url: str) -> None:
    whole = hs.Ledger(url, "census", HALF)
    cap = hs.Ledger(url, "census/health", hs.ZCDP(rho=0.25), within="census")
    inner = hs.Ledger(url, "census/health/ana", hs.ZCDP(rho=10), within="census/health")
    held = inner.reserve(STEP**2, key="k")
    assert held.together == ("census", "census/health", "census/health/ana")
    with pytest.raises(hs.errors.BudgetExhausted, match="on 'census/health'"):
        cap.reserve(STEP)
    whole.reserve(STEP**2)
    assert (whole.remaining, cap.remaining) == (hs.ZCDP(rho=0), hs.ZCDP(rho=0))
    with pytest.raises(hs.errors.ParameterError, match="within must be a dataset"):
        hs.Ledger(url, "other", HALF, within="nowhere")


def test_datasets_of_one_ledger_have_budgets_of_their_own_kinds(url: str) -> None:
    hs.Ledger(url, "pure", hs.PureDP(1.0))
    both = hs.Ledger(url, "rho", HALF)
    held = both.reserve(hs.Laplace(2.0), key="k", also=["pure"])
    assert hs.Ledger(url, "pure").remaining == hs.PureDP(0.5)
    held.release()
    with pytest.raises(hs.errors.IncompatibleError):
        both.reserve(STEP, also=["pure"])
    assert both.remaining == HALF
    assert hs.ledger.datasets(url) == ("pure", "rho")


@pytest.mark.parametrize(
    "budget", [hs.FDP(hs.tradeoff(STEP)), hs.PureDP(math.inf), hs.ApproxDP(1.0, 1.0), STEP, 1.0]
)
def test_what_no_filter_keeps_is_no_budget(folder: Path, budget: Any) -> None:
    with pytest.raises((hs.errors.IncompatibleError, hs.errors.ParameterError)):
        hs.Ledger(folder / "l.db", "d", budget)


TRAINING: Final = hs.DPSGD(rate=0.01, steps=3, noise_multiplier=2.0)
BY_CLIENTS: Final = hs.federated.FedSDP(
    noise_multiplier=6, total_clients=1000, clients_per_round=10, rounds=3, sampling="poisson"
)


def test_reservations_that_protect_different_things_do_not_add_up(url: str) -> None:
    budget = hs.ApproxDP(8.0, 1e-5)
    hs.Ledger(url, "d", budget, expected=TRAINING).reserve(TRAINING, key="records")
    ledger = hs.Ledger(url, "d")
    for _ in range(2):
        with pytest.raises(hs.errors.IncompatibleError, match="dataset 'd' must protect the same"):
            ledger.reserve(BY_CLIENTS)
    ledger.reserve(hs.Gaussian(9.0), key="says nothing of it")
    assert len(ledger.history()) == 3
    ledger.reservation("records").release()
    ledger.reserve(BY_CLIENTS, key="clients")
    with pytest.raises(hs.errors.IncompatibleError, match="dataset 'd' must protect the same"):
        ledger.reserve(TRAINING)
    ledger.reserve(BY_CLIENTS)


def test_who_may_be_missing_is_not_hidden_by_reports_of_everybody(folder: Path) -> None:
    report = hs.RandomizedResponse(0.1)
    ledger = hs.Ledger(folder / "l.db", "d", hs.PureDP(1.0))
    with pytest.raises(hs.errors.IncompatibleError, match="somebody may be missing"):
        ledger.reserve(report)
    other = hs.Ledger(folder / "l.db", "e", hs.PureDP(1.0), adjacency="replace-one")
    other.reserve(report)
    assert other.remaining == hs.PureDP(0.9)


def test_a_cap_is_for_the_neighbours_of_its_whole(url: str) -> None:
    hs.Ledger(url, "whole", HALF, adjacency="replace-one")
    cap = hs.Ledger(url, "cap", HALF, within="whole")
    assert cap.status.adjacency is hs.Adjacency.REPLACE_ONE
    with pytest.raises(hs.errors.ParameterError, match="adjacency must be that of the whole"):
        hs.Ledger(url, "other", HALF, within="whole", adjacency="add-remove")
    assert hs.ledger.datasets(url) == ("cap", "whole")


def test_an_expected_plan_is_not_passed_over_in_silence(folder: Path) -> None:
    budget = hs.ApproxDP(8.0, 1e-5)
    hs.Ledger(folder / "l.db", "d", budget)
    with pytest.raises(hs.errors.ParameterError, match="without an expected plan"):
        hs.Ledger(folder / "l.db", "d", budget, expected=TRAINING)


def test_a_dataset_stays_as_it_was_opened(url: str) -> None:
    hs.Ledger(url, "d", hs.ApproxDP(1.0, 1e-6), slack=2e-7)
    assert hs.Ledger(url, "d").status.budget == hs.ApproxDP(1.0, 1e-6)
    hs.Ledger(url, "d", hs.ApproxDP(1.0, 1e-6), slack=2e-7, adjacency="add-remove")
    changes: list[dict[str, Any]] = [
        {"budget": hs.ApproxDP(2.0, 1e-6)},
        {"slack": 1e-7},
        {"rule": "whitehouse"},
        {"adjacency": "zero-out"},
        {"within": "e"},
    ]
    for changed in changes:
        with pytest.raises(hs.errors.ParameterError, match=f"^{next(iter(changed))} must be that"):
            hs.Ledger(url, "d", **changed)


def test_a_dataset_that_is_not_there_is_named_beside_those_that_are(url: str) -> None:
    hs.Ledger(url, "one", HALF)
    with pytest.raises(hs.errors.ParameterError, match=r"dataset must be one of this .*'one'"):
        hs.Ledger(url, "two")
    with pytest.raises(hs.errors.ParameterError, match="'one'"):
        hs.Ledger(url, "one").reserve(STEP, also=["two"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key", ""),
        ("key", "x" * 201),
        ("key", "a\nb"),
        ("key", 7),
        ("by", ""),
        ("note", "\x00"),
        ("note", "\ud800"),
        ("note", "x" * 10_001),
        ("note", None),
        ("also", "census"),
        ("also", [""]),
        ("also", 3),
    ],
)
def test_what_is_no_name_or_note_is_refused_by_name(folder: Path, name: str, value: object) -> None:
    ledger = hs.Ledger(folder / "l.db", "d", HALF)
    given: dict[str, Any] = {name: value}
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        ledger.reserve(STEP, **given)
    with pytest.raises(hs.errors.ParameterError, match=r"^mechanism must be"):
        ledger.reserve("Gaussian")  # type: ignore[arg-type]
    assert len(ledger.history()) == 1
    if name == "note":
        held = ledger.reserve(STEP)
        for settled in (held.commit, held.release):
            settle: Any = settled
            with pytest.raises(hs.errors.ParameterError, match=r"^note must be"):
                settle(**given)
        assert len(ledger.history()) == 2


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(hs.HockeystickError, match=r"install hockeystick\[postgres\]"):
        hs.Ledger("postgresql://somewhere/d", "d", HALF)


@pytest.mark.parametrize(
    "url",
    ["", 7, "mysql://host/x", "sqlite://", "sqlite:///:memory:", "://", b"x", "postgres:x://"],
)
def test_what_is_no_place_for_a_ledger_is_refused(url: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^url must be"):
        hs.Ledger(url, "d", HALF)


def test_the_price_of_all_as_a_plan_is_that_of_the_accountant(url: str) -> None:
    ledger = hs.Ledger(url, "d", hs.ApproxDP(9.0, 1e-6))
    ledger.reserve(STEP, key="a").commit()
    ledger.reserve(STEP**2, key="b").commit(ran=STEP)
    ledger.reserve(STEP**2, key="c").release()
    ledger.reserve(hs.Laplace(5.0), key="d")
    recorded = hs.Accountant()
    recorded.step(STEP, count=2)
    recorded.step(hs.Laplace(5.0))
    assert ledger.price() == recorded.epsilon(1e-6)
    assert ledger.price(delta=1e-4, accountant="rdp") == recorded.epsilon(1e-4, accountant="rdp")
    with pytest.raises(hs.errors.ParameterError, match="delta must be given"):
        hs.Ledger(url, "e", HALF).price()


def test_threads_share_one_ledger(ledger: hs.Ledger) -> None:
    taken: list[str] = []

    def take(name: int) -> None:
        for index in range(3):
            try:
                taken.append(ledger.reserve(STEP, key=f"{name} {index}").key)
            except hs.errors.BudgetExhausted:
                return

    threads = [threading.Thread(target=take, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 4
    assert ledger.verify().sound


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_connections_of_its_own(ledger: hs.Ledger) -> None:
    ledger.reserve(STEP, key="before")
    pid = os.fork()
    if pid == 0:
        try:
            ledger.reserve(STEP, key="child")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    ledger.reserve(STEP, key="after")
    assert [one.key for one in ledger.history()] == ["", "before", "child", "after"]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_forked_while_a_thread_computes_a_price_does_not_hang(folder: Path) -> None:
    ledger = hs.Ledger(folder / "l.db", "d", HALF)
    computing = threading.Event()

    def compute() -> None:
        with EVALUATING:
            computing.set()
            time.sleep(0.2)

    thread = threading.Thread(target=compute)
    thread.start()
    computing.wait()
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        ledger.reserve(STEP, key="child")
        os._exit(0)
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0
    ledger.reserve(STEP, key="parent")
    assert ledger.remaining == hs.ZCDP(rho=0.25)


def relayed(there: str) -> int:
    """Return a port of this machine that passes on to a socket in the file system."""
    listening = socket.create_server(("127.0.0.1", 0))

    def relay(source: socket.socket, target: socket.socket) -> None:
        while content := source.recv(65536):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with listening, listening.accept()[0] as near, socket.socket(socket.AF_UNIX) as far:
            far.connect(there)
            pairs = ((near, far), (far, near))
            threads = [threading.Thread(target=relay, args=one, daemon=True) for one in pairs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    threading.Thread(target=serve, daemon=True).start()
    port: int = listening.getsockname()[1]
    return port


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what a connection waits for")
@pytest.mark.extras
def test_a_server_that_is_gone_from_the_network_is_not_waited_for(server: postgres.Server) -> None:
    server.new_database("gone")
    port = relayed(str(server.folder / ".s.PGSQL.5432"))
    engine = Database(
        f"postgresql://ledger@127.0.0.1:{port}/gone", read_only=False, timeout=3.0
    )._engine
    with engine.connect() as connection:
        used: Any = connection.connection.driver_connection
        with socket.socket(fileno=os.dup(used.fileno())) as asked:
            waits = asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            idle = asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
    engine.dispose()
    assert (waits, idle) == (3000, 3)


@pytest.mark.extras
def test_users_with_schemas_of_their_own_share_one_ledger(server: postgres.Server) -> None:
    import psycopg

    url = server.new_database("schemas")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE ana LOGIN SUPERUSER")
        connection.execute("CREATE SCHEMA ana AUTHORIZATION ana")
    hs.Ledger(url.replace("ledger@", "ana@"), "d", HALF).reserve(STEP)
    assert hs.Ledger(url, "d", HALF).remaining == hs.ZCDP(rho=0.375)
    with pytest.raises(hs.errors.ParameterError, match="url must be without options"):
        hs.Ledger(f"{url}&options=-csearch_path%3Dana", "d", HALF)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.extras
def test_a_forked_process_that_ends_does_not_cut_what_it_came_from(server: postgres.Server) -> None:
    ledger = hs.Ledger(server.new_database("forked"), "d", HALF)
    ledger.reserve(STEP, key="before")
    pid = os.fork()
    if pid == 0:
        ledger.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    ledger.reserve(STEP, key="after")
    assert ledger.remaining == hs.ZCDP(rho=0.25)


@pytest.mark.extras
def test_no_password_is_shown(folder: Path) -> None:
    address = "postgresql://ana:s3cret@127.0.0.1:1/db"
    with pytest.raises(hs.errors.LedgerError) as caught:
        hs.Ledger(address, "d", HALF, timeout=1)
    assert "s3cret" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
    with pytest.raises(hs.errors.ParameterError) as refused:
        hs.Ledger("mysql://ana:s3cret@host/db?password=s3cret", "d", HALF)
    assert "s3cret" not in str(refused.value)
    with pytest.raises(hs.errors.LedgerError) as hidden:
        hs.Ledger("postgresql://127.0.0.1:1/db?user=ana&password=s3cret", "d", HALF, timeout=1)
    assert "s3cret" not in str(hidden.value)
    assert "user=ana" in str(hidden.value)
