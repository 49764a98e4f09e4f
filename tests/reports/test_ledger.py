"""What the ledger of the data says, in the report."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.ledger.amounts import downward
from hockeystick.reports import Subject, investigate, page
from hockeystick.reports.ledger import Ledgered, in_epsilon, ledgered, rooms_of, status_facts
from tests.reports.conftest import DAY, words_of

pytest.importorskip("matplotlib", reason="reports need Matplotlib")
pytest.importorskip("jinja2", reason="reports need Jinja2")
pytest.importorskip("sqlalchemy", reason="ledgers need SQLAlchemy")

PLAN = hs.Gaussian(2.0)  # rho 1/8


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(file: Path) -> hs.Ledger:
    made = hs.Ledger(file, "census", hs.ZCDP(rho=0.3))
    with made.reserve(PLAN, key="means", by="ana", note="<b>Q3</b>"):
        pass
    return made


def text_of(found: Ledgered | None, plan: hs.Mechanism = PLAN) -> str:
    """Return what the page shows, on one line without tags."""
    return words_of(page(investigate(Subject(plan=plan, delta=1e-5, ledger=found)), DAY))


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()


def test_the_page_says_what_is_left_and_what_happened(ledger: hs.Ledger) -> None:
    text = text_of(ledgered(ledger))
    for told in (
        "The ledger of census Sound: the hashes",
        "Budget rho 0.3",
        "Spent rho 0.125, as a plan",
        "Next release fits if it costs at most rho 0.175",
        f"Head {ledger.status.head}",
        "Theorem Feldman and Zrnic 2021",
        "only the budget is a guarantee",
        "it cannot see what passed it by",
        "2 commit means",
        "ana: <b>Q3</b>",
    ):
        assert told in text, told


def test_a_damaged_ledger_is_shown_as_damaged(ledger: hs.Ledger, file: Path) -> None:
    change(file, "UPDATE hockeystick_entries SET price = '[\"1/0\"]' WHERE seq = 1")
    found = ledgered(ledger)
    assert not found.check.sound
    text = text_of(found)
    assert "Not sound: do not rely on its numbers" in text
    assert "entry 1: it was changed: its hash is another one" in text
    assert "cannot be read" in text


def test_what_a_next_one_of_each_kind_adds_is_what_it_adds(file: Path) -> None:
    training = hs.DPSGD(noise_multiplier=0.9, rate=0.01, steps=500)
    ledger = hs.Ledger(file, "data", hs.ApproxDP(7.0, 1e-6), expected=training)
    assert (
        "fits if it adds at most 7 to the epsilon spent, with what the conversion"
        in (dict(status_facts(ledger.status))["next release"])
    )
    for one in (training, hs.Laplace(2.0) ** 5, training):
        ledger.step(one)
    facts = dict(status_facts(ledger.status, rooms=(rooms := rooms_of(ledger.history()))))
    assert [one.mechanism for one in rooms] == [training, hs.Laplace(2.0) ** 5]
    assert facts["room for"].startswith(f"{rooms[0].more} more of {training}: a next one adds ")
    assert rooms[0].more > 0
    assert facts["and for"].startswith("0 more of Laplace (scale 2) x 5: a next one would add ")
    assert facts["and for"].endswith(" to the epsilon spent")
    before = in_epsilon(ledger.status, None)
    ledger.step(training)
    after = in_epsilon(ledger.status, None)
    assert before is not None
    assert after is not None
    assert rooms[0].adds == pytest.approx(after.spent - before.spent, rel=1e-9)
    assert (
        facts["next release"]
        == f"fits if it adds at most {downward(before.left)} to the epsilon spent"
    )
