"""The strategy for Flower: that what runs is the plan, and that no client can make it another."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, IncompatibleError, ParameterError

pytest.importorskip("flwr")

from flwr.app import Array, ArrayRecord, ConfigRecord

from hockeystick.adapters.flower import PrivateFedAvg
from hockeystick.adapters.loop import bits
from hockeystick.release.federated import ClientRounds
from tests.adapters.flower.clients import FIRST, Clients, first_moved, record, zeros
from tests.ledger.forks import die, killed, rho

DELTA = 1e-5
PLAN = hs.federated.FedSDP(
    noise_multiplier=4, total_clients=10, clients_per_round=5, rounds=20, sampling="poisson"
)
EVERYBODY = replace(PLAN, clients_per_round=10)
SILENT = replace(EVERYBODY, noise_multiplier=0)
NORM = 0.5


def _strategy(plan: hs.federated.FedSDP = PLAN, **options: Any) -> PrivateFedAvg:
    return PrivateFedAvg(plan, **({"clipping_norm": NORM} | options))


def _after_one(strategy: PrivateFedAvg, clients: Clients, arrays: Any = None) -> dict[str, Any]:
    found = strategy.start(clients, zeros() if arrays is None else arrays, 1).arrays
    return {name: array.numpy() for name, array in found.items()}


def _moved(answer: Any, plan: hs.federated.FedSDP = SILENT, nodes: int = 10) -> float:
    """Return how far one round without noise moves the first weight, in expected cohorts."""
    weights = _after_one(_strategy(plan), Clients(nodes, answer))["w"]
    assert np.array_equal(weights[1:], np.zeros(2))
    return float(weights[0]) * plan.clients_per_round


def test_one_client_moves_the_sum_by_its_clipping_norm_and_not_by_more() -> None:
    nothing = first_moved(lambda place: 0.0)
    for size, most in ((1e-3, 1e-3), (1.0, NORM), (1e100, NORM), (-1e100, -NORM), (1e300, 0.0)):

        def answer(place: int, weights: Any, size: float = size) -> Any:
            return first_moved(lambda node: size if node == 3 else 0.0)(place, weights)

        moved = _moved(answer) - _moved(nothing)
        assert moved == pytest.approx(most, abs=NORM * 2**-21)
        assert abs(moved) <= NORM


def test_updates_are_clipped_as_one_vector_over_all_arrays() -> None:
    arrays = record({"w": np.zeros((2, 2), np.float32), "b": np.zeros(()), "c": np.zeros(4)})

    def answer(place: int, weights: Any) -> Any:
        return {name: array + 10 for name, array in weights.items()}

    found = _after_one(_strategy(SILENT), Clients(1, answer), arrays)
    assert {name: (array.shape, array.dtype.name) for name, array in found.items()} == {
        "w": ((2, 2), "float32"),
        "b": ((), "float64"),
        "c": ((4,), "float64"),
    }
    total = math.hypot(*(float(x) for array in found.values() for x in array.ravel()))
    assert total * 10 == pytest.approx(NORM, rel=1e-6)


def test_the_sum_is_divided_by_the_expected_cohort_whoever_is_there() -> None:
    large = first_moved(lambda place: 1e6)
    for nodes in (0, 1, 3, 12):
        assert _moved(large, nodes=nodes) == pytest.approx(nodes * NORM, rel=1e-6)


def test_a_node_that_is_listed_twice_has_one_coin() -> None:
    class Listed(Clients):
        def get_node_ids(self) -> list[int]:
            return [FIRST] * 1000

    grid = Listed(1, first_moved(lambda place: 0))
    asked = [
        len([*_strategy().configure_train(1, zeros(), ConfigRecord(), grid)]) for _ in range(64)
    ]
    assert set(asked) == {0, 1}


def _pickled() -> bytes:
    from io import BytesIO

    buffer = BytesIO()
    np.save(buffer, np.array([1, None, 2], object), allow_pickle=True)
    return buffer.getvalue()


def _of_false_shape() -> Array:
    array = Array(np.ones(5))
    array.shape = (3,)
    return array


GARBAGE: dict[str, Any] = {
    "nan": {"w": np.array([math.nan, 0, 0])},
    "infinity": {"w": np.array([math.inf, 0, 0])},
    "another shape": {"w": np.ones(4)},
    "a row too many": {"w": np.ones((1, 3))},
    "another name": {"v": np.ones(3)},
    "one more": {"w": np.ones(3), "v": np.ones(3)},
    "none": {},
    "complex": {"w": np.ones(3, complex)},
    "texts": {"w": np.array(["a", "b", "c"])},
    "dates": {"w": np.array([0, 0, 0], "datetime64[D]")},
    "bytes": {"w": Array("float64", (3,), "numpy.ndarray", b"no array")},
    "a pickle": {"w": Array("float64", (3,), "numpy.ndarray", _pickled())},
    "a tensor": {"w": Array("float64", (3,), "torch.Tensor", b"")},
    "a false shape": {"w": _of_false_shape()},
    "an error": "the disk is full",
    "silence": None,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_update_counts_as_nothing_and_the_round_goes_on(
    garbage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(place: int, weights: Any) -> Any:
        return garbage if place == 4 else weights | {"w": weights["w"] + [1, 0, 0]}

    strategy = _strategy(SILENT)
    weights = _after_one(strategy, Clients(10, answer))["w"]
    assert weights[0] * 10 == pytest.approx(9 * NORM, rel=1e-6)
    assert strategy.counted == 1
    assert any(f"an answer of node {FIRST + 4} counts as 0: " in line for line in caplog.messages)


def test_a_client_that_was_not_asked_counts_as_nothing() -> None:
    asking, strategy = _strategy(SILENT), _strategy(SILENT)
    clients = Clients(2, first_moved(lambda place: 1))
    both = list(asking.configure_train(1, zeros(), ConfigRecord(), clients))
    list(strategy.configure_train(1, zeros(), ConfigRecord(), Clients(1, clients.answer)))
    found, metrics = strategy.aggregate_train(1, clients.send_and_receive(both))
    assert found is not None
    assert metrics is None
    assert found["w"].numpy()[0] * 10 == pytest.approx(NORM, rel=1e-6)


def test_a_round_is_counted_before_anybody_is_asked(tmp_path: Path) -> None:
    """Whoever breaks it off, there or where the noise is drawn, leaves it counted."""
    journal, seen = tmp_path / "rounds", list[bytes]()

    def answer(place: int, weights: Any) -> Any:
        seen.append(journal.read_bytes())
        raise KeyboardInterrupt

    strategy = _strategy(EVERYBODY, journal=journal)
    with pytest.raises(KeyboardInterrupt):
        strategy.start(Clients(10, answer), zeros())
    assert seen[0].endswith(b"\n.")
    clients = Clients(10, first_moved(lambda place: 1))
    with (
        patch("hockeystick.release.federated.noisy_sum", side_effect=InterruptedError),
        pytest.raises(InterruptedError),
    ):
        strategy.start(clients, zeros())
    assert (strategy.counted, strategy.left) == (2, 18)
    with pytest.raises(ParameterError, match=r"^journal must be"):
        _strategy(EVERYBODY, journal=journal)
    strategy.close()
    with pytest.raises(IncompatibleError, match="closed"):
        strategy.start(clients, zeros())
    again = _strategy(EVERYBODY, journal=journal)
    assert (again.counted, again.left) == (2, 18)
    again.start(clients, zeros())
    assert again.spent(DELTA).upper == hs.epsilon(EVERYBODY, DELTA).upper


def test_it_trains_as_the_rounds_of_a_loop_do_bit_by_bit() -> None:
    """The same bits draw the same cohorts and noise; late, wrong and doubled answers included."""
    plan, size = replace(PLAN, rounds=6), 40
    pulls = np.random.default_rng(7).normal(size=(10, size))

    def answer(place: int, weights: Any) -> Any:
        moved = {"w": weights["w"] + (pulls[place] - weights["w"])}
        doubled = [moved, {"w": np.ones(size)}]
        return {2: {"w": np.full(size, math.nan)}, 5: doubled, 8: None}.get(place, moved)

    strategy = _strategy(plan, learning_rate=0.7, not_private=3)
    result = strategy.start(Clients(10, answer), zeros(size)).arrays["w"].numpy()
    run = ClientRounds(plan, size, NORM, bits=bits(3, "rounds", 0))
    weights = np.zeros(size)
    for _ in range(plan.rounds):
        cohort = run.draw()
        for client in set(cohort.clients) - {2, 8}:
            cohort.accept(client, weights + (pulls[client] - weights) - weights)
        weights = weights + 0.7 * cohort.release()
    assert np.array_equal(result, weights)
    assert strategy.spent(DELTA).upper == math.inf


def test_a_cohort_is_used_once_and_for_its_round() -> None:
    strategy, grid = _strategy(), Clients(10, first_moved(lambda place: 1))
    with pytest.raises(IncompatibleError, match="no cohort waits for round 1"):
        strategy.aggregate_train(1, [])
    strategy.configure_train(1, zeros(), ConfigRecord(), grid)
    with pytest.raises(IncompatibleError, match="no cohort waits for round 2"):
        strategy.aggregate_train(2, [])
    strategy.configure_train(3, zeros(), ConfigRecord(), grid)
    strategy.aggregate_train(3, [])
    with pytest.raises(IncompatibleError, match="no cohort waits for round 3"):
        strategy.aggregate_train(3, [])
    assert strategy.counted == 2


def test_it_stops_where_plan_or_budget_end() -> None:
    clients = Clients(10, first_moved(lambda place: 1))
    budget = hs.ApproxDP(epsilon=1.5, delta=DELTA)
    strategy = _strategy(budget=budget)
    assert 0 < strategy.left < 20
    with pytest.raises(ParameterError, match=r"^num_rounds must be an integer from 0 to"):
        strategy.start(clients, zeros(), strategy.left + 1)
    assert strategy.counted == 0
    strategy.start(clients, zeros())
    assert strategy.spent(DELTA).upper == hs.epsilon(strategy.released, DELTA).upper <= 1.5
    assert hs.epsilon(replace(PLAN, rounds=strategy.counted + 1), DELTA).upper > 1.5
    for more in (
        lambda: strategy.start(clients, zeros()),
        lambda: strategy.configure_train(1, zeros(), ConfigRecord(), clients),
    ):
        with pytest.raises(BudgetExhausted):
            more()


def test_bad_input_is_refused_by_name() -> None:
    made: Any = PrivateFedAvg
    sampled = hs.federated.FedSDP(
        noise_multiplier=4, total_clients=10, clients_per_round=5, rounds=2, sampling="fixed-size"
    )
    cases: dict[str, dict[str, Any]] = {
        "plan": {"plan": hs.Gaussian(1)},
        "sampling": {"plan": sampled},
        "noise_multiplier": {"plan": replace(PLAN, noise_multiplier=math.inf)},
        "clipping_norm": {"clipping_norm": 0},
        "learning_rate": {"learning_rate": math.inf},
        "budget": {"budget": 3.0},
        "not_private": {"not_private": -1},
    }
    for name, given in cases.items():
        with pytest.raises(ParameterError, match=f"^{name} must be"):
            made(**({"plan": PLAN, "clipping_norm": 1.0} | given))
    for arrays in (ArrayRecord(), record({"w": np.array([math.nan])}), "weights"):
        with pytest.raises(ParameterError, match=r"^arrays must be"):
            _strategy().configure_train(1, arrays, ConfigRecord(), Clients(1, ONES))
    with pytest.raises(IncompatibleError, match="a seed has epsilon = inf"):
        _strategy(not_private=1, budget=hs.ApproxDP(1, DELTA))
    with pytest.raises(IncompatibleError, match="counts private rounds"):
        _strategy(not_private=1, journal="rounds")


# On a ledger: rounds are reserved before anybody is asked.

SHORT = hs.federated.FedSDP(
    noise_multiplier=4, total_clients=4, clients_per_round=4, rounds=8, sampling="poisson"
)  # rho 1/32 a round
ONES = first_moved(lambda place: 1.0)


@pytest.fixture
def ledger(tmp_path: Path) -> hs.Ledger:
    return hs.Ledger(tmp_path / "ledger.db", "phones", hs.ZCDP(rho=0.5))


def _on_ledger(ledger: Any, journal: Path | None = None, **options: Any) -> PrivateFedAvg:
    given: dict[str, Any] = {"key": "words", "journal": journal, "clipping_norm": 0.5} | options
    return PrivateFedAvg(SHORT, ledger=ledger, **given)


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
        run = _on_ledger(ledger, tmp_path / "journal")
        run.start(dying(run), zeros())

    killed(serve)
    assert (rho(ledger), ledger.status.unresolved) == (0.25, 1)
    for other in (None, tmp_path / "other"):
        with pytest.raises(ParameterError, match="the run for which 'words' was reserved"):
            _on_ledger(ledger, other)
    with _on_ledger(ledger, tmp_path / "journal") as run:
        assert (run.counted, run.left) == (3, 5)
        run.start(Clients(4, ONES), zeros(), 2)
    assert rho(ledger) == 5 / 32
    with pytest.raises(IncompatibleError, match="was committed before"):
        _on_ledger(ledger, tmp_path / "journal")
