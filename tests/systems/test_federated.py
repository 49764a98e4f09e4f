"""What one record or client moves in the federated systems, and how their clients count."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.adapters.loop import Sampler
from hockeystick.release.federated import draw_clients
from tests.systems.programs import program, without

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


DECAYS = ("constant", "linear", "staircase", "exponential", "cyclic")


def test_the_noises_are_those_of_the_papers_decays() -> None:
    """With rounds t from 0; Fed-CDP's noise is constant."""
    plans = {decay: program("fed_cdp").planned(decay).noise_multipliers for decay in DECAYS}
    shares = {decay: noise / noise[0] for decay, noise in plans.items()}
    t, end = np.arange(25), 4.85 / 15
    assert set(shares["constant"]) == {1.0}
    assert shares["linear"] == pytest.approx(1 - (1 - end) / 24 * t)
    assert shares["staircase"] == pytest.approx(1 - (1 - end) / 4 * (t // 5))
    assert shares["exponential"] == pytest.approx(end ** (t / 24))
    wave = (np.cos(np.pi * (t % 13) / 13) + 1) / 2
    assert shares["cyclic"] == pytest.approx(end + (1 - end) * wave)


def test_a_record_moves_a_round_of_fed_cdp_by_its_clipped_gradient() -> None:
    """One step without noise; the same bits draw the same batches, with and without the record."""
    system = program("fed_cdp")
    plan = replace(system.planned("none"), rounds=1, local_steps=1)
    data, models = system.shards(plan.total_clients, "writer"), list[np.ndarray]()
    drawn = int(draw_clients(plan, bits=system.source(5))[0])
    for record in range(-1, 40):
        own = without(data, drawn if record >= 0 else -1, record)
        models.append(system.trained(plan, own, norm=0.05, seed=5)[0])
    scale = plan.clients_per_round * plan.batch_size / system.RATE
    moved = [float(np.linalg.norm(model - models[0])) * scale for model in models[1:]]
    used = [distance for distance in moved if distance > 1e-9]
    assert 0 < len(used) < 40
    assert max(used) <= 0.05 * (1 + 1e-9)
    assert min(used) > 0.0499


def test_a_round_without_gradients_is_the_noise_of_its_decay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = program("fed_cdp")
    plan = replace(
        system.planned("linear"), rounds=2, schedule=hs.schedules.Linear(0.25), local_steps=3
    )
    monkeypatch.setattr(
        system, "gradients", lambda weights, rows, labels: np.zeros((len(rows), len(weights)))
    )
    data = system.shards(plan.total_clients, "writer")
    model, _ = system.trained(plan, data, seed=6)
    clients, steps = plan.clients_per_round, plan.local_steps
    one = system.RATE * plan.noise_multiplier * system.NORM / plan.batch_size
    deviation = one * (steps * (1 + 0.25**2) / clients) ** 0.5
    assert stats.kstest(model / deviation, "norm").pvalue > 1e-4


def noted(models: list[np.ndarray], weights: np.ndarray) -> list[np.ndarray]:
    models.append(weights)
    return models


@pytest.mark.parametrize("noise_at", ["server", "clients"])
def test_one_client_moves_a_round_by_the_clipping_norm_over_the_cohort(
    noise_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One round without noise; the same bits draw the same cohort, with and without its data."""
    system, models = program("fed_sdp"), list[np.ndarray]()
    plan = replace(system.planned("nobody"), rounds=1, adjacency="zero-out", sampling="revealed")
    monkeypatch.setattr(system, "accuracy", lambda weights, *_: float(len(noted(models, weights))))
    data = system.shards(plan.total_clients, "writer")
    for client in range(-1, 12):
        monkeypatch.setattr(system, "shards", lambda *_, own=client: without(data, own))
        system.run(seed=1, noise_at=noise_at, plan=plan, norm=0.05)
    moved = [np.linalg.norm(model - models[0]) * plan.clients_per_round for model in models[1:]]
    drawn = [distance for distance in moved if distance > 0]
    assert 0 < len(drawn) < 12
    assert max(drawn) <= 0.05 * (1 + 1e-9)
    assert min(drawn) > 0.0499


@pytest.mark.parametrize("noise_at", ["server", "clients"])
def test_the_model_after_a_round_without_updates_is_the_plans_noise(
    noise_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, models = program("fed_sdp"), list[np.ndarray]()
    plan = replace(system.planned(noise_at), rounds=1)
    monkeypatch.setattr(system, "accuracy", lambda weights, *_: float(len(noted(models, weights))))
    monkeypatch.setattr(system, "local_update", lambda weights, *_: np.zeros_like(weights))
    for seed in range(5):
        system.run(seed=seed, noise_at=noise_at, plan=plan)
    messages = plan.clients_per_round if noise_at == "clients" else 1
    deviation = plan.noise_multiplier * system.NORM * messages**0.5 / plan.clients_per_round
    assert stats.kstest(np.concatenate(models) / deviation, "norm").pvalue > 1e-4


def test_one_record_moves_what_its_client_sends_by_its_clipped_gradient() -> None:
    """One step of all records without noise, in a federation of which all take part."""
    system = program("prifedsync")
    local = hs.federated.LocalTraining(
        examples=system.EXAMPLES, batch_size=system.EXAMPLES, noise_multiplier=0, local_steps=1
    )
    plan = hs.federated.PriFedSync(clients=local, rounds=1)
    data = system.shards(system.CLIENTS, "label", 1, system.EXAMPLES)
    sent = [
        system.trained(plan, without(data, client, 4), norm=0.05, seed=8)[1][2]["own"]
        for client in (-1, 2, 3)
    ]
    moved = [np.linalg.norm(one - sent[0]) * system.EXAMPLES / system.RATE for one in sent]
    assert moved[1] == pytest.approx(0.05, rel=1e-3)
    assert moved[1] <= 0.05 * (1 + 1e-9)
    assert moved[2] == 0.0


def test_far_more_clients_are_reached_than_theorem_1_counts() -> None:
    """The chance of being drawn in or after the other's first round, by hand for each pair."""
    system = program("prifedsync")
    rate, rounds = 0.05, 40
    share = np.mean([system.reach(rate, rounds, seed=seed) for seed in range(20)])
    first = rate * (1 - rate) ** np.arange(rounds)
    exact = float((first * (1 - (1 - rate) ** np.arange(rounds, 0, -1))).sum())
    assert share == pytest.approx(exact, abs=0.03)
    assert exact > 0.6 > 0.1 > system.claimed_reach(rate, rounds)


def made(path: Path, rows: Any, **changes: Any) -> Any:
    """Return one client of a plan without noise that draws all records."""
    system = program("asynchronous")
    plan = hs.DPSGD(noise_multiplier=0, examples=6, batch_size=6, steps=3, **changes)
    path.mkdir(exist_ok=True)
    return system.Clients(plan, [(rows, np.arange(6))], path, seed=2)


def answer(client: Any, kept: Any = None, **sent: Any) -> Any:
    told = {"dies": False, "cut": 3, "rate": 1.0, **sent}
    return client.answer(0, told, {} if kept is None else kept)["update"]


@pytest.mark.parametrize("place", range(6))
def test_a_record_moves_a_round_that_is_interrupted_by_its_own_gradient_alone(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn without it, the others are read with the models that they were read with before."""
    rng = np.random.default_rng(4)
    rows, model = rng.normal(size=(6, 65)), rng.normal(size=650) / 100
    sums = []
    for chosen in (np.arange(6), np.delete(np.arange(6), place)):
        client = made(tmp_path / str(len(chosen)), rows)
        monkeypatch.setattr(Sampler, "draw", lambda *_, own=chosen: own)
        sums.append(answer(client, within=model) * 6)
    assert 0.99 < np.linalg.norm(sums[0] - sums[1]) <= 1.0 + 1e-9


def test_a_killed_round_is_counted_and_never_run_again(tmp_path: Path) -> None:
    """What follows reads the journal anew, as a new process does."""
    rows, kept, reported = np.ones((6, 65)), dict[str, Any](), list[int]()
    for dies in (False, True, False):
        with pytest.raises(program("engines").LostError) if dies else nullcontext():
            answer(made(tmp_path / "client", rows), kept, dies=dies, restart=np.zeros(650))
        reported.append(int(made(tmp_path / "client", rows).answer(0, {}, kept)["counted"]))
    assert reported == [1, 2, 3]
    assert int(kept["sent"]) == 2
    with pytest.raises(hs.errors.BudgetExhausted):
        answer(made(tmp_path / "client", rows), kept)


def message(setting: str, points: Any, values: Any, folder: Path) -> Any:
    """Return what a client sends in the first round, always with the same bits."""
    system = program("clustered")
    folder.mkdir()
    _, center, _, _, epochs = system.SETTINGS[setting]
    clients = system.Clients(system.planned(setting), center, points, values, epochs, 3, folder)
    hypotheses = np.array([[0.0, 1.0], [0.0, -1.0]])
    return clients.answer(0, {"hypotheses": hypotheses, "round": 0}, {})["message"]


def test_whatever_the_data_messages_differ_by_no_more_than_the_radius(tmp_path: Path) -> None:
    """The noise of the same bits cancels: it depends on no data."""
    system = program("clustered")
    points = np.random.default_rng(1).normal(size=(1, 10, 2))
    values = [np.full((1, 10), size) for size in (0.0, 1e9, -1e9)]
    sent = [
        message("whatever the data", points, own, tmp_path / str(place))
        for place, own in enumerate(values)
    ]
    radius = system.planned("whatever the data").radius
    distances = [float(np.linalg.norm(one - other)) for one, other in pairwise(sent)]
    assert max(distances) == pytest.approx(radius, rel=1e-6)
    assert max(distances) <= radius * (1 + 1e-6)  # rounded to the grid of the noise


def test_a_client_sends_no_more_messages_than_its_journal_allows(tmp_path: Path) -> None:
    """Also in a new process that has its journal alone; a message is counted before it is made."""
    system = program("clustered")
    points, values, _ = system.people(1, np.random.default_rng(2))
    plan, sent = system.planned("within distance 2"), {"hypotheses": system.begun(2), "round": 0}
    made = [
        system.Clients(plan, "hypothesis", points, values, 3, 3, tmp_path).answer(0, sent, {})
        for _ in range(3)
    ]
    assert [list(answer) for answer in made] == [["message"], [], []]
    (tmp_path / "client-0.journal").unlink()
    with pytest.raises(TypeError, match="has no len"):
        system.Clients(plan, "hypothesis", points, [3.0], 3, 3, tmp_path).answer(0, sent, {})
    client = system.Clients(plan, "hypothesis", points, values, 3, 3, tmp_path)
    assert client.answer(0, sent, {}) == {}
