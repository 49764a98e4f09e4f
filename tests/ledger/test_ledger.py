"""Ledgers: what is charged, refused and given back on both databases, before noise is drawn."""

import copy
import math
import os
import pickle
import signal
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.calibration.session.runs import EVALUATING
from hockeystick.ledger import EntryKind, ReservationState
from hockeystick.ledger.database import Transaction
from hockeystick.release.samplers import secret_bits
from tests.ledger import postgres
from tests.ledger.forks import die, killed, outcome
from tests.release.bits import none_left

HALF = hs.ZCDP(rho=0.5)
STEP = hs.Gaussian(2.0)  # rho 1/8


@pytest.fixture
def ledger(url: str) -> hs.Ledger:
    return hs.Ledger(url, "census", HALF)


def test_one_key_is_one_leave_on_the_datasets_that_it_names(url: str) -> None:
    whole, other = hs.Ledger(url, "whole", HALF), hs.Ledger(url, "other", hs.ZCDP(rho=0.2))
    held = whole.reserve(STEP, key="both", also=["other"])
    refusals: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({}, hs.errors.ParameterError, "other datasets"),
        ({"also": ["other"]}, hs.errors.ParameterError, "not reserved before"),
        ({"also": ["none"]}, hs.errors.ParameterError, "'other', 'whole'"),
        ({"key": "more", "also": ["other"]}, hs.errors.BudgetExhausted, "on 'other'"),
    ]
    for given, error, said in refusals:
        with pytest.raises(error, match=said):
            whole.reserve(STEP, **{"key": "both", **given})
    again = whole.reserve(STEP, key="both", by="bea", also=["other"], resume=True)
    assert (held.resumed, again.resumed) == (False, True)
    other.reservation("both", by="bea").release(note="it had not begun")
    assert (whole.remaining, other.remaining) == (HALF, hs.ZCDP(rho=0.2))
    assert (whole.history()[-1].by, whole.history()[-1].note) == ("bea", "it had not begun")
    with pytest.raises(hs.errors.IncompatibleError, match="no leave to run"):
        whole.reserve(STEP, key="both", also=["other"], resume=True)
    with pytest.raises(hs.errors.IncompatibleError, match="was released"):
        again.commit()
    assert whole.verify().sound


def test_a_batch_is_reserved_whole_or_not_at_all(ledger: hs.Ledger) -> None:
    with pytest.raises(hs.errors.BudgetExhausted, match="on 'census'"):
        ledger.reserve_many([STEP] * 5)
    with pytest.raises(hs.errors.IncompatibleError):
        ledger.reserve_many([STEP, hs.ApproxDP(1.0, 1e-6)])
    assert ledger.remaining == HALF
    assert [one.kind for one in ledger.history()[1:]] == ["refuse"] * 5
    held = ledger.reserve_many([STEP] * 2, keys=["a", "b"], note="a table")
    held[0].release()
    with pytest.raises(hs.errors.ParameterError, match=r"^key must be one that was not reserved"):
        ledger.reserve_many([STEP] * 2, keys=["b", "c"])
    again = ledger.reserve_many([STEP] * 2, keys=["b", "c"], resume=True)
    assert [(one.key, one.resumed, one.note) for one in again] == [
        ("b", True, "a table"),
        ("c", False, ""),
    ]
    assert (ledger.remaining, ledger.status.unresolved) == (hs.ZCDP(rho=0.25), 2)
    assert ledger.reserve_many([]) == ()
    for wrong in ({"keys": ["d"]}, {"keys": ["d", "d"]}, {"keys": "de"}, {"mechanisms": STEP}):
        given: dict[str, Any] = {"mechanisms": [STEP] * 2, **wrong}
        with pytest.raises(hs.errors.ParameterError, match=f"^{next(iter(wrong))} must be"):
            ledger.reserve_many(**given)
    assert ledger.verify().sound


def test_a_batch_protects_one_thing(folder: Path) -> None:
    ledger = hs.Ledger(folder / "l.db", "d", hs.ApproxDP(8.0, 1e-5), expected=TRAINING)
    with pytest.raises(hs.errors.IncompatibleError, match="dataset 'd' must protect the same"):
        ledger.reserve_many([TRAINING, BY_CLIENTS])
    assert len(ledger.history()) == 1


def test_of_what_stops_early_only_what_ran_counts(ledger: hs.Ledger) -> None:
    held = ledger.reserve(STEP**2 @ hs.Laplace(2.0), key="k")
    held.commit(ran=STEP)
    assert ledger.remaining == hs.ZCDP(rho=0.375)
    held.commit(ran=STEP)
    for ran in (None, STEP**2):
        with pytest.raises(hs.errors.IncompatibleError, match="committed before, as Gaussian"):
            held.commit(ran=ran)


def test_ten_tenths_are_one_whatever_their_order(url: str) -> None:
    ledger = hs.Ledger(url, "tenths", hs.PureDP(1.0))
    for index in range(10):
        ledger.reserve(hs.PureDP(0.1), key=str(index))
    assert ledger.remaining == hs.PureDP(0)
    assert ledger.history()[-1].total == (Fraction(1),)


