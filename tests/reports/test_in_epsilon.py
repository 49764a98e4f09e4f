"""What is spent and left of a ledger's budget, in epsilon."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.ledger.amounts import downward
from hockeystick.reports.ledger import in_epsilon, rooms_of, status_facts

pytest.importorskip("sqlalchemy", reason="ledgers need SQLAlchemy")


def opened(folder: Path, budget: hs.notions.Notion, **how: object) -> hs.Ledger:
    return hs.Ledger(folder / "ledger.db", "data", budget, **how)  # type: ignore[arg-type]


def test_at_one_order_each_further_release_adds_its_divergence_to_epsilon(tmp_path: Path) -> None:
    ledger = opened(tmp_path, hs.ApproxDP(8.0, 1e-5), expected=hs.Gaussian(8.0) ** 20)
    order = ledger.status.order
    assert order is not None
    seen = []
    for _ in range(2):
        ledger.step(hs.Gaussian(8.0))
        found = in_epsilon(ledger.status, 0.1)
        assert found is not None
        assert (found.delta, found.budget) == (1e-5, 8.0)
        seen.append(found)
    assert seen[1].spent - seen[0].spent == pytest.approx(order / 128, rel=1e-9)
    remaining = ledger.status.remaining
    assert isinstance(remaining, hs.RenyiDP)
    assert seen[1].left == pytest.approx(remaining.divergences[0][1], rel=1e-9)


def test_what_exceeds_the_delta_of_its_budget_proves_no_epsilon_there(tmp_path: Path) -> None:
    status = opened(tmp_path, hs.ApproxDP(2.0, 1e-6)).status
    assert in_epsilon(replace(status, spent=hs.ApproxDP(1.0, 2e-6)), None) is None
    over = in_epsilon(replace(status, spent=hs.ApproxDP(3.0, 1e-6)), None)
    assert over is not None
    assert over.left == 0.0


def test_what_a_next_one_of_each_kind_adds_is_what_it_adds(tmp_path: Path) -> None:
    training = hs.DPSGD(noise_multiplier=0.9, rate=0.01, steps=500)
    ledger = opened(tmp_path, hs.ApproxDP(7.0, 1e-6), expected=training)
    assert (
        "covered where it adds at most 7 to the epsilon spent, with what the conversion"
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
        == f"covered where it adds at most {downward(before.left)} to the epsilon spent"
    )
