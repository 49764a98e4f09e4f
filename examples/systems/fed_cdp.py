"""Fed-CDP and Fed-alphaCDP: federated training that hides records, its noise constant or falling.

    python examples/systems/table.py --only fed_cdp

Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023,
sections 4 to 6: each round draws clients, each runs local steps, and each step adds noise to the
sum of clipped gradients. With Fed-alphaCDP the noise falls from round to round, by four laws.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from digits import WEIGHTS, Outcome, Settings, digits, noted_gradients, shards, source

import hockeystick as hs
from hockeystick.release.federated import ClientTraining, draw_clients

SYSTEM = "Fed-CDP, Fed-alphaCDP"
CLIENTS, COHORT, EXAMPLES, BATCH, LOCAL_STEPS, ROUNDS = 24, 8, 59, 20, 4, 25
NORM, RATE = 1.0, 2.0
DELTA = 1e-4
END = 4.85 / 15.0  # how far the paper's noise falls
SCHEDULES: dict[str, Any] = {
    "constant": None,
    "linear": hs.schedules.Linear(END),
    "staircase": hs.schedules.Staircase(END, stairs=5),
    "exponential": hs.schedules.Exponential(END),
    "cyclic": hs.schedules.Cyclic(floor=END, cycles=2),
}
# The noise of the first round with which all of these cost (8, 1e-4), rounded up; found by
# hs.calibrate(planned(decay, sampling, 1.0), "noise_multiplier", hs.ApproxDP(8, 1e-4)).
NOISES = {
    "two-stage-poisson": (1.5122, 3.0134, 3.3216, 3.2393, 2.9772),
    "poisson": (0.9185, 1.9074, 2.1089, 2.0318, 1.8867),
}


def trained(
    plan: hs.federated.FedAlphaCDP, data: Any, seed: int | None, norm: float = NORM
) -> tuple[Any, list[int]]:
    """Return the model of all rounds, and the sizes of all batches.

    A client's model is computed from noisy sums alone; the mean of those that are sent is the next.
    """
    model, bits, sizes = np.zeros(WEIGHTS), source(seed), list[int]()
    with TemporaryDirectory() as folder:
        for index in range(plan.rounds):
            sent = []
            for client in draw_clients(plan, bits=bits).tolist():
                of_records = partial(noted_gradients, data[client], sizes)
                training = ClientTraining(
                    plan,
                    len(data[client][1]),
                    norm,
                    client=client,
                    journal=Path(folder, f"client-{client}.journal"),
                    bits=source(seed, client, index),
                )
                sent.append(
                    training.train(model, of_records, learning_rate=RATE, round_index=index)
                )
                training.close()
            if sent:
                model = np.mean(sent, axis=0)
    return model, sizes


def planned(
    decay: str, sampling: str = "two-stage-poisson", noise: float | None = None
) -> hs.federated.FedAlphaCDP:
    """Return the plan of a decay; "none" is without noise."""
    found = dict(zip(SCHEDULES, NOISES[sampling], strict=True)).get(decay, 0.0)
    return hs.federated.FedAlphaCDP(
        noise_multiplier=found if noise is None else noise,
        total_clients=CLIENTS,
        clients_per_round=COHORT,
        examples_per_client=EXAMPLES,
        batch_size=BATCH,
        local_steps=LOCAL_STEPS,
        rounds=ROUNDS,
        sampling=sampling,
        schedule=SCHEDULES.get(decay),
    )


@cache
def openly(seed: int | None, sampling: str, split: str) -> dict[str, float]:
    """Return the accuracy without noise."""
    data = shards(CLIENTS, split, seed or 0)
    return {"accuracy": digits().accuracy(trained(planned("none", sampling), data, seed)[0])}


def run(
    seed: int | None = 0, *, decay: str, sampling: str = "two-stage-poisson", split: str = "writer"
) -> Outcome:
    """Train once and return what came out."""
    plan = planned(decay, sampling)
    data = shards(CLIENTS, split, seed or 0)
    model, sizes = trained(plan, data, seed)
    everybody = sampling == "poisson"
    rate = plan.rate if everybody else plan.local_rate
    expected = float(len(sizes) * rate * len(data[0][1]))
    clients = CLIENTS if everybody else COHORT
    return Outcome(
        {"accuracy": digits().accuracy(model)},
        openly(seed, sampling, split),
        hs.epsilon(plan, DELTA).upper,
        DELTA,
        {
            "steps": len(sizes) == ROUNDS * clients * LOCAL_STEPS,
            "batches": bool(abs(sum(sizes) - expected) < 5 * expected**0.5),
        },
    )


def settings() -> Settings:
    """Return what the system is shown in."""
    return {f"noise {decay}": partial(run, decay=decay) for decay in SCHEDULES}
