"""The strategy for Flower on a ledger: rounds reserved before anybody is asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

import hockeystick as hs
from hockeystick.adapters.flower import PrivateFedAvg
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError
from hockeystick.release.federated import first_rounds
from tests.adapters.flower.clients import Clients, first_moved, server, zeros
from tests.ledger.forks import die, killed

PLAN = hs.federated.FedSDP(
    noise_multiplier=4, total_clients=4, clients_per_round=4, rounds=8, sampling="poisson"
)  # rho 1/32 a round


@pytest.fixture(autouse=True)
def _run() -> Iterator[None]:
    with server():
        yield


@pytest.fixture
def ledger(tmp_path: Path) -> hs.Ledger:
    return hs.Ledger(tmp_path / "ledger.db", "phones", hs.ZCDP(rho=0.5))


def strategy(ledger: Any, journal: Path | None = None, **options: Any) -> PrivateFedAvg:
    given: dict[str, Any] = {"key": "words", "journal": journal, "clipping_norm": 0.5} | options
    return PrivateFedAvg(PLAN, ledger=ledger, **given)


def clients(*_: object) -> Clients:
    return Clients(4, first_moved(lambda place: 1.0))


def rho(ledger: hs.Ledger) -> float:
    spent = ledger.status.spent
    assert isinstance(spent, hs.ZCDP)
    return float(spent.rho)


def test_rounds_are_reserved_first_and_committed_as_counted(ledger: hs.Ledger) -> None:
    with strategy(ledger.charging(by="ana")) as run:
        assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
        run.start(clients(), zeros(), 3)
    assert (rho(ledger), ledger.status.unresolved) == (3 / 32, 0)
    assert ledger.history()[-1].mechanism == first_rounds(PLAN, 3)
    with pytest.raises((IncompatibleError, BudgetExhausted)):
        run.start(clients(), zeros(), 1)


def test_of_a_budget_the_rounds_that_it_covers_are_reserved(ledger: hs.Ledger) -> None:
    five = hs.ApproxDP(hs.epsilon(first_rounds(PLAN, 5), 1e-5).upper, 1e-5)
    run = strategy(ledger, budget=five)
    assert (run.left, rho(ledger)) == (5, 5 / 32)
    run.start(clients(), zeros())
    run.close()
    assert rho(ledger) == 5 / 32


def test_what_has_no_place_on_a_ledger_is_refused(ledger: hs.Ledger) -> None:
    with pytest.raises(IncompatibleError, match="none of a run with a seed"):
        strategy(ledger, not_private=1)
    with pytest.raises(ParameterError, match=r"^key must be given"):
        strategy(ledger, key=None)
    assert len(ledger.history()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_server_that_is_killed_within_a_round_goes_on_after_it(
    ledger: hs.Ledger, tmp_path: Path
) -> None:
    def dying(run: PrivateFedAvg) -> Any:
        def answer(place: int, weights: Any) -> Any:
            if run.counted == 3:
                die()
            return weights

        return Clients(4, answer)

    def serve() -> None:
        run = strategy(ledger, tmp_path / "journal")
        run.start(dying(run), zeros())

    killed(serve)
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    for other in (None, tmp_path / "other"):
        with pytest.raises(ParameterError, match="the run for which 'words' was reserved"):
            strategy(ledger, other)
    with strategy(ledger, tmp_path / "journal") as run:
        assert (run.counted, run.left) == (3, 5)
        run.start(clients(), zeros(), 2)
    assert rho(ledger) == 5 / 32
    with pytest.raises(IncompatibleError, match="was committed before"):
        strategy(ledger, tmp_path / "journal")
