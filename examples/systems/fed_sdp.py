"""Fed-SDP: federated training that hides clients, with noise at the server or at the clients.

    python examples/systems/table.py --only fed_sdp

Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023,
section 4: each round draws clients, each trains on its own records, the change of its model is
clipped, and noise is added once a round at the server, or in full by each client.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from digits import WEIGHTS, Outcome, Settings, digits, gradients, shards, source

import hockeystick as hs
from hockeystick.release.federated import ClientRounds, noisy_update

SYSTEM = "Fed-SDP"
CLIENTS, COHORT, ROUNDS = 143, 48, 40
NORM, LOCAL_STEPS, LOCAL_RATE, SERVER_RATE = 1.0, 5, 0.5, 1.0
EPSILON, DELTA = 8.0, 1e-3


def trained(
    plan: hs.federated.FedSDP, data: Any, noise_at: str, seed: int | None, norm: float = NORM
) -> tuple[Any, ClientRounds, dict[str, bool]]:
    """Return the model of all rounds, their counter, and what was compared with the account."""
    rounds = ClientRounds(plan, WEIGHTS, norm, noise_at=noise_at, bits=source(seed))
    model, drawn, summed = np.zeros(WEIGHTS), 0, 0
    for _ in range(plan.rounds):
        cohort = rounds.draw()
        for client in cohort.clients:
            update = local_update(model, *data[client])
            if noise_at == "clients":
                bits = source(seed, client, rounds.counted)
                update = noisy_update(plan, update, norm, bits=bits)
            cohort.accept(client, update)
        drawn, summed = drawn + len(cohort.clients), summed + len(cohort.answered)
        model = model + SERVER_RATE * cohort.release()
    return (
        model,
        rounds,
        {
            "answers": summed == drawn,
            "rounds": rounds.released == plan,
            "cohorts": abs(drawn - plan.rounds * plan.clients_per_round) < 5 * drawn**0.5,
        },
    )


def local_update(weights: Any, records: Any, labels: Any) -> Any:
    """Return the change of a client's model after some steps on all of its records."""
    own = weights.copy()
    for _ in range(LOCAL_STEPS):
        own -= LOCAL_RATE * gradients(own, records, labels).mean(axis=0)
    return own - weights


@cache
def planned(noise_at: str) -> hs.federated.FedSDP:
    """Return the plan with the least noise that meets the budget.

    Noise at the server hides who takes part from whom the model is given to; a message that is
    noisy by itself shows whose it is, so that the account is "revealed".
    """
    hidden = noise_at != "clients"
    plan = hs.federated.FedSDP(
        noise_multiplier=1.0,
        total_clients=CLIENTS,
        clients_per_round=COHORT,
        rounds=ROUNDS,
        sampling="poisson" if hidden else "revealed",
        adjacency="add-remove" if hidden else "zero-out",
    )
    if noise_at == "nobody":
        return replace(plan, noise_multiplier=0.0)
    found = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(EPSILON, DELTA)).plan
    assert isinstance(found, hs.federated.FedSDP)
    return found


@cache
def openly(seed: int | None) -> dict[str, float]:
    """Return the accuracy without noise."""
    data = shards(CLIENTS, "writer", seed or 0)
    return {"accuracy": digits().accuracy(trained(planned("nobody"), data, "server", seed)[0])}


def run(seed: int | None = 0, *, noise_at: str) -> Outcome:
    """Train once and return what came out."""
    data = shards(CLIENTS, "writer", seed or 0)
    model, rounds, checks = trained(planned(noise_at), data, noise_at, seed)
    result = {"accuracy": digits().accuracy(model)}
    return Outcome(result, openly(seed), hs.epsilon(rounds.released, DELTA).upper, DELTA, checks)


def settings() -> Settings:
    """Return what the system is shown in."""
    return {f"noise at {place}": partial(run, noise_at=place) for place in ("server", "clients")}
