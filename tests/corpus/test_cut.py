"""Files cut at any byte, as by a full disk or a loss of power, and used twice: no count falls."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.errors import LedgerError, ParameterError
from hockeystick.release.counting import Journal
from tests.corpus.kept import ON_LEDGER, STORED, counted, run_of

JOURNALS = ["steps", "rounds", "reserved-steps", "correlated"]
RUN = len(" 0123456789abcdef0123456789abcdef")


@pytest.fixture(autouse=True)
def _unforced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: what is read here was written in any case."""
    monkeypatch.setattr("hockeystick._files.force", lambda _: None)
    monkeypatch.setattr("hockeystick._files.force_name", lambda _: None)


def title_of(journal: bytes) -> str:
    return journal.partition(b"\n")[0].decode()[:-RUN]


def test_journals_cut_anywhere_forget_nothing(tmp_path: Path) -> None:
    for name in JOURNALS:
        stored = (STORED / f"{name}.journal").read_bytes()
        title, begun = title_of(stored), stored.index(b"\n") + 1
        for cut in range(len(stored) + 1):
            path = tmp_path / f"{name}{cut}"
            path.write_bytes(stored[:cut])
            for released in (max(0, cut - begun), max(0, cut - begun) + 4):
                journal = Journal(path, title)
                assert journal.counted == released
                journal.add(4)
                journal.close()


def test_a_run_whose_journal_was_cut_ends_with_its_plan(tmp_path: Path) -> None:
    stored = (STORED / "steps.journal").read_bytes()
    for cut in range(len(stored) + 1):
        (tmp_path / "steps.journal").write_bytes(stored[:cut])
        released = max(0, cut - stored.index(b"\n") - 1)
        for _ in range(2):
            run = run_of("steps", tmp_path)
            assert run.counted == released
            counted(run, min(3, run.limit - run.counted)).close()
            released = run.counted


OTHERS: list[Callable[[bytes], bytes]] = [
    lambda _: b"notes",
    lambda _: b"abc123",
    lambda _: b"\n",
    lambda stored: stored.partition(b"\n")[0][:-RUN] + b" a word",
    lambda stored: stored.partition(b"\n")[0] + b"0",
    lambda stored: stored.partition(b"\n")[0][:-1] + b"\n...",
    lambda stored: stored + stored,
    lambda stored: b" " + stored,
]


DAMAGED: list[Callable[[bytes], bytes]] = [
    lambda stored: b"\0" * len(stored),
    lambda stored: stored + b"\0",
]


@pytest.mark.parametrize(
    ("made", "said"),
    [(one, "of this very plan") for one in OTHERS] + [(one, "is damaged") for one in DAMAGED],
)
def test_what_is_no_journal_or_cut_one_is_refused_and_left_alone(
    made: Callable[[bytes], bytes], said: str, tmp_path: Path
) -> None:
    stored = (STORED / "steps.journal").read_bytes()
    (tmp_path / "steps.journal").write_bytes(made(stored))
    with pytest.raises(ParameterError, match=said):
        run_of("steps", tmp_path)
    assert (tmp_path / "steps.journal").read_bytes() == made(stored)


def test_a_disk_that_is_full_at_first_leaves_a_journal_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("hockeystick._files.force", full)
        with pytest.raises(OSError, match="No space"):
            Journal(tmp_path / "journal", "plan")
    whole = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(whole[:20])
    for released in count(0, 5):
        journal = Journal(tmp_path / "journal", "plan")
        assert journal.counted == released
        journal.add(5)
        journal.close()
        if released == 10:
            break


def test_a_ledger_cut_anywhere_is_refused_or_says_that_it_is_damaged(tmp_path: Path) -> None:
    whole, page = (STORED / "ledger.db").read_bytes(), 4096
    for cut in (2, 100, page // 2, *range(page, len(whole), page), len(whole) - 1):
        path = tmp_path / f"{cut}.db"
        path.write_bytes(whole[:cut])
        try:
            ledger = hs.Ledger(path, "census", ON_LEDGER["reserved-steps"][1])
            ledger.reserve(hs.Gaussian(100.0))
        except LedgerError:
            continue
        assert ledger.remaining.rho < 0.25  # type: ignore[attr-defined]
        assert not ledger.verify().sound
