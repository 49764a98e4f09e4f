"""PriFedSync: clients train privately on their own records, and each gets a model of its own.

    python examples/systems/prifedsync.py --seeds 5

Zheng, Chen, Long and Su, "Federated f-Differential Privacy", AISTATS 2021, algorithms 1 and 2: in
each round coins draw clients, each runs noisy steps from its helper model, and the server mixes
what they send. A client's helper model is part its own and part the global one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from click import echo
from outcomes import Outcome, Setting, show_lines
from shards import Shards, accuracy, arguments, digits, gradients, source

import hockeystick as hs
from hockeystick.release.federated import ClientTraining, draw_clients

SYSTEM = {
    "name": "PriFedSync",
    "paper": "Zheng et al. 2021 (004)",
    "algorithm": "algorithms 1 and 2, with personal models (equation 2.1)",
    "command": "python examples/systems/prifedsync.py --seeds 5",
    "check": "rounds of each client counted, batches of the plan's size, both views have one f",
}
CLIENTS, EXAMPLES, BATCH, LOCAL_STEPS, ROUNDS, CLIENT_RATE = 12, 118, 59, 4, 15, 0.5
NORM, RATE = 1.0, 2.0
OWN_SHARE, SERVER_SHARE = 0.5, 1.0  # 1 - alpha and eta of the paper
DELTA = 1e-4
MODELS = ("personal", "global")


def planned(epsilon: float = 8.0) -> hs.federated.PriFedSync:
    """Return the plan with the least noise that meets a budget for a client of every round."""
    local = hs.federated.LocalTraining(
        examples=EXAMPLES, batch_size=BATCH, noise_multiplier=2.0, local_steps=LOCAL_STEPS
    )
    steps = hs.federated.LocalTraining(
        examples=local.examples,
        batch_size=BATCH,
        noise_multiplier=2.0,
        local_steps=LOCAL_STEPS * ROUNDS,
    )
    found = hs.calibrate(steps, "noise_multiplier", hs.ApproxDP(epsilon, DELTA)).plan
    assert isinstance(found, hs.federated.LocalTraining)
    return _with_noise(found.noise_multiplier)


def _with_noise(noise: float) -> hs.federated.PriFedSync:
    """Return the plan with a noise multiplier."""
    local = hs.federated.LocalTraining(
        examples=EXAMPLES, batch_size=BATCH, noise_multiplier=noise, local_steps=LOCAL_STEPS
    )
    return hs.federated.PriFedSync(clients=local, rounds=ROUNDS, client_rate=CLIENT_RATE)


class Federation:
    """Algorithm 1: the clients' helper models, the global model, and what is sent between them."""

    def __init__(
        self, plan: hs.federated.PriFedSync, data: Shards, norm: float, own_share: float, bits: Any
    ) -> None:
        self.plan, self.data, self.bits, self.own_share = plan, data, bits, own_share
        size = 10 * data.features.shape[1]
        self.model, self.helpers = np.zeros(size), np.zeros((len(data.clients), size))
        self.runs = [
            ClientTraining(plan, len(labels), norm, client=number, bits=bits)
            for number, (_, labels) in enumerate(data.clients)
        ]
        self.batches: set[int] = set()

    def update(self, weights: Any, client: int) -> Any:
        """Return the model that a client sends, all of it computed from noisy sums."""
        rows, labels = self.data.clients[client]

        def of_records(own: Any, chosen: Any) -> Any:
            self.batches.add(len(chosen))
            return gradients(own, rows[chosen], labels[chosen])

        return self.runs[client].train(weights, of_records, learning_rate=RATE)

    def synchronise(self) -> None:
        """Run one round; where nobody is drawn, nothing changes."""
        cohort = draw_clients(self.plan, len(self.data.clients), bits=self.bits).tolist()
        if not cohort:
            return
        sent = {client: self.update(self.helpers[client], client) for client in cohort}
        mean = np.mean(list(sent.values()), axis=0)
        self.model = (1 - SERVER_SHARE) * self.model + SERVER_SHARE * mean
        for client, own in sent.items():
            self.helpers[client] = self.own_share * own + (1 - self.own_share) * self.model

    def read(self) -> float:
        """Return the mean accuracy of the helper models, each on the labels of its client."""
        shares = []
        for helper, (_, labels) in zip(self.helpers, self.data.clients, strict=True):
            own = np.isin(self.data.labels, labels)
            shares.append(accuracy(helper, self.data.features[own], self.data.labels[own]))
        return float(np.mean(shares))


def run(
    seed: int | None = 0,
    *,
    models: str = "personal",
    split: str = "label",
    plan: hs.federated.PriFedSync | None = None,
    norm: float = NORM,
) -> Outcome:
    """Train once and return what came out.

    Args:
        seed: Of data and noise; None for noise from the operating system, the only private run.
        models: "personal", or "global" for the same helper model for all.
        split: How the digits are split, see ``shards.digits``.
        plan: What is run and accounted for; calibrated to (8, 1e-4) where not given.
        norm: The clipping norm.
    """
    plan = planned() if plan is None else plan
    data = digits(CLIENTS, split, seed or 0, EXAMPLES)
    own_share = OWN_SHARE if models == "personal" else 0.0
    federation = Federation(plan, data, norm, own_share, source(seed))
    for _ in range(plan.rounds):
        federation.synchronise()
    private = plan.settings[0].noise_multiplier > 0
    counts = [one.counted for one in federation.runs]
    return Outcome(
        f"PriFedSync, {models} models, {split}" + ("" if private else ", no noise"),
        {"accuracy": federation.read()},
        str(plan),
        hs.epsilon(plan, DELTA).upper if private else float("inf"),
        DELTA,
        {
            "rounds": max(counts) <= plan.rounds,
            "batches": federation.batches == {BATCH},
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


def settings(split: str = "label") -> dict[str, Setting]:
    """Return what the system is shown in."""
    plans = {"": planned(), ", no noise": _with_noise(0.0)}
    return {
        f"{models} models{noise}": Setting(
            partial(run, models=models, split=split, plan=plan),
            beside=f"{models} models, no noise",
        )
        for noise, plan in plans.items()
        for models in MODELS
    }


def main() -> None:
    """Train personal and global models with and without noise, and say what came out."""
    asked = arguments(__doc__, "label", "writer", "even").parse_args()
    show_lines(settings(asked.split), asked.seed, asked.seeds)
    rate, rounds = 0.05, 40
    echo(
        f"with client rate {rate} and {rounds} rounds, {reach(rate, rounds):.0%} of clients were "
        f"sent what another had entered; theorem 1 counts {claimed_reach(rate, rounds):.0%}"
    )


if __name__ == "__main__":
    main()
