"""Fed-CDP and Fed-alphaCDP on digits: what they learn and cost, and what one record moves."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
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


def test_one_record_moves_a_round_by_its_clipped_gradient() -> None:
    """One step without noise; the same bits draw the same batches, with and without the record."""
    system = program("fed_cdp")
    plan = replace(system.planned("none"), rounds=1, local_steps=1)
    data, models = system.digits(plan.total_clients, "writer"), list[np.ndarray]()
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
    data = system.digits(plan.total_clients, "writer")
    model, _ = system.trained(plan, data, seed=6)
    clients, steps = plan.clients_per_round, plan.local_steps
    one = system.RATE * plan.noise_multiplier * system.NORM / plan.batch_size
    deviation = one * (steps * (1 + 0.25**2) / clients) ** 0.5
    assert stats.kstest(model / deviation, "norm").pvalue > 1e-4
