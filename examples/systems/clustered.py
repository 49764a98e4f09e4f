"""Private clustered federated learning: clients of two kinds, hypotheses, and Laplace noise on R^n.

    python examples/systems/clustered.py --seeds 5

Galli, "Sense and Sensitivity", 2024, chapter 2, algorithms 1 and 2: the server sends hypotheses,
each client trains the one that fits it best, and sends the outcome with noise of the density
``~ exp(-|z|/b)``; the server clusters what arrives by a step of Lloyd. The data are those of its
first experiment: two linear maps of the plane, ten points a client.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from outcomes import Outcome, Setting, show_lines
from shards import arguments, source

import hockeystick as hs
from hockeystick.release.federated import lloyd_step, sanitized
from hockeystick.release.samplers import permutation

SYSTEM = {
    "name": "private clustered federated learning",
    "paper": "Galli 2024 (001), Galli et al. 2022",
    "algorithm": "algorithms 1 and 2 of chapter 2, with one and two hypotheses",
    "command": "python examples/systems/clustered.py --seeds 5",
    "check": "messages of each client counted; before noise all lie within the radius",
}
TRUTH = np.array([[5.0, 6.0], [4.0, -4.5]])  # equations 2.26 and 2.27
COHORT, POINTS, ROUNDS = 100, 10, 16
CLIENTS = COHORT * ROUNDS  # so that each takes part once
RATE, DELTA = 0.1, 0.0
# Hypotheses; what messages are clipped about; noise multiplier nu; radius; local epochs.
SETTINGS: dict[str, tuple[int, str, float, float, int]] = {
    "two hypotheses, no noise": (2, "hypothesis", 0.0, 1e6, 3),
    "one hypothesis, no noise": (1, "hypothesis", 0.0, 1e6, 3),
    "within distance 2": (2, "hypothesis", 1.0, 2.0, 3),
    "three hypotheses, within distance 2": (3, "hypothesis", 1.0, 2.0, 3),
    "whatever the data": (2, "public", 0.25, 18.0, 3),
    "one hypothesis, whatever the data": (1, "public", 0.25, 18.0, 3),
    "as published": (2, "published", 5.0, 1.0, 1),
}


def planned(setting: str) -> hs.federated.FederatedClustering:
    """Return what a client sends in all, for accounting: one message."""
    _, _, noise, radius, _ = SETTINGS[setting]
    return hs.federated.FederatedClustering(noise, dimension=2, radius=radius, rounds=1)


def begun(hypotheses: int) -> Any:
    """Return the first hypotheses: the origin alone, or points of the unit circle."""
    if hypotheses == 1:
        return np.zeros((1, 2))
    angles = np.pi / 2 + 2 * np.pi * np.arange(hypotheses) / hypotheses
    return np.column_stack([np.cos(angles), np.sin(angles)])


def people(clients: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return the points of each client, their values, and the client's kind."""
    kinds = rng.integers(0, 2, clients)
    points = rng.normal(size=(clients, POINTS, 2))
    noise = rng.random((clients, POINTS))
    return points, np.einsum("cpd,cd->cp", points, TRUTH[kinds]) + noise, kinds


def loss(parameters: Any, points: Any, values: Any) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.mean((points @ parameters - values) ** 2)))


def local_update(parameters: Any, points: Any, values: Any, epochs: int) -> Any:
    """Return the parameters after some epochs on all of a client's points."""
    own = parameters.copy()
    for _ in range(epochs):
        own = own - RATE * 2 * points.T @ (points @ own - values) / len(values)
    return own


class Federation:
    """Algorithm 1: hypotheses at the server, data at the clients, messages between them."""

    def __init__(
        self,
        plan: hs.federated.FederatedClustering,
        hypotheses: Any,
        data: Any,
        epochs: int,
        bits: Any,
    ) -> None:
        self.plan, self.hypotheses, self.bits = plan, hypotheses, bits
        self.epochs = epochs
        self.points, self.values, _ = data
        self.sent = np.zeros(len(self.points), dtype=int)
        self.clipped = 0

    def update(self, client: int, center: str) -> Any:
        """Return what a client sends, lines 5 to 7."""
        points, values = self.points[client], self.values[client]
        best = min(self.hypotheses, key=lambda one: loss(one, points, values))
        trained = local_update(best, points, values, self.epochs)
        self.sent[client] += 1
        if center == "published":
            return self._published(best, trained)
        about = best if center == "hypothesis" else np.zeros(2)
        self.clipped += bool(np.linalg.norm(trained - about) > self.plan.radius / 2)
        return sanitized(self.plan, trained, about, bits=self.bits)

    def _published(self, best: Any, trained: Any) -> Any:
        """Return what algorithm 2 sends: nu times the length of the update is its noise's length.

        It has no guarantee, as the noise tells that length; a client without an update sends its
        parameters as they are.
        """
        length = float(np.linalg.norm(trained - best))
        if length == 0.0:
            return trained
        nu = self.plan.noise_multiplier / 2
        own = hs.federated.FederatedClustering(nu, dimension=2, radius=2 * length, rounds=1)
        return sanitized(own, trained, best, bits=self.bits)

    def round(self, cohort: int, center: str) -> None:
        """Run one round, lines 2 to 10: who has sent as often as it may is left out, openly."""
        able = np.flatnonzero(self.sent < self.plan.rounds)
        drawn = able[permutation(len(able), bits=self.bits)[:cohort]]
        if len(drawn) == 0:
            return
        messages = np.array([self.update(int(client), center) for client in drawn])
        self.hypotheses, _ = lloyd_step(messages, self.hypotheses)


def run(
    seed: int | None = 0,
    *,
    setting: str = "whatever the data",
) -> Outcome:
    """Train once and return what came out.

    Args:
        seed: Of data and noise; None for noise from the operating system, the only private run.
        setting: One of ``SETTINGS``.
    """
    hypotheses, center, noise, _, epochs = SETTINGS[setting]
    plan, rng = planned(setting), np.random.default_rng(seed)
    data, held_out = people(CLIENTS, rng), people(200, rng)
    federation = Federation(plan, begun(hypotheses), data, epochs, source(seed))
    for _ in range(ROUNDS):
        federation.round(COHORT, center)
    losses = [
        min(loss(one, points, values) for one in federation.hypotheses)
        for points, values, _ in zip(*held_out, strict=True)
    ]
    certified = noise > 0 and center != "published"
    return Outcome(
        setting,
        {"rmse": float(np.mean(losses)), "clipped": federation.clipped / CLIENTS},
        str(plan),
        hs.epsilon(plan, DELTA).upper if certified else float("inf"),
        DELTA,
        {"messages": set(federation.sent.tolist()) == {plan.rounds}},
    )


def settings() -> dict[str, Setting]:
    """Return what the system is shown in."""
    return {
        name: Setting(
            partial(run, setting=name),
            beside="one hypothesis, no noise" if hypotheses == 1 else "two hypotheses, no noise",
        )
        for name, (hypotheses, *_) in SETTINGS.items()
    }


def main() -> None:
    """Train with and without noise and clusters, and say what came out."""
    asked = arguments(__doc__).parse_args()
    show_lines(settings(), asked.seed, asked.seeds)


if __name__ == "__main__":
    main()
