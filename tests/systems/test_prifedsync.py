"""PriFedSync on digits: personal models, what each client pays, and what theorem 1 leaves out."""

import numpy as np
import pytest

import hockeystick as hs
from tests.systems.programs import program, without

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


def test_one_record_moves_what_its_client_sends_by_its_clipped_gradient() -> None:
    """One step of all records without noise, in a federation of which all take part."""
    system = program("prifedsync")
    local = hs.federated.LocalTraining(
        examples=system.EXAMPLES, batch_size=system.EXAMPLES, noise_multiplier=0, local_steps=1
    )
    plan = hs.federated.PriFedSync(clients=local, rounds=1)
    data = system.digits(system.CLIENTS, "label", 1, system.EXAMPLES)
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
