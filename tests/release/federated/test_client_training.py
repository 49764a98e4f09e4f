"""A client's local steps: batches, noise, sensitivity and number are those of the plan."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.federated import ClientTraining, draw_clients
from tests.release.bits import seeded


def planned(sampling: str = "two-stage", **changes: Any) -> Any:
    """Return Fed-CDP of few records."""
    settings: dict[str, Any] = {
        "noise_multiplier": 2.0,
        "total_clients": 4,
        "clients_per_round": 2,
        "examples_per_client": 6,
        "batch_size": 3,
        "local_steps": 5,
        "rounds": 4,
        "sampling": sampling,
    }
    kind = hs.federated.FedAlphaCDP if "schedule" in changes else hs.federated.FedCDP
    return kind(**(settings | changes))


def synced(**changes: Any) -> Any:
    """Return PriFedSync of few records."""
    settings: dict[str, Any] = {
        "examples": 6,
        "batch_size": 3,
        "noise_multiplier": 2.0,
        "local_steps": 5,
    }
    local = hs.federated.LocalTraining(**(settings | changes))
    return hs.federated.PriFedSync(clients=local, rounds=4, client_rate=0.5)


class Watch:
    """Gradients that are given, one for each record, and note which records they were asked for."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.batches = np.asarray(rows, dtype=float), list[Any]()

    def __call__(self, weights: Any, chosen: Any) -> Any:
        self.batches.append(chosen)
        return self.rows[chosen]


@pytest.mark.parametrize(
    ("plan", "rate", "fixed"),
    [
        (planned(local_steps=3000), 1 / 2, True),
        (planned("two-stage-poisson", local_steps=3000), 1 / 2, False),
        (planned("poisson", local_steps=3000), 1 / 4, False),
        (synced(local_steps=3000), 1 / 2, True),
    ],
)
def test_records_are_drawn_as_often_as_the_plan_says(plan: Any, rate: float, fixed: bool) -> None:
    watch = Watch(np.zeros((6, 1)))
    ClientTraining(plan, 6, 1.0, bits=seeded(4)).train([0.0], watch, learning_rate=1.0)
    assert len(watch.batches) == 3000
    counts = np.bincount(np.concatenate(watch.batches), minlength=6)
    assert np.abs(counts / 3000 - rate).max() < 4.5 * math.sqrt(rate * (1 - rate) / 3000)
    sizes = np.bincount([len(one) for one in watch.batches], minlength=7)
    if fixed:
        assert sizes[3] == 3000
        assert len({tuple(one) for one in watch.batches}) == math.comb(6, 3)
    else:
        expected = np.asarray(stats.binom.pmf(np.arange(7), 6, rate)) * 3000
        expected[4], sizes[4] = expected[4:].sum(), sizes[4:].sum()
        assert stats.chisquare(sizes[:5], expected[:5]).pvalue > 1e-4


@pytest.mark.parametrize("plan", [synced(), planned("two-stage-poisson")])
def test_a_step_has_the_plans_noise_over_the_expected_size(plan: Any) -> None:
    client = ClientTraining(plan, 6, 0.5, bits=seeded(6))
    watch = Watch(np.zeros((6, 20_000)))
    moved = client.train(np.zeros(20_000), watch, learning_rate=3.0)
    noise = moved / (3.0 * 2.0 * 0.5 / 3 * math.sqrt(5))
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert noise.std() == pytest.approx(1, abs=0.02)


def test_each_round_of_a_decay_has_its_own_noise() -> None:
    plan = planned(schedule=hs.schedules.Linear(0.25), local_steps=1)
    client = ClientTraining(plan, 6, 0.5, bits=seeded(8))
    for index, noise in enumerate(plan.noise_multipliers):
        moved = client.train(
            np.zeros(4000), Watch(np.zeros((6, 4000))), learning_rate=3.0, round_index=index
        )
        assert stats.kstest(moved / (3.0 * noise * 0.5 / 3), "norm").pvalue > 1e-4
    assert len(set(plan.noise_multipliers.tolist())) > 1


def test_a_record_moves_a_step_by_the_clipping_norm_and_no_further() -> None:
    """Without noise: every step's change, times the batch size, is the sum of its rows."""
    plan = planned(noise_multiplier=0.0, local_steps=1, batch_size=6)
    for row, least, most in (([1e9, 0.0], 0.4999, 0.5), ([0.0, 0.3], 0.2999, 0.3001)):
        rows = np.zeros((6, 2))
        rows[2] = row
        moved = ClientTraining(plan, 6, 0.5).train([0.0, 0.0], Watch(rows), learning_rate=6.0)
        assert least < np.linalg.norm(moved) <= most
    rows[2] = math.nan
    moved = ClientTraining(plan, 6, 0.5).train([0.0, 0.0], Watch(rows), learning_rate=6.0)
    assert moved.tolist() == [0.0, 0.0]


