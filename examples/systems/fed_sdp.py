"""Fed-SDP: federated training that hides clients, with noise at the server or at the clients.

    python examples/systems/fed_sdp.py --seeds 5

Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023,
section 4: each round draws clients, each trains on its own records, the change of its model is
clipped, and noise is added once a round at the server, or in full by each client.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from digits import (
    Outcome,
    Setting,
    Shards,
    accuracy,
    arguments,
    gradients,
    shards,
    show_lines,
    source,
)
from engines import ENGINES, Arrays, Ask, alike, carried

import hockeystick as hs
from hockeystick.release.federated import ClientRounds, noisy_update

SYSTEM = "Fed-SDP"
CLIENTS, COHORT, ROUNDS = 143, 48, 40
NORM, LOCAL_STEPS, LOCAL_RATE, SERVER_RATE = 1.0, 5, 0.5, 1.0
DELTA = 1e-3
PLACES = ("server", "clients", "nobody")


def planned(noise_at: str, epsilon: float = 8.0) -> hs.federated.FedSDP:
    """Return the plan with the least noise that meets a budget.

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
    found = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(epsilon, DELTA)).plan
    assert isinstance(found, hs.federated.FedSDP)
    return found


def local_update(weights: Any, records: Any, labels: Any) -> Any:
    """Return the change of a client's model after some steps on all of its records."""
    own = weights.copy()
    for _ in range(LOCAL_STEPS):
        own -= LOCAL_RATE * gradients(own, records, labels).mean(axis=0)
    return own - weights


def answer(
    data: Shards,
    plan: hs.federated.FedSDP,
    norm: float,
    noise_at: str,
    seed: int | None,
    client: int,
    sent: Arrays,
    kept: Arrays,
) -> Arrays:
    """Return the change that a client sends, clipped and with noise where it adds it itself."""
    update = local_update(sent["model"], *data.clients[client])
    if noise_at == "clients":
        bits = source(seed, client, int(sent["round"]))
        update = noisy_update(plan, update, norm, bits=bits)
    return {"update": update}


def serve(rounds: ClientRounds, size: int, ask: Ask) -> tuple[Any, int, int]:
    """Run all rounds; return the model, how many clients were drawn, and how many were summed."""
    model, drawn, summed = np.zeros(size), 0, 0
    for _ in range(rounds.plan.rounds):
        cohort = rounds.draw()
        answers = ask(alike(cohort.clients, model=model, round=rounds.counted))
        cohort.accept_all((client, own["update"]) for client, own in answers.items())
        drawn, summed = drawn + len(cohort.clients), summed + len(cohort.answered)
        model = model + SERVER_RATE * cohort.release()
    return model, drawn, summed


def run(
    seed: int | None = 0,
    *,
    noise_at: str = "server",
    split: str = "writer",
    plan: hs.federated.FedSDP | None = None,
    norm: float = NORM,
    engine: str = "loop",
) -> Outcome:
    """Train once and return what came out."""
    plan = planned(noise_at) if plan is None else plan
    data = shards(plan.total_clients, split, seed or 0)
    size = 10 * data.features.shape[1]
    place = "clients" if noise_at == "clients" else "server"
    rounds = ClientRounds(plan, size, norm, noise_at=place, bits=source(seed))
    model, drawn, summed = carried(
        engine,
        partial(serve, rounds, size),
        partial(answer, data, plan, norm, place, seed),
        plan.total_clients,
    )
    private = plan.noise_multiplier > 0
    spent = hs.epsilon(rounds.released, DELTA).upper if private else float("inf")
    return Outcome(
        f"Fed-SDP, noise at {noise_at}, {split}",
        {"accuracy": accuracy(model, data.features, data.labels)},
        str(rounds.released),
        spent,
        DELTA,
        {
            "answers": summed == drawn,
            "rounds": rounds.released == plan,
            "cohorts": abs(drawn - plan.rounds * plan.clients_per_round) < 5 * drawn**0.5,
        },
    )


def settings(split: str = "writer", engine: str = "loop") -> dict[str, Setting]:
    """Return what the system is shown in."""
    return {
        f"noise at {place}": Setting(
            partial(run, noise_at=place, split=split, engine=engine), beside="noise at nobody"
        )
        for place in PLACES
    }


def main() -> None:
    """Train with noise at the server, at the clients and nowhere, and say what came out."""
    asked = arguments(__doc__, "writer", "label", "even", engines=ENGINES).parse_args()
    show_lines(settings(asked.split, asked.engine), asked.seed, asked.seeds)


if __name__ == "__main__":
    main()
