"""A ledger as a charge: every release is an entry, durably, before its noise is drawn."""

import sys
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.ledger import EntryKind
from hockeystick.ledger.database import Transaction
from hockeystick.release.samplers import secret_bits
from tests.ledger.forks import die, killed

NOISE = hs.Gaussian(2.0)  # rho 1/8


@pytest.fixture
def ledger(url: str) -> hs.Ledger:
    return hs.Ledger(url, "census", hs.ZCDP(rho=0.5))


def released(charge: Any, noise: hs.Gaussian = NOISE, **options: Any) -> Any:
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
    def none(_count: int) -> Any:
        raise AssertionError

    with pytest.raises(hs.errors.BudgetExhausted, match="on 'census'"):
        released(ledger, hs.Gaussian(0.5), bits=none)
    with pytest.raises(hs.errors.IncompatibleError, match="replace-one ones"):
        ledger.step(hs.PoissonSubsampled(NOISE, 0.1, "replace-one"))
    (noted,) = ledger.history()[1:]
    assert (noted.kind, noted.reserved) == (EntryKind.REFUSE, hs.Gaussian(0.5))
    assert noted.mechanism is None
    assert not any((*noted.costs, *noted.total))
    assert (ledger.status.unresolved, ledger.verify().problems) == (0, ())
    released(ledger)
    assert ledger.remaining == hs.ZCDP(rho=0.375)


def test_who_and_why_are_in_both_entries_and_all_datasets_are_charged(url: str) -> None:
    whole = hs.Ledger(url, "census", hs.ZCDP(rho=0.5))
    other = hs.Ledger(url, "survey", hs.ZCDP(rho=0.25))
    team = hs.Ledger(url, "census/health", hs.ZCDP(rho=0.25), within="census")
    weekly = team.charging(by="ana", note="weekly", also=["survey"])
    released(weekly)
    for ledger in (whole, other, team):
        assert {(entry.by, entry.note) for entry in ledger.history()[1:]} == {("ana", "weekly")}
        assert ledger.verify().problems == ()
    assert (whole.remaining, other.remaining) == (hs.ZCDP(rho=0.375), hs.ZCDP(rho=0.125))
    other.step(NOISE)
    with pytest.raises(hs.errors.BudgetExhausted, match="on 'survey'"):
        released(weekly)
    assert (whole.remaining, team.remaining) == (hs.ZCDP(rho=0.375), hs.ZCDP(rho=0.125))


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_who_is_killed_as_the_noise_is_drawn_has_been_charged(folder: Path) -> None:
    url = folder / "ledger.db"
    ledger = hs.Ledger(url, "census", hs.ZCDP(rho=0.5))
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
    ledger = hs.Ledger(folder / "ledger.db", "census", hs.ZCDP(rho=0.5))
    continued = Transaction.continued

    def dying(*arguments: Any) -> None:
        continued(*arguments)
        die()

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "continued", dying)
        killed(lambda: released(ledger))
    assert kinds(ledger) == []
    assert ledger.verify().problems == ()


def test_what_is_no_charge_is_refused_by_name() -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"charge must be .* a Ledger or another"):
        released(hs.Ledger)
