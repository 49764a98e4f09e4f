"""PriFedSync: clients train privately on their own records, and each gets a model of its own.

    python examples/systems/prifedsync.py --seeds 5

Zheng, Chen, Long and Su, "Federated f-Differential Privacy", AISTATS 2021, algorithms 1 and 2: in
each round coins draw clients, each runs noisy steps from its helper model, and the server mixes
what they send. A client's helper model is part its own and part the global one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from click import echo
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
from engines import ENGINES, Arrays, Ask, alike, carried, rows_of

import hockeystick as hs
from hockeystick.release.federated import ClientTraining, draw_clients
from hockeystick.release.samplers import Bits

SYSTEM = "PriFedSync"
CLIENTS, EXAMPLES, BATCH, LOCAL_STEPS, ROUNDS, CLIENT_RATE = 12, 118, 59, 4, 15, 0.5
NORM, RATE = 1.0, 2.0
OWN_SHARE, SERVER_SHARE = 0.5, 1.0  # 1 - alpha and eta of the paper
DELTA = 1e-4
Served = tuple[Any, dict[int, Arrays]]
MODELS = ("personal", "global")


def local(noise: float, rounds: int = 1) -> hs.federated.LocalTraining:
    """Return what a client runs in so many rounds."""
    return hs.federated.LocalTraining(
        examples=EXAMPLES,
        batch_size=BATCH,
        noise_multiplier=noise,
        local_steps=LOCAL_STEPS * rounds,
    )


def planned(epsilon: float | None = 8.0) -> hs.federated.PriFedSync:
    """Return the plan with the least noise that meets a budget for a client of every round."""
    noise = 0.0
    if epsilon is not None:
        target = hs.ApproxDP(epsilon, DELTA)
        noise = hs.calibrate(local(2.0, ROUNDS), "noise_multiplier", target).value
    return hs.federated.PriFedSync(clients=local(noise), rounds=ROUNDS, client_rate=CLIENT_RATE)


@dataclass(frozen=True)
class Clients:
    """What the clients of a run hold, and where each counts its rounds.

    A client's helper model stays with it.
    """

    plan: hs.federated.PriFedSync
    data: Shards
    norm: float
    own_share: float
    seed: int | None
    folder: Path

    def answer(self, client: int, sent: Arrays, kept: Arrays) -> Arrays:
        """Train from the helper model, or mix it anew with the global model that came.

        Where nothing came it tells its helper model and what is compared with the account.
        """
        if "round" in sent:
            return self.update(client, int(sent["round"]), kept)
        if "model" in sent:
            kept["helper"] = self.own_share * kept["own"] + (1 - self.own_share) * sent["model"]
            return {}
        return kept

    def update(self, client: int, index: int, kept: Arrays) -> Arrays:
        """Return the model that a client sends, all of it computed from noisy sums."""
        rows, labels = self.data.clients[client]
        sizes = list[int]()

        def of_records(own: Any, chosen: Any) -> Any:
            sizes.append(len(chosen))
            return gradients(own, rows[chosen], labels[chosen])

        bits, path = source(self.seed, client, index), self.folder / f"client-{client}.journal"
        run = ClientTraining(
            self.plan, len(labels), self.norm, client=client, journal=path, bits=bits
        )
        begun = kept.get("helper", np.zeros(10 * rows.shape[1]))
        kept["own"] = run.train(begun, of_records, learning_rate=RATE)
        run.close()
        kept["batches"] = np.append(kept.get("batches", np.zeros(0, int)), sizes)
        kept["counted"] = np.array(run.counted)
        return {"own": kept["own"]}


def serve(plan: hs.federated.PriFedSync, size: int, clients: int, bits: Bits, ask: Ask) -> Served:
    """Algorithm 1: the mean of what clients send is mixed into the global model, and sent back."""
    model = np.zeros(size)
    for index in range(plan.rounds):
        cohort = draw_clients(plan, clients, bits=bits).tolist()
        models = rows_of(ask(alike(cohort, round=index)), "own", size)
        if not models:
            continue
        mean = np.mean(list(models.values()), axis=0)
        model = (1 - SERVER_SHARE) * model + SERVER_SHARE * mean
        ask(alike(models, model=model))
    return model, ask(alike(range(clients)))


def trained(
    plan: hs.federated.PriFedSync,
    data: Shards,
    norm: float = NORM,
    own_share: float = OWN_SHARE,
    seed: int | None = 0,
    engine: str = "loop",
) -> Served:
    """Return the global model of a run, and what its clients tell of themselves."""
    count, size = len(data.clients), 10 * data.features.shape[1]
    server = partial(serve, plan, size, count, source(seed))
    with TemporaryDirectory() as folder:
        clients = Clients(plan, data, norm, own_share, seed, Path(folder))
        return carried(engine, server, clients.answer, count)


def read(data: Shards, told: Mapping[int, Arrays]) -> float:
    """Return the mean accuracy of the helper models, each on the labels of its client."""
    untrained = np.zeros(10 * data.features.shape[1])
    shares = []
    for client, (_, labels) in enumerate(data.clients):
        own = np.isin(data.labels, labels)
        helper = told[client].get("helper", untrained)
        shares.append(accuracy(helper, data.features[own], data.labels[own]))
    return float(np.mean(shares))


def run(
    seed: int | None = 0,
    *,
    models: str = "personal",
    split: str = "label",
    plan: hs.federated.PriFedSync | None = None,
    norm: float = NORM,
    engine: str = "loop",
) -> Outcome:
    """Train once and return what came out."""
    plan = planned() if plan is None else plan
    data = shards(CLIENTS, split, seed or 0, EXAMPLES)
    own_share = OWN_SHARE if models == "personal" else 0.0
    _, told = trained(plan, data, norm, own_share, seed, engine)
    private = plan.settings[0].noise_multiplier > 0
    ran = [own for own in told.values() if own]
    return Outcome(
        f"PriFedSync, {models} models, {split}" + ("" if private else ", no noise"),
        {"accuracy": read(data, told)},
        str(plan),
        hs.epsilon(plan, DELTA).upper if private else float("inf"),
        DELTA,
        {
            "rounds": all(own["counted"] <= plan.rounds for own in ran),
            "batches": {size for own in ran for size in own["batches"]} == {BATCH},
            "views": not private
            or hs.tradeoff(plan, view="one-client") == hs.tradeoff(plan, view="all-clients"),
        },
    )


def claimed_reach(client_rate: float, rounds: int) -> float:
    """Return theorem 1's bound on the chance that a client sees anything of another at all."""
    return 1.0 - (1.0 - client_rate**2) ** rounds


