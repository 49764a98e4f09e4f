"""Fed-CDP and Fed-alphaCDP: federated training that hides records, its noise constant or falling.

    python examples/systems/fed_cdp.py --seeds 5

Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023,
sections 4 to 6: each round draws clients, each runs local steps, and each step adds noise to the
sum of clipped gradients. With Fed-alphaCDP the noise falls from round to round, by four laws.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from outcomes import Outcome, Setting, show_lines
from shards import Shards, accuracy, arguments, digits, gradients, source

import hockeystick as hs
from hockeystick.release.federated import ClientTraining, draw_clients

SYSTEM = {
    "name": "Fed-CDP, Fed-alphaCDP",
    "paper": "Wei et al. 2023 (002)",
    "algorithm": "section 4, Fed-CDP; section 5, four decays of the noise",
    "command": "python examples/systems/fed_cdp.py --seeds 5",
    "check": "rounds counted, batches of the plan's law, one record moves a step by at most C",
}
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


class Federation:
    """Clients with their runs, and what the server does with the models that they send."""

    def __init__(
        self, plan: hs.federated.FedAlphaCDP, data: Shards, norm: float, bits: Any
    ) -> None:
        self.plan, self.data, self.bits = plan, data, bits
        self.weights = np.zeros(10 * data.features.shape[1])
        self.used = self.steps = 0
        self.runs = [
            ClientTraining(plan, len(labels), norm, client=number, bits=bits)
            for number, (_, labels) in enumerate(data.clients)
        ]

    def update(self, weights: Any, client: int, round_index: int) -> Any:
        """Return the model that a client sends back, all of it computed from noisy sums."""
        rows, labels = self.data.clients[client]

        def of_records(own: Any, chosen: Any) -> Any:
            self.used, self.steps = self.used + len(chosen), self.steps + 1
            return gradients(own, rows[chosen], labels[chosen])

        return self.runs[client].train(
            weights, of_records, learning_rate=RATE, round_index=round_index
        )

    def train(self) -> None:
        """Run all rounds of the plan."""
        for index in range(self.plan.rounds):
            cohort = draw_clients(self.plan, bits=self.bits).tolist()
            sent = [self.update(self.weights, client, index) for client in cohort]
            self.weights = np.mean(sent, axis=0)

    @property
    def checks(self) -> dict[str, bool]:
        """What ran beside what is accounted."""
        plan = self.plan
        everybody = plan.sampling == "poisson"
        clients = plan.total_clients if everybody else plan.clients_per_round
        rate = plan.rate if everybody else plan.local_rate
        expected = float(self.steps * rate * len(self.data.clients[0][1]))
        return {
            "rounds": all(one.counted <= plan.rounds for one in self.runs),
            "steps": self.steps == plan.rounds * clients * plan.local_steps,
            "batches": abs(self.used - expected) < 5 * expected**0.5,
        }


def run(
    seed: int | None = 0,
    *,
    decay: str = "constant",
    sampling: str = "two-stage-poisson",
    split: str = "writer",
    plan: hs.federated.FedAlphaCDP | None = None,
    norm: float = NORM,
) -> Outcome:
    """Train once and return what came out.

    Args:
        seed: Of data and noise; None for noise from the operating system, the only private run.
        decay: One of ``SCHEDULES``, or "none" for training without privacy.
        sampling: "two-stage-poisson": the server draws clients, who draw records; or "poisson":
            all clients run every round, and draw each record by a coin of the product of both
            rates, as the paper accounts for it.
        split: How the digits are split, see ``shards.digits``.
        plan: What is run and accounted for; the decay's where not given.
        norm: The clipping norm.
    """
    plan = planned(decay, sampling) if plan is None else plan
    data = digits(plan.total_clients, split, seed or 0)
    federation = Federation(plan, data, norm, source(seed))
    federation.train()
    private = plan.noise_multiplier > 0
    return Outcome(
        f"Fed-CDP, noise {decay}, {split}",
        {"accuracy": accuracy(federation.weights, data.features, data.labels)},
        str(plan),
        hs.epsilon(plan, DELTA).upper if private else float("inf"),
        DELTA,
        federation.checks,
    )


def settings(sampling: str = "two-stage-poisson", split: str = "writer") -> dict[str, Setting]:
    """Return what the system is shown in."""
    return {
        f"noise {decay}": Setting(
            partial(run, decay=decay, sampling=sampling, split=split), beside="noise none"
        )
        for decay in ("none", *SCHEDULES)
    }


def main() -> None:
    """Train without noise, with constant noise and with each decay, and say what came out."""
    parser = arguments(__doc__, "writer", "label", "even")
    parser.add_argument("--sampling", choices=tuple(NOISES), default="two-stage-poisson")
    asked = parser.parse_args()
    show_lines(settings(asked.sampling, asked.split), asked.seed, asked.seeds)


if __name__ == "__main__":
    main()