def test_what_a_client_released_is_the_rounds_that_it_ran() -> None:
    client = ClientTraining(synced(), 6, 1.0)
    for rounds in range(1, 5):
        client.train([0.0], Watch(np.zeros((6, 1))), learning_rate=1.0)
        assert client.released == synced().settings[0] ** rounds
    with pytest.raises(IncompatibleError, match="4 rounds have begun"):
        client.train([0.0], Watch(np.zeros((6, 1))), learning_rate=1.0)
    assert hs.epsilon(client.released, 1e-5) == hs.epsilon(synced().of_client(0), 1e-5)


def test_clients_of_prifedsync_have_their_own_settings() -> None:
    two = (
        hs.federated.LocalTraining(examples=6, batch_size=3, noise_multiplier=0, local_steps=2),
        hs.federated.LocalTraining(examples=8, batch_size=8, noise_multiplier=0, local_steps=1),
    )
    plan = hs.federated.PriFedSync(clients=two, rounds=3)
    watch = Watch(np.zeros((8, 1)))
    ClientTraining(plan, 8, 1.0, client=1).train([0.0], watch, learning_rate=1.0)
    assert [len(one) for one in watch.batches] == [8]
    for client, records, told in ((0, 8, "records must be the plan's 6"), (2, 8, "client")):
        with pytest.raises(ParameterError, match=told):
            ClientTraining(plan, records, 1.0, client=client)


def test_clients_are_drawn_for_the_plans_that_draw_them() -> None:
    assert len(draw_clients(planned())) == 2
    assert draw_clients(planned("poisson")).tolist() == [0, 1, 2, 3]
    bits = seeded(2)
    sizes = [len(draw_clients(synced(), 10, bits=bits)) for _ in range(2000)]
    assert abs(np.mean(sizes) - 5) < 0.16
    assert np.var(sizes) == pytest.approx(2.5, rel=0.2)
    with pytest.raises(ParameterError, match="clients must be given"):
        draw_clients(synced())
    with pytest.raises(ParameterError, match="the plan's number, 4"):
        draw_clients(planned(), 5)


WRONG: Any = [
    *(("weights", bad) for bad in ("x", [], np.zeros((3, 2)), [math.nan], 0.0)),
    *(("gradients", bad) for bad in (None, np.zeros((6, 1)))),
    *(("learning_rate", -1.0), ("round_index", -1)),
]
ROWS: Any = [np.zeros((2, 1)), np.zeros((3, 2)), np.zeros((3, 1), dtype=complex)]


def test_wrong_arguments_are_told_before_a_round_begins_and_wrong_gradients_within_it() -> None:
    client = ClientTraining(planned(), 6, 1.0)
    given = {"weights": [0.0], "gradients": Watch(np.zeros((6, 1))), "learning_rate": 0.1}
    for name, bad in WRONG:
        with pytest.raises(ParameterError, match=f"^{name} must be"):
            client.train(**(given | {name: bad}))
    assert client.counted == 0
    for counted, rows in enumerate(ROWS, start=1):
        with pytest.raises(ParameterError, match=r"^gradients must be rows of numbers, 3 of"):
            client.train([0.0], lambda weights, chosen, own=rows: own, learning_rate=1.0)
        assert client.counted == counted


def test_too_few_records_are_told_where_batches_have_a_size() -> None:
    with pytest.raises(ParameterError, match="at least the plan's examples per client, 6"):
        ClientTraining(planned(), 5, 1.0)
    assert ClientTraining(planned(), 7, 1.0).counted == 0
    assert ClientTraining(planned("two-stage-poisson"), 2, 1.0).counted == 0
    assert ClientTraining(planned(batch_size=6), 2, 1.0).counted == 0
    with pytest.raises(ParameterError, match="plan must be a FedCDP"):
        ClientTraining(hs.Gaussian(1.0), 6, 1.0)  # type: ignore[arg-type]


def test_a_model_that_gradients_are_of_changes_by_the_noisy_sum_alone() -> None:
    """What computes gradients may write into the weights it was given."""

    def spoils(weights: Any, chosen: Any) -> Any:
        weights += 100.0
        return np.zeros((len(chosen), len(weights)))

    local = hs.federated.LocalTraining(examples=4, batch_size=2, noise_multiplier=0, local_steps=2)
    client = ClientTraining(hs.federated.PriFedSync(clients=local, rounds=1), 4, norm=1.0)
    assert client.train([0.0], spoils, learning_rate=1).tolist() == [0.0]