def reach(client_rate: float, rounds: int, clients: int = 40, seed: int = 0) -> float:
    """Return the share of pairs of which the first was sent a model that the second had entered.

    All clients that are drawn enter the server's model, which keeps what it had (eta below 1).
    """
    local = hs.federated.LocalTraining(
        examples=1, batch_size=1, noise_multiplier=1.0, local_steps=1
    )
    plan = hs.federated.PriFedSync(clients=local, rounds=rounds, client_rate=client_rate)
    inside, reached = np.zeros(clients, dtype=bool), np.zeros((clients, clients), dtype=bool)
    bits = source(seed)
    for _ in range(rounds):
        cohort = draw_clients(plan, clients, bits=bits)
        inside[cohort] = True
        reached[cohort] |= inside
    return float(reached[~np.eye(clients, dtype=bool)].mean())


def settings(split: str = "label", engine: str = "loop") -> dict[str, Setting]:
    """Return what the system is shown in."""
    plans = {"": planned(), ", no noise": planned(None)}
    return {
        f"{models} models{noise}": Setting(
            partial(run, models=models, split=split, plan=plan, engine=engine),
            beside=f"{models} models, no noise",
        )
        for noise, plan in plans.items()
        for models in MODELS
    }


def main() -> None:
    """Train personal and global models with and without noise, and say what came out."""
    asked = arguments(__doc__, "label", "writer", "even", engines=ENGINES).parse_args()
    show_lines(settings(asked.split, asked.engine), asked.seed, asked.seeds)
    rate, rounds = 0.05, 40
    echo(
        f"with client rate {rate} and {rounds} rounds, {reach(rate, rounds):.0%} of clients were "
        f"sent what another had entered; theorem 1 counts {claimed_reach(rate, rounds):.0%}"
    )


if __name__ == "__main__":
    main()
