"""Fed-SDP on digits: what it learns, what it costs, and how far one client moves the model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.systems.programs import program, without

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


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
    data = system.digits(plan.total_clients, "writer")
    for client in range(-1, 12):
        monkeypatch.setattr(system, "digits", lambda *_, own=client: without(data, own))
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
