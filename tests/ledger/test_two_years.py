"""The example of two years in the life of a team: what it reserves, reprices and compares."""

from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
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


def test_the_page_shows_what_the_program_prints(example: Any, folder: Path) -> None:
    asked = example.requests()
    ledger, done = example.two_years(folder / "ledger.db", asked)
    page = PAGE.read_text(encoding="utf-8")
    assert example.as_page(example.compared(ledger, asked)) in page
    assert example.told(ledger, done) in " ".join(page.split())
