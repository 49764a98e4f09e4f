"""PriFedSync: clients train privately on their own records, and each gets a model of its own.

    python examples/systems/table.py --only prifedsync

Zheng, Chen, Long and Su, "Federated f-Differential Privacy", AISTATS 2021, algorithms 1 and 2: in
each round coins draw clients, each runs noisy steps from its helper model, and the server mixes
what they send. A client's helper model is part its own and part the global one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from digits import WEIGHTS, Outcome, Settings, accuracy, digits, noted_gradients, shards, source

import hockeystick as hs
from hockeystick.release.federated import ClientTraining, draw_clients

SYSTEM = "PriFedSync"
CLIENTS, EXAMPLES, BATCH, LOCAL_STEPS, ROUNDS, CLIENT_RATE = 12, 118, 59, 4, 15, 0.5
NORM, RATE = 1.0, 2.0
OWN_SHARES, SERVER_SHARE = {"personal": 0.5, "global": 0.0}, 1.0  # 1 - alpha and eta of the paper
EPSILON, DELTA = 8.0, 1e-4


def trained(
    plan: hs.federated.PriFedSync, data: Any, own_share: float, seed: int | None, norm: float = NORM
) -> tuple[dict[int, Any], list[int]]:
    """Return the clients' helper models after all rounds, and the sizes of all batches.

    The mean of what clients send is mixed into the global model, and that into what they had sent.
    """
    model, helpers, bits = np.zeros(WEIGHTS), dict[int, Any](), source(seed)
    sizes = list[int]()
    with TemporaryDirectory() as folder:
        for index in range(plan.rounds):
            sent = {}
            for client in draw_clients(plan, len(data), bits=bits).tolist():
                of_records = partial(noted_gradients, data[client], sizes)
                training = ClientTraining(
                    plan,
                    len(data[client][1]),
                    norm,
                    client=client,
                    journal=Path(folder, f"client-{client}.journal"),
                    bits=source(seed, client, index),
                )
                begun = helpers.get(client, np.zeros(WEIGHTS))
                sent[client] = training.train(begun, of_records, learning_rate=RATE)
                training.close()
            if sent:
                mean = np.mean(list(sent.values()), axis=0)
                model = (1 - SERVER_SHARE) * model + SERVER_SHARE * mean
            for client, own in sent.items():
                helpers[client] = own_share * own + (1 - own_share) * model
    return helpers, sizes


def local(noise: float, rounds: int = 1) -> hs.federated.LocalTraining:
    """Return what a client runs in so many rounds."""
    return hs.federated.LocalTraining(
        examples=EXAMPLES,
        batch_size=BATCH,
        noise_multiplier=noise,
        local_steps=LOCAL_STEPS * rounds,
    )


@cache
def planned(epsilon: float | None = EPSILON) -> hs.federated.PriFedSync:
    """Return the plan with the least noise that meets a budget for a client of every round."""
    noise = 0.0
    if epsilon is not None:
        target = hs.ApproxDP(epsilon, DELTA)
        noise = hs.calibrate(local(2.0, ROUNDS), "noise_multiplier", target).value
    return hs.federated.PriFedSync(clients=local(noise), rounds=ROUNDS, client_rate=CLIENT_RATE)


def read(data: Any, helpers: Mapping[int, Any]) -> dict[str, float]:
    """Return the mean accuracy of the helper models, each on the labels of its client."""
    shares, tested = [], digits()
    for client, (_, labels) in enumerate(data):
        own = np.isin(tested.test_labels, labels)
        helper = helpers.get(client, np.zeros(WEIGHTS))
        shares.append(accuracy(helper, tested.test_rows[own], tested.test_labels[own]))
    return {"accuracy": float(np.mean(shares))}


def run(seed: int | None = 0, *, models: str, split: str = "label") -> Outcome:
    """Train once with noise and once without, and return what came out."""
    plan, data = planned(), shards(CLIENTS, split, seed or 0, EXAMPLES)
    helpers, sizes = trained(plan, data, OWN_SHARES[models], seed)
    openly, _ = trained(planned(None), data, OWN_SHARES[models], seed)
    spent = hs.epsilon(plan, DELTA).upper
    return Outcome(
        read(data, helpers),
        read(data, openly),
        spent,
        DELTA,
        {"budget": spent <= EPSILON, "batches": set(sizes) == {BATCH}},
    )


def settings() -> Settings:
    """Return what the system is shown in."""
    return {f"{models} models": partial(run, models=models) for models in OWN_SHARES}
