"""PriFedSync on digits: personal models, what each client pays, and what theorem 1 leaves out."""

from dataclasses import replace

import numpy as np
import pytest

import hockeystick as hs
from tests.systems.programs import program, without

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


def test_personal_models_learn_more_where_clients_differ() -> None:
    system = program("prifedsync")
    plan = system.planned()
    found = {models: system.run(1, models=models, plan=plan) for models in system.MODELS}
    for outcome in found.values():
        assert outcome.checks == {"rounds": True, "batches": True, "views": True}
        assert 7.99 < outcome.epsilon <= 8.0
    accuracies = {models: outcome.result["accuracy"] for models, outcome in found.items()}
    assert accuracies["personal"] > accuracies["global"] + 0.1 > 0.7


def test_each_client_pays_for_the_rounds_that_it_ran() -> None:
    system = program("prifedsync")
    plan = system.planned()
    data = system.digits(system.CLIENTS, "label", 1, system.EXAMPLES)
    _, told = system.trained(plan, data, seed=7)
    counts = [int(own["counted"]) for own in told.values()]
    assert abs(np.mean(counts) - 7.5) < 2
    assert len(set(counts)) > 1
    most = hs.epsilon(plan, system.DELTA).upper
    costs = {count: plan.settings[0] ** count for count in counts}
    spent = {count: hs.epsilon(own, system.DELTA).upper for count, own in costs.items()}
    assert sorted(spent) == sorted(spent, key=lambda count: spent[count])
    assert max(spent.values()) < most


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


def test_an_empty_round_changes_nothing() -> None:
    system = program("prifedsync")
    plan = replace(system.planned(), client_rate=1e-9)
    data = system.digits(system.CLIENTS, "label", 1, system.EXAMPLES)
    model, told = system.trained(plan, data, seed=7)
    assert not model.any()
    assert list(told) == list(range(system.CLIENTS))
    assert not any(told.values())


def test_a_helper_model_is_part_own_and_part_global_and_stays_at_the_client() -> None:
    """What a client keeps is its helper model; what it sends is what it trained."""
    system = program("prifedsync")
    plan = replace(system.planned(), rounds=1, client_rate=1)
    data = system.digits(system.CLIENTS, "label", 1, system.EXAMPLES)
    model, told = system.trained(plan, data, own_share=0.25, seed=7)
    for own in told.values():
        assert np.array_equal(own["helper"], 0.25 * own["own"] + 0.75 * model)
    assert model == pytest.approx(np.mean([own["own"] for own in told.values()], axis=0))
