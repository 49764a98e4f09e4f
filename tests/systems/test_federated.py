"""What one record or client moves in the federated systems, and what their clients count."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.adapters.loop import Sampler
from hockeystick.release.federated import draw_clients
from hockeystick.release.samplers import secret_bits
from tests.release.bits import seeded
from tests.systems.programs import program, without

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


def test_a_record_moves_a_round_of_fed_cdp_by_its_clipped_gradient() -> None:
    """One step without noise; the same bits draw the same batches, with and without the record."""
    system = program("fed_cdp")
    plan = replace(system.planned("none"), rounds=1, local_steps=1)
    data, models = system.shards(plan.total_clients, "writer"), list[np.ndarray]()
    drawn = int(draw_clients(plan, bits=system.source(5))[0])
    for record in range(-1, 40):
        own = without(data, drawn if record >= 0 else -1, record)
        models.append(system.trained(plan, own, 5, norm=0.05)[0])
    scale = plan.clients_per_round * plan.batch_size / system.RATE
    moved = [float(np.linalg.norm(model - models[0])) * scale for model in models[1:]]
    used = [distance for distance in moved if distance > 1e-9]
    assert 0 < len(used) < 40
    assert max(used) <= 0.05 * (1 + 1e-9)
    assert min(used) > 0.0499


@pytest.mark.parametrize("noise_at", ["server", "clients"])
def test_one_client_moves_a_round_by_the_clipping_norm_over_the_cohort(noise_at: str) -> None:
    """One round without noise; the same bits draw the same cohort, with and without its data."""
    system = program("fed_sdp")
    plan = replace(system.planned("nobody"), rounds=1, adjacency="zero-out", sampling="revealed")
    data = system.shards(plan.total_clients, "writer")
    models = [
        system.trained(plan, without(data, client), noise_at, 1, norm=0.05)[0]
        for client in range(-1, 12)
    ]
    moved = [np.linalg.norm(model - models[0]) * plan.clients_per_round for model in models[1:]]
    drawn = [distance for distance in moved if distance > 0]
    assert 0 < len(drawn) < 12
    assert max(drawn) <= 0.05 * (1 + 1e-9)
    assert min(drawn) > 0.0499


def test_one_record_moves_what_its_client_sends_by_its_clipped_gradient() -> None:
    """One step of all records without noise, in a federation of which all take part."""
    system = program("prifedsync")
    local = hs.federated.LocalTraining(
        examples=system.EXAMPLES, batch_size=system.EXAMPLES, noise_multiplier=0, local_steps=1
    )
    plan = hs.federated.PriFedSync(clients=local, rounds=1)
    data = system.shards(system.CLIENTS, "label", 1, system.EXAMPLES)
    sent = [
        system.trained(plan, without(data, client, 4), 1.0, 8, norm=0.05)[0][2]
        for client in (-1, 2, 3)
    ]
    moved = [np.linalg.norm(one - sent[0]) * system.EXAMPLES / system.RATE for one in sent]
    assert moved[1] == pytest.approx(0.05, rel=1e-3)
    assert moved[1] <= 0.05 * (1 + 1e-9)
    assert moved[2] == 0.0


def made(journal: Path, rows: Any) -> Any:
    """Return one client of a plan without noise that draws all records."""
    plan = hs.DPSGD(noise_multiplier=0, examples=6, batch_size=6, steps=3)
    return program("asynchronous").Client(plan, rows, np.arange(6), journal, seed=2)


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
        client.arrived = model
        monkeypatch.setattr(Sampler, "draw", lambda *_, own=chosen: own)
        sums.append(client.round(1.0, cut=3) * 6)
    assert 0.99 < np.linalg.norm(sums[0] - sums[1]) <= 1.0 + 1e-9


def test_a_killed_round_is_counted_and_never_run_again(tmp_path: Path) -> None:
    """What follows reads the journal anew, as a new process does."""
    rows = np.ones((6, 65))
    for dies in (False, True, False):
        found = made(tmp_path / "journal", rows).round(1.0, dies=dies, cut=3)
        assert (found is None) == dies
    with pytest.raises(hs.errors.BudgetExhausted):
        made(tmp_path / "journal", rows).round(1.0, cut=3)


@pytest.mark.parametrize("setting", ["whatever the data", "within distance 2"])
def test_messages_of_one_hypothesis_differ_by_no_more_than_the_radius(setting: str) -> None:
    """The noise of the same bits cancels: it depends on no data."""
    system = program("clustered")
    training = system.Training(system.SETTINGS[setting], 3)
    training.hypotheses = np.array([[0.0, 1.0]])
    points = np.random.default_rng(1).normal(size=(10, 2))
    sent = [training.message(0, points, np.full(10, size), seeded(3)) for size in (0.0, 1e9, -1e9)]
    radius = training.plan.radius
    distances = [float(np.linalg.norm(one - other)) for one, other in pairwise(sent)]
    assert max(distances) == pytest.approx(radius, rel=1e-6)
    assert max(distances) <= radius * (1 + 1e-6)  # rounded to the grid of the noise


def test_a_client_and_the_server_have_words_of_their_own() -> None:
    """Words of 0 at the end of a seed change nothing in numpy: those of client 0, round 0."""
    source = program("digits").source
    first = {(whose, int(source(7, *whose)())) for whose in [(), (0,), (0, 0), (0, 1), (1, 0)]}
    assert len({word for _, word in first}) == 5
    assert source(None) is secret_bits
    assert source(5)(4).tolist() == source(5)(4).tolist() != source(6)(4).tolist()


@pytest.mark.parametrize("split", ["writer", "label", "even"])
def test_each_record_is_at_one_client_and_no_test_record_is(split: str) -> None:
    system = program("digits")
    data = system.shards(24, split, seed=3)
    rows = np.vstack([rows for rows, _ in data] + [system.digits().test_rows])
    assert len({row.tobytes() for row in rows}) == len(rows)
    assert {len(labels) for _, labels in data} == {59 - (split == "label")}
    kinds = np.mean([len(set(labels)) for _, labels in data])
    assert (kinds < 4) == (split == "label")
