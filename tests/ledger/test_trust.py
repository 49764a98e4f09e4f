"""What is wrong with a ledger is found and said in one line, and nothing is lost by it."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.calibration.filters.filter import measure_of
from hockeystick.errors import LedgerError
from hockeystick.ledger import Entry, database, dataset
from hockeystick.ledger.amounts import costs_of, downward, storable, text_of, upward
from tests.ledger import auditor

HALF: Final = hs.ZCDP(rho=0.5)
STEP: Final = hs.Gaussian(4.0)  # rho 1/32
# Of version 1, which had the tables of today but for the column ``unresolved``.
STORED: Final = Path(__file__).with_name("version-1.db")


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "ledger.db"


@pytest.fixture
def ledger(file: Path) -> hs.Ledger:
    made = hs.Ledger(file, "d", HALF)
    for index in range(5):
        made.reserve(STEP, key=f"k{index}", by="ana").commit()
    made.reserve(STEP, key="open", by="ana")
    return made


def run(file: Path, *statements: str) -> None:
    connection = sqlite3.connect(file)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


ENTRIES: Final = "hockeystick_entries"
TAMPERED: Final = {
    "a price": f"UPDATE {ENTRIES} SET price = '[\"1/40\"]' WHERE seq = 3",
    "a mechanism": f"UPDATE {ENTRIES} SET content = replace(content, '4.0', '5.0') WHERE seq = 3",
    "a note": f"UPDATE {ENTRIES} SET note = 'why' WHERE seq = 3",
    "who": f"UPDATE {ENTRIES} SET by = 'bea' WHERE seq = 3",
    "a key": f"UPDATE {ENTRIES} SET key = 'k9' WHERE seq = 3",
    "a row taken out": f"DELETE FROM {ENTRIES} WHERE seq = 3",
    "a sum": f"UPDATE {ENTRIES} SET spent = '[\"0/1\"]' WHERE seq = 3",
    "the kind": f"UPDATE {ENTRIES} SET kind = 'release' WHERE seq = 4",
    "the hash": f"UPDATE {ENTRIES} SET hash = previous WHERE seq = 3",
    "what is unresolved": "UPDATE hockeystick_datasets SET unresolved = 0",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED)
def test_an_entry_that_was_changed_is_found(ledger: hs.Ledger, file: Path, statement: str) -> None:
    assert ledger.verify().sound
    assert ledger.verify().head == ledger.status.head
    run(file, statement)
    assert not ledger.verify().sound
    assert auditor.audit(str(file))["wrong"] != []


def forge(file: Path, seq: int, changes: dict[str, str], *, to_the_end: bool) -> None:
    """Change an entry and its hash, and possibly all hashes after it, as a forger would."""
    connection = sqlite3.connect(file)
    connection.row_factory = sqlite3.Row
    query = f"SELECT * FROM {ENTRIES} WHERE seq >= {seq} ORDER BY seq"
    rows = [Entry.of_row(dict(row)) for row in connection.execute(query)]
    given: dict[str, Any] = {**changes}
    entry = replace(rows[0], **given)
    made = [replace(entry, hash=entry.digest())]
    for row in rows[1:] if to_the_end else ():
        after = replace(row, previous=made[-1].hash)
        made.append(replace(after, hash=after.digest()))
    with connection:
        for one in made:
            values = ", ".join(f"'{getattr(one, name)}'" for name in Entry.__slots__)
            connection.execute(f"REPLACE INTO {ENTRIES} VALUES ({values})")
        if to_the_end:
            connection.execute(f"UPDATE hockeystick_datasets SET head = '{made[-1].hash}'")
    connection.close()


FORGED: Final = {
    "what is spent is not the sum": (10, {"spent": '["1/2"]'}),
    "the price is none": (10, {"price": '["-1/32"]'}),
    "its price cannot be read": (10, {"price": "1/32"}),
    "costs more than what was reserved": (10, {"price": '["1/16"]', "spent": '["3/16"]'}),
    "does not follow what happened": (10, {"key": "k0"}),
    "nothing that happens in a ledger": (10, {"kind": "refund"}),
    "what is released still counts": (10, {"kind": "release"}),
    "the budget does not cover it": (9, {"price": '["3/4"]', "spent": '["7/8"]'}),
    "what was refused counts": (9, {"kind": "refuse"}),
    "opens the dataset once more": (9, {"kind": "open"}),
}


@pytest.mark.parametrize("said", FORGED)
def test_a_chain_made_anew_with_other_contents_is_found(
    ledger: hs.Ledger, file: Path, said: str
) -> None:
    seq, changes = FORGED[said]
    forge(file, seq, changes, to_the_end=True)
    found = " ".join(ledger.verify().problems)
    assert said.replace("the price is none", "price is none") in found
    assert "hash" not in found


@pytest.mark.parametrize(
    "used",
    [
        lambda ledger: ledger.reservation("open").release(),
        lambda ledger: ledger.reserve(STEP, key="open", resume=True),
        lambda ledger: ledger.reprice(),
    ],
)
def test_a_price_that_was_changed_frees_nothing(
    ledger: hs.Ledger, file: Path, used: Callable[[hs.Ledger], object]
) -> None:
    run(file, f"UPDATE {ENTRIES} SET price = '[\"5/20\"]' WHERE key = 'open'")
    with pytest.raises(LedgerError, match="entry 11 of dataset 'd' was changed"):
        used(ledger)
    assert ledger.remaining == hs.ZCDP(rho=0.3125)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (f"UPDATE {ENTRIES} SET together = '{{' WHERE seq = 3", "entry 3 of dataset 'd'"),
        (f"UPDATE {ENTRIES} SET note = x'ff' WHERE seq = 3", "entry 3 of dataset 'd'"),
        ("UPDATE hockeystick_datasets SET unresolved = 'x'", "damaged: dataset 'd'"),
        ("UPDATE hockeystick_schema SET version = 0", "does not say its version"),
        (
            "UPDATE sqlite_master SET sql = 'x', name = CAST(x'ff' AS TEXT) WHERE type = 'table'",
            "is damaged",
        ),
    ],
)
def test_what_cannot_be_read_is_said_to_be_damaged(
    ledger: hs.Ledger, file: Path, statement: str, said: str
) -> None:
    run(file, "PRAGMA writable_schema = ON", statement)
    with pytest.raises(LedgerError, match=said):
        hs.Ledger(file, "d").verify()


@pytest.mark.parametrize("left", [0, 1, -100])
def test_a_file_that_was_cut_off_is_not_begun_anew(
    ledger: hs.Ledger, file: Path, left: int
) -> None:
    file.write_bytes(file.read_bytes()[:left])
    with pytest.raises(LedgerError, match="cut off"):
        hs.Ledger(file, "d", HALF)


def test_a_file_has_its_name_once_it_has_its_tables(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(database, "bring_up", lambda _: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            hs.Ledger(file, "d", HALF)
    assert os.listdir(file.parent) == []
    assert hs.Ledger(file, "d", HALF).verify().sound
    assert os.listdir(file.parent) == [file.name]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_entry_whose_own_hash_is_made_anew_is_found(ledger: hs.Ledger, file: Path) -> None:
    forge(file, 4, {"note": "why"}, to_the_end=False)
    assert ledger.verify().problems == (
        "entry 5: it does not follow the entry before it: one is missing, moved or changed",
    )


@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM {ENTRIES} WHERE seq = 11",
        "UPDATE hockeystick_datasets SET spent = '[\"0/1\"]'",
        "UPDATE hockeystick_datasets SET head = 'x'",
        "UPDATE hockeystick_datasets SET entries = 11",
        f"UPDATE {ENTRIES} SET spent = '[\"0/1\"]' WHERE seq = 11",
    ],
)
def test_a_chain_that_does_not_end_as_its_row_says_is_not_continued(
    ledger: hs.Ledger, file: Path, statement: str
) -> None:
    run(file, statement)
    with pytest.raises(LedgerError, match="damaged: dataset 'd'"):
        ledger.reserve(STEP)
    with pytest.raises(LedgerError, match="damaged: dataset 'd'"):
        _ = ledger.status


def test_a_cut_off_end_is_found_by_a_head_that_was_noted(ledger: hs.Ledger, file: Path) -> None:
    noted, early = ledger.status.head, "6:" + ledger.history()[5].hash
    assert ledger.verify(head=noted).sound
    before = ledger.history()[10]
    run(
        file,
        f"DELETE FROM {ENTRIES} WHERE seq = 11",
        f"UPDATE hockeystick_datasets SET entries = 11, head = '{before.hash}', unresolved = 0,"
        f" spent = '{before.spent}'",
    )
    assert ledger.verify().sound
    assert ledger.verify(head=early).sound
    (problem,) = ledger.verify(head=noted).problems
    assert "noted" in problem
    for wrong in ("7", ":", "x:" + before.hash, "3:abc", 7):
        with pytest.raises(hs.errors.ParameterError, match=r"^head must be"):
            ledger.verify(head=wrong)  # type: ignore[arg-type]


def test_a_shared_reservation_that_one_dataset_lacks_is_found(file: Path) -> None:
    one, two = (hs.Ledger(file, name, HALF) for name in ("one", "two"))
    one.reserve(STEP, key="k", also=["two"])
    first = two.history()[0]
    run(
        file,
        f"DELETE FROM {ENTRIES} WHERE dataset = 'two' AND seq = 1",
        f"UPDATE hockeystick_datasets SET entries = 1, head = '{first.hash}', unresolved = 0,"
        f" spent = '{first.spent}' WHERE name = 'two'",
    )
    assert two.verify().sound
    assert one.verify().problems == ("entry 1: dataset 'two' lacks 'k'",)
    assert auditor.audit(str(file))["wrong"] != []


def _of_another_program(file: Path) -> None:
    file.unlink()
    run(file, "CREATE TABLE their (own TEXT)")


def _damaged(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


OPENING: Final = "WHERE seq = 0"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file.write_bytes(b"not a database, but long " * 60), "no ledger at all"),
        (lambda file: file.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096), "damaged"),
        (_of_another_program, "tables of another program"),
        (_damaged, "damaged"),
        (lambda file: run(file, "INSERT INTO hockeystick_schema VALUES (99, '')"), "version 99"),
        (
            lambda file: run(
                file, f"UPDATE {ENTRIES} SET content = replace(content, '0.5', '5.5') {OPENING}"
            ),
            "terms of dataset 'd' cannot be read",
        ),
    ],
)
def test_what_is_no_ledger_of_ours_is_refused_and_stays(
    ledger: hs.Ledger, file: Path, change: Callable[[Path], object], said: str
) -> None:
    change(file)
    before = file.read_bytes()
    with pytest.raises(LedgerError, match=said):
        hs.Ledger(file, "d", HALF)
    assert file.read_bytes() == before


def test_what_a_forger_leaves_neither_frees_nor_is_read(ledger: hs.Ledger, file: Path) -> None:
    forge(file, 11, {"price": '["9/20"]'}, to_the_end=True)
    with pytest.raises(LedgerError, match="less than nothing"):
        ledger.reservation("open").release()
    run(file, f'UPDATE {ENTRIES} SET content = \'{{"type": "Later"}}\' WHERE seq = 11')
    for use in (lambda: ledger.history()[-1].mechanism, ledger.reprice):
        asked: Callable[[], object] = use
        with pytest.raises(LedgerError, match="cannot be read"):
            asked()


def test_a_file_that_was_replaced_is_not_charged_by_the_terms_of_the_old_one(
    ledger: hs.Ledger, file: Path
) -> None:
    other = file.parent / "other.db"
    small = hs.Ledger(other, "d", hs.ZCDP(rho=1e-9))
    os.replace(other, file)
    for use in (lambda: ledger.reserve(STEP), lambda: ledger.status, ledger.verify, ledger.reprice):
        call: Callable[[], object] = use
        with pytest.raises(LedgerError, match="is another one than was opened here"):
            call()
    assert len(hs.Ledger(file, "d").history()) == 1
    assert small.dataset == "d"


def test_a_file_of_several_names_is_refused(
    ledger: hs.Ledger, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_SECONDS_OF_TWO_NAMES", 0.01)
    second = file.parent / "second.db"
    os.link(file, second)
    for name in (file, second):
        with pytest.raises(LedgerError, match="it has 2 names"):
            hs.Ledger(name, "d")
    second.unlink()
    second.symlink_to(file)
    assert hs.Ledger(second, "d").history() == ledger.history()


def test_a_second_thread_that_makes_the_file_leaves_the_locks_of_the_first(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = hs.Ledger(file, "d", HALF)
    with ledger._book.database.writing():
        monkeypatch.setattr(os.path, "exists", lambda path: False)
        hs.Ledger(file, "d", HALF)
        monkeypatch.undo()
        code = "import sys, hockeystick as hs; hs.Ledger(sys.argv[1], 'd', timeout=0.1).reserve"
        code += "(hs.Gaussian(9.0))"
        command = [sys.executable, "-c", code, str(file)]
        other = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "was busy for 0.1 s" in other.stderr


def test_what_a_crash_left_half_written_is_said_to_readers(ledger: hs.Ledger, file: Path) -> None:
    noted = ledger.status.head
    code = "; ".join(
        (
            "import os, sqlite3, sys",
            "file = sqlite3.connect(sys.argv[1], isolation_level=None)",
            "file.execute('PRAGMA cache_size = 1')",
            "file.execute('BEGIN IMMEDIATE')",
            f"file.execute('UPDATE {ENTRIES} SET note = hex(randomblob(3000))')",
            "os.kill(os.getpid(), 9)",
        )
    )
    subprocess.run([sys.executable, "-c", code, str(file)], check=False)
    assert file.with_name(file.name + "-journal").exists()
    with pytest.raises(LedgerError, match="half written by a crash"):
        hs.Ledger(file, "d", read_only=True)
    assert hs.Ledger(file, "d").verify(head=noted).sound
    assert hs.Ledger(file, "d", read_only=True).status.head == noted


def test_a_ledger_that_is_missing_is_not_made_without_a_budget(file: Path) -> None:
    for given in ({}, {"budget": HALF, "read_only": True}):
        options: dict[str, Any] = given
        with pytest.raises(LedgerError, match="there is no ledger"):
            hs.Ledger(file, "d", **options)
    assert not file.exists()
    with pytest.raises(LedgerError, match="no ledger can be made"):
        hs.Ledger(file.parent / "nowhere" / "ledger.db", "d", HALF)
    with pytest.raises(hs.errors.ParameterError, match=r"^url must be the path of a file"):
        hs.Ledger(file.parent, "d", HALF)


def test_a_ledger_opened_to_be_read_tells_all_and_writes_nothing(
    ledger: hs.Ledger, file: Path
) -> None:
    before = file.read_bytes()
    reader = hs.Ledger(file, "d", read_only=True)
    assert reader.status == ledger.status
    assert reader.history() == ledger.history()
    assert reader.verify().sound
    assert reader.reprice(record=False).changed == ()
    held = reader.reservation("open")
    for write in (lambda: reader.reserve(STEP), held.commit, held.release, reader.reprice):
        call: Callable[[], object] = write
        with pytest.raises(LedgerError, match="read only"):
            call()
    assert file.read_bytes() == before


@pytest.mark.parametrize("wrong", [0, -1, float("inf"), "1"])
def test_how_long_is_waited_is_a_number(file: Path, wrong: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^timeout must be"):
        hs.Ledger(file, "d", timeout=wrong)


def test_version_1_is_brought_up_with_nothing_lost(file: Path) -> None:
    file.write_bytes(STORED.read_bytes())
    with pytest.raises(LedgerError, match=r"version 1; open it once for writing"):
        hs.Ledger(file, "census", read_only=True)
    assert file.read_bytes() == STORED.read_bytes()
    whole, cap = hs.Ledger(file, "census"), hs.Ledger(file, "census/health")
    assert (whole.status.unresolved, cap.status.unresolved) == (2, 1)
    assert (whole.remaining, cap.remaining) == (hs.ZCDP(rho=0.3125), hs.ZCDP(rho=0.1875))
    assert [one.key for one in whole.history() if one.kind == "reserve"] == [
        *("committed", "released", "open", "both", "both open")
    ]
    cap.reservation("both open").release()
    whole.reservation("open").commit()
    assert (whole.status.unresolved, cap.status.unresolved) == (0, 0)
    assert whole.verify().sound
    assert cap.verify().sound
    assert auditor.audit(str(file))["wrong"] == []
    connection = sqlite3.connect(file)
    versions = [row[0] for row in connection.execute("SELECT version FROM hockeystick_schema")]
    connection.close()
    assert sorted(versions) == [1, 2]


def priced(factor: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the library prove another price of everything from now on."""
    own = dataset._price_of_part

    def price(measure: Any, part: hs.Mechanism) -> tuple[Fraction, ...]:
        return tuple(cost * factor for cost in own(measure, part))

    monkeypatch.setattr(dataset, "_price_of_part", price)


