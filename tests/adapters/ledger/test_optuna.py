"""Searches by Optuna on a ledger: reserved before the first trial, under a key of their own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna")

import hockeystick as hs
from hockeystick.adapters.optuna import optimize
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.mechanisms import RandomStopping, tuning
from tests.ledger.forks import die, killed

RUN = hs.Gaussian(noise_multiplier=4)  # rho 1/32
TUNED = RandomStopping(RUN, tuning.TruncatedNegativeBinomial(eta=1, gamma=0.1))


@pytest.fixture
def ledger(tmp_path: Path) -> hs.Ledger:
    return hs.Ledger(tmp_path / "ledger.db", "x", hs.ZCDP(rho=0.5))


def squared(trial: Any) -> float:
    return float(trial.suggest_float("x", -1, 2) ** 2)


def rho(ledger: hs.Ledger) -> float:
    spent = ledger.status.spent
    assert isinstance(spent, hs.ZCDP)
    return float(spent.rho)


def test_all_trials_are_reserved_before_the_first(ledger: hs.Ledger) -> None:
    seen: list[tuple[float, int]] = []

    def watching(trial: Any) -> float:
        seen.append((rho(ledger), ledger.status.unresolved))
        return squared(trial)

    charge = ledger.charging(by="ana", note="depth")
    assert optimize(watching, RUN, trials=8, ledger=charge, key="search") is not None
    assert seen == [(0.25, 1)] * 8
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 0)
    assert ledger.history()[-1].by == "ana"


def test_a_search_that_stops_early_commits_the_trials_that_began(ledger: hs.Ledger) -> None:
    def stopping(trial: Any) -> float:
        if trial.number == 2:
            trial.study.stop()
        return squared(trial)

    optimize(stopping, RUN, trials=8, ledger=ledger, key="search")
    assert rho(ledger) == 3 / 32
    assert ledger.history()[-1].mechanism == RUN**3


def test_of_a_random_number_of_trials_all_is_committed_whatever_ran(tmp_path: Path) -> None:
    budget = hs.RenyiDP({4.0: 5.0})
    ledger = hs.Ledger(tmp_path / "ledger.db", "x", budget)
    for key in "abc":
        optimize(squared, TUNED, ledger=ledger, key=key)
    reserves, commits = ledger.history()[1::2], ledger.history()[2::2]
    assert {entry.content for entry in (*reserves, *commits)} == {reserves[0].content}
    assert {entry.note for entry in commits} == {"1 of 1 ran"}
    assert {entry.mechanism for entry in commits} == {TUNED}


def test_a_search_that_fails_counts_in_full_and_its_key_is_spent(ledger: hs.Ledger) -> None:
    def fails(_trial: Any) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        optimize(fails, RUN, trials=8, ledger=ledger, key="search")
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    with pytest.raises(ParameterError, match="the run for which 'search' was reserved"):
        optimize(squared, RUN, trials=8, ledger=ledger, key="search")


def test_a_search_is_run_once(ledger: hs.Ledger) -> None:
    optimize(squared, RUN, trials=8, ledger=ledger, key="search")
    with pytest.raises((ParameterError, IncompatibleError), match="search"):
        optimize(squared, RUN, trials=8, ledger=ledger, key="search")
    with pytest.raises(BudgetExhausted):
        optimize(squared, RUN, trials=9, ledger=ledger, key="another")


def test_one_of_both_is_charged(ledger: hs.Ledger) -> None:
    with pytest.raises(ParameterError, match=r"^charge must be None where a ledger is given"):
        optimize(squared, RUN, trials=8, ledger=ledger, key="s", charge=hs.Accountant())
    with pytest.raises(ParameterError, match=r"^key must be given"):
        optimize(squared, RUN, trials=8, ledger=ledger)
    assert len(ledger.history()) == 1
    optimize(squared, RUN, trials=8, charge=ledger)
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_search_that_is_killed_counts_in_full(ledger: hs.Ledger) -> None:
    def dying(trial: Any) -> float:
        if trial.number == 3:
            die()
        return squared(trial)

    killed(lambda: optimize(dying, RUN, trials=8, ledger=ledger, key="search"))
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    with pytest.raises(ParameterError, match="the run for which 'search' was reserved"):
        optimize(squared, RUN, trials=8, ledger=ledger, key="search")