def test_without_keys_each_call_is_charged(ledger: hs.Ledger) -> None:
    assert ledger.reserve(STEP).key != ledger.reserve(STEP).key
    assert ledger.remaining == hs.ZCDP(rho=0.25)


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
    for wrong in ({"within": "nowhere"}, {"within": "census", "adjacency": "replace-one"}):
        options: dict[str, Any] = wrong
        with pytest.raises(hs.errors.ParameterError, match=r"a dataset of|that of the whole"):
            hs.Ledger(url, "other", HALF, **options)
    assert len(hs.ledger.datasets(url)) == 3


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
        {"budget": hs.ApproxDP(1.0, 1e-6), "expected": TRAINING},
    ]
    for changed in changes:
        with pytest.raises(hs.errors.ParameterError, match=f"^{[*changed][-1]} must be"):
            hs.Ledger(url, "d", **changed)


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


@pytest.mark.extras
def test_a_server_that_is_gone_from_the_network_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    psycopg = pytest.importorskip("psycopg")
    given: dict[str, Any] = {}

    def connect(*_: object, **options: Any) -> None:
        given.update(options)
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(psycopg, "connect", connect)
    with pytest.raises(hs.errors.LedgerError, match="cannot be used now"):
        hs.Ledger("postgresql://ana@127.0.0.1:1/gone", "d", HALF, timeout=3.0)
    assert (given["tcp_user_timeout"], given["keepalives_idle"]) == (3000, 3)


@pytest.mark.extras
def test_users_with_schemas_of_their_own_share_one_ledger(server: postgres.Server) -> None:
    import psycopg

    url = server.new_database("schemas")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE ana LOGIN SUPERUSER")
        connection.execute("CREATE SCHEMA ana AUTHORIZATION ana")
    hs.Ledger(url.replace("ledger@", "ana@"), "d", HALF).reserve(STEP)
    assert hs.Ledger(url, "d", HALF).remaining == hs.ZCDP(rho=0.375)
    with pytest.raises(hs.errors.ParameterError, match="without options"):
        hs.Ledger(f"{url}&options=-csearch_path%3Dana", "d", HALF)


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


# As a charge: every release is an entry, durably, before its noise is drawn.


def released(charge: Any, noise: hs.Gaussian = STEP, **options: Any) -> Any:
    return hs.release.gaussian(noise, [1.0, 2.0], sensitivity=1, charge=charge, **options)


def kinds(ledger: hs.Ledger) -> list[str]:
    return [entry.kind for entry in ledger.history()[1:]]


def test_the_entry_is_there_before_any_bit_is_drawn(ledger: hs.Ledger) -> None:
    seen: list[int] = []

    def watched(count: int) -> Any:
        seen.append(len(ledger.history()))
        return secret_bits(count)

    released(ledger, bits=watched)
    assert {*seen} == {3}


def test_what_is_refused_draws_nothing_and_is_only_noted(ledger: hs.Ledger) -> None:
    with pytest.raises(hs.errors.BudgetExhausted, match="on 'census'"):
        released(ledger, hs.Gaussian(0.5), bits=none_left)
    with pytest.raises(hs.errors.IncompatibleError, match="replace-one ones"):
        ledger.step(hs.PoissonSubsampled(STEP, 0.1, "replace-one"))
    (noted,) = ledger.history()[1:]
    assert (noted.kind, noted.reserved) == (EntryKind.REFUSE, hs.Gaussian(0.5))
    assert noted.mechanism is None
    assert not any((*noted.costs, *noted.total))
    assert (ledger.status.unresolved, ledger.verify().problems) == (0, ())
    released(ledger)
    assert ledger.remaining == hs.ZCDP(rho=0.375)


def test_who_and_why_are_in_both_entries_and_all_datasets_are_charged(url: str) -> None:
    whole = hs.Ledger(url, "census", HALF)
    other = hs.Ledger(url, "survey", hs.ZCDP(rho=0.25))
    team = hs.Ledger(url, "census/health", hs.ZCDP(rho=0.25), within="census")
    weekly = team.charging(by="ana", note="weekly", also=["survey"])
    released(weekly)
    for ledger in (whole, other, team):
        assert {(entry.by, entry.note) for entry in ledger.history()[1:]} == {("ana", "weekly")}
        assert ledger.verify().problems == ()
    assert (whole.remaining, other.remaining) == (hs.ZCDP(rho=0.375), hs.ZCDP(rho=0.125))
    other.step(STEP)
    with pytest.raises(hs.errors.BudgetExhausted, match="on 'survey'"):
        released(weekly)
    assert (whole.remaining, team.remaining) == (hs.ZCDP(rho=0.375), hs.ZCDP(rho=0.125))


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_who_is_killed_as_the_noise_is_drawn_has_been_charged(folder: Path) -> None:
    url = folder / "ledger.db"
    ledger = hs.Ledger(url, "census", HALF)
    killed(lambda: released(ledger, bits=die))
    assert ledger.remaining == hs.ZCDP(rho=0.375)
    assert kinds(ledger) == [EntryKind.RESERVE, EntryKind.COMMIT]
    killed(lambda: released(hs.Ledger(url, "census"), bits=die))
    assert ledger.remaining == hs.ZCDP(rho=0.25)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_between_the_two_entries_nothing_can_be_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed within the transaction, it has neither entry, and nothing was released."""
    ledger = hs.Ledger(folder / "ledger.db", "census", HALF)
    continued = Transaction.continued

    def dying(*arguments: Any) -> None:
        continued(*arguments)
        die()

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "continued", dying)
        killed(lambda: released(ledger))
    assert kinds(ledger) == []
    assert ledger.verify().problems == ()