def test_a_library_that_proves_more_frees_nothing_before_reprice(
    ledger: hs.Ledger, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = ledger.reserve(STEP**4, key="run")
    before = ledger.status
    priced(Fraction(1, 2), monkeypatch)
    again = hs.Ledger(file, "d")
    assert again.status == before
    with pytest.raises(hs.errors.IncompatibleError, match="reprice the ledger"):
        held.commit(ran=STEP)
    shown = again.reprice(record=False)
    assert again.status == before
    assert (len(shown.changed), shown.recorded) == (7, False)
    done = again.reprice(by="bea", note="a better proof")
    assert done.changed == shown.changed
    assert (done.spent, done.repriced) == (before.spent, again.status.spent)
    assert done.repriced == hs.ZCDP(rho=10 / 64)
    assert {(one.old, one.new) for one in done.changed[:5]} == {(hs.ZCDP(1 / 32), hs.ZCDP(1 / 64))}
    assert [one.kind for one in again.history()[-7:]] == ["reprice"] * 7
    assert {(one.by, one.note) for one in again.history()[-7:]} == {("bea", "a better proof")}
    held.commit(ran=STEP)
    assert again.status.spent == hs.ZCDP(rho=7 / 64)
    assert again.verify().sound


def test_limits_are_never_above_those_of_the_day_of_opening(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = hs.ApproxDP(1.0, 1e-6)
    hs.Ledger(file, "d", budget)
    own = measure_of
    for factor, expected in ((2, 1), (Fraction(1, 2), Fraction(1, 2))):

        def changed(*given: Any, factor: Any = factor) -> Any:
            measure: Any = own(*given)
            epsilon, rho, failures = measure.limits
            return replace(measure, limits=(epsilon, rho * factor, failures))

        monkeypatch.setattr(dataset, "measure_of", changed)
        found = hs.Ledger(file, "d")._book.terms("d").measure.limits
        assert found[1] == own(budget, 5e-7, None, None).limits[1] * expected


def test_sums_stay_short_however_odd_the_prices() -> None:
    total = Fraction(0)
    for index in range(1, 2000):
        price = Fraction(1, 7919 + 2 * index)
        kept = storable(price)
        assert price <= kept <= price * (1 + Fraction(1, 10**38))
        total += kept
    assert len(text_of((total,))) < 1000
    assert storable(Fraction(1, 3)) == Fraction(1, 3)
    assert costs_of(text_of((total, Fraction(0)))) == (total, Fraction(0))


def test_without_sqlalchemy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, database.__name__)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(hs.HockeystickError, match=r"SQLAlchemy: install hockeystick\[ledger\]"):
        hs.Ledger("never.db", "d", HALF)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (0.1, "0.1", "0.1"),
        (1.23456789, "1.23456", "1.23457"),
        (5e-7, "5e-07", "5e-07"),
        (float("inf"), "inf", "inf"),
    ],
)
def test_numbers_are_rounded_as_the_decimals_they_print_as(
    value: float, low: str, high: str
) -> None:
    assert (downward(value), upward(value)) == (low, high)
