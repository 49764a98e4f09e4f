"""The example of two years in the life of a team: what it reserves, reprices and compares."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.ledger import EntryKind
from tests.systems.programs import FOLDER, program

pytestmark = pytest.mark.extras
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "ledgers.md"


@pytest.fixture(scope="module")
def example() -> Any:
    return program("two_years", FOLDER.parent / "ledger")


@pytest.fixture
def short(example: Any, folder: Path) -> Any:
    """Six weeks with ten runs: ledger, repricing and requests."""
    asked = example.requests(weeks=6, runs=10)
    return *example.two_years(folder / "ledger.db", asked), asked


def test_every_request_is_reserved_and_resolved_as_it_ends(example: Any, short: Any) -> None:
    ledger, _, asked = short
    last = {one.key: one for one in ledger.history()}
    fates = {"commit": "commit", "crash": "reserve", "call off": "release"}
    assert len(asked) == 28
    assert {one.fate for one in asked} == set(fates)
    for one in asked:
        entries = [entry for entry in ledger.history() if entry.key == one.key]
        last = [entry for entry in entries if entry.kind != EntryKind.REPRICE][-1]
        assert last.kind == fates[one.fate]
        ran = None if one.fate == "call off" else one.ran or one.plan
        assert last.mechanism == ran
    early = [one for one in asked if one.ran is not None]
    assert len(early) == 2
    assert ledger.verify().sound


def test_repricing_gives_back_what_the_older_library_charged_beyond(short: Any) -> None:
    ledger, done, _ = short
    entries = ledger.history()
    news = [one for one in entries if one.kind == EntryKind.REPRICE]
    assert len(news) == len(done.changed) > 10
    before = {one.key: one.costs for one in entries if one.seq < news[0].seq}
    for one in news:
        ratio = before[one.key][0] / one.costs[0]
        assert abs(ratio - Fraction(11, 10)) < Fraction(1, 10**30)
    assert done.spent.epsilon > done.repriced.epsilon


def test_the_ledger_is_above_every_plan_and_below_what_states_each_release(
    example: Any, short: Any
) -> None:
    ledger, _, asked = short
    rows = {row.name.split()[0]: row for row in example.compared(ledger, asked)}
    spent = {name: row.spent for name, row in rows.items()}
    assert spent["exact"] < spent["RDP,"] < spent["this"] < spent["basic"] < spent["zCDP"]
    assert spent["exact"] == pytest.approx(ledger.price(accountant="auto").upper, rel=1e-4)
    adaptive = {name for name, row in rows.items() if row.proves == "adaptive"}
    assert adaptive == {"this", "zCDP", "basic"}
    assert (rows["zCDP"].further, rows["zCDP"].stops) == (0, 1)
    assert rows["this"].further < rows["exact"].further
    plan = example.TYPICAL ** rows["this"].further
    held = ledger.reserve(plan)
    held.release()
    with pytest.raises(hs.errors.BudgetExhausted):
        ledger.reserve(plan @ example.TYPICAL)


def test_a_week_is_where_the_budget_first_fails(example: Any) -> None:
    plans = [hs.Laplace(0.3)] * 4
    row = example.row_of("sum", "adaptive", example.composed("basic", 1.0, 4), [1, 5, 9, 13], plans)
    assert row.spent == pytest.approx(4 / 0.3)
    assert (row.stops, row.further) == (9, 0)


def test_the_page_shows_what_the_program_prints(example: Any, folder: Path) -> None:
    asked = example.requests()
    ledger, done = example.two_years(folder / "ledger.db", asked)
    page = PAGE.read_text(encoding="utf-8")
    assert example.as_page(example.compared(ledger, asked)) in page
    assert example.told(ledger, done) in " ".join(page.split())
