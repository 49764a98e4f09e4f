"""Private clustered federated learning: clients of two kinds, hypotheses, and Laplace noise on R^n.

    python examples/systems/table.py --only clustered

Galli, "Sense and Sensitivity", 2024, chapter 2, algorithms 1 and 2: the server sends hypotheses,
each client trains the one that fits it best, and sends the outcome with noise of the density
``~ exp(-|z|/b)``; the server clusters what arrives by a step of Lloyd. The data are those of its
first experiment: two linear maps of the plane, ten points a client.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from digits import Outcome, Settings, source

import hockeystick as hs
from hockeystick.release.federated import lloyd_step, sanitized
from hockeystick.release.samplers import Bits, permutation

SYSTEM = "Private clusters"
TRUTH = np.array([[5.0, 6.0], [4.0, -4.5]])  # equations 2.26 and 2.27
COHORT, POINTS, ROUNDS = 100, 10, 16
CLIENTS = COHORT * ROUNDS  # so that each takes part once
RATE, DELTA = 0.1, 0.0
# Hypotheses; what messages are clipped about; noise multiplier nu; radius; local epochs.
SETTINGS: dict[str, tuple[int, str, float, float, int]] = {
    "within distance 2": (2, "hypothesis", 1.0, 2.0, 3),
    "three hypotheses, within distance 2": (3, "hypothesis", 1.0, 2.0, 3),
    "whatever the data": (2, "public", 0.25, 18.0, 3),
    "one hypothesis, whatever the data": (1, "public", 0.25, 18.0, 3),
    "as published": (2, "published", 5.0, 1.0, 1),
}


class Training:
    """A run of a setting: its hypotheses, who has sent a message, and how many were clipped."""

    def __init__(self, setting: tuple[int, str, float, float, int], seed: int | None) -> None:
        hypotheses, self.center, noise, radius, self.epochs = setting
        self.plan = hs.federated.FederatedClustering(noise, dimension=2, radius=radius, rounds=1)
        self.hypotheses, self.seed, self.clipped = begun(hypotheses), seed, 0
        self.sent = np.zeros(CLIENTS, dtype=int)
        self.charged = [hs.Accountant() for _ in range(CLIENTS)]

    def rounds(self, points: Any, values: Any) -> None:
        """Run all rounds, lines 2 to 10: who has sent a message is left out, openly."""
        bits = source(self.seed)
        for index in range(ROUNDS):
            able = np.flatnonzero(self.sent < self.plan.rounds)
            drawn = np.sort(able[permutation(len(able), bits=bits)[:COHORT]])
            messages = [
                self.message(one, points[one], values[one], source(self.seed, one, index))
                for one in drawn.tolist()
            ]
            self.sent[drawn] += 1
            self.hypotheses, _ = lloyd_step(np.array(messages), self.hypotheses)

    def message(self, client: int, points: Any, values: Any, bits: Bits) -> Any:
        """Return what a client sends, lines 5 to 7."""
        best = min(self.hypotheses, key=lambda one: loss(one, points, values))
        trained = local_update(best, points, values, self.epochs)
        if self.center == "published":
            return self.published(best, trained, bits)
        about = best if self.center == "hypothesis" else np.zeros(2)
        self.clipped += int(np.linalg.norm(trained - about) > self.plan.radius / 2)
        return sanitized(self.plan, trained, about, charge=self.charged[client], bits=bits)

    def published(self, best: Any, trained: Any, bits: Bits) -> Any:
        """Return what algorithm 2 sends, whose noise tells the length of the update."""
        length = float(np.linalg.norm(trained - best))
        if length == 0.0:
            return trained
        nu = self.plan.noise_multiplier / 2
        own = hs.federated.FederatedClustering(nu, dimension=2, radius=2 * length, rounds=1)
        return sanitized(own, trained, best, bits=bits)


def begun(hypotheses: int) -> Any:
    """Return the first hypotheses: the origin alone, or points of the unit circle."""
    if hypotheses == 1:
        return np.zeros((1, 2))
    angles = np.pi / 2 + 2 * np.pi * np.arange(hypotheses) / hypotheses
    return np.column_stack([np.cos(angles), np.sin(angles)])


def people(clients: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the points of each client, which is of one of two kinds, and their values."""
    kinds = rng.integers(0, 2, clients)
    points = rng.normal(size=(clients, POINTS, 2))
    noise = rng.random((clients, POINTS))
    return points, np.einsum("cpd,cd->cp", points, TRUTH[kinds]) + noise


def loss(parameters: Any, points: Any, values: Any) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.mean((points @ parameters - values) ** 2)))


def local_update(parameters: Any, points: Any, values: Any, epochs: int) -> Any:
    """Return the parameters after some epochs on all of a client's points."""
    own = parameters.copy()
    for _ in range(epochs):
        own = own - RATE * 2 * points.T @ (points @ own - values) / len(values)
    return own


def trained(
    setting: tuple[int, str, float, float, int], seed: int | None
) -> tuple[Training, dict[str, float]]:
    """Return a run, and what it came to on clients that took no part."""
    rng = np.random.default_rng(seed)
    data, held_out = people(CLIENTS, rng), people(200, rng)
    training = Training(setting, seed)
    training.rounds(*data)
    losses = [
        min(loss(one, points, values) for one in training.hypotheses)
        for points, values in zip(*held_out, strict=True)
    ]
    return training, {"rmse": float(np.mean(losses)), "clipped": training.clipped / CLIENTS}


@cache
def openly(hypotheses: int, seed: int | None) -> dict[str, float]:
    """Return what a run without noise came to."""
    return trained((hypotheses, "hypothesis", 0.0, 1e6, 3), seed)[1]


def run(seed: int | None = 0, *, setting: str) -> Outcome:
    """Train once and return what came out."""
    hypotheses, center, *_ = SETTINGS[setting]
    training, result = trained(SETTINGS[setting], seed)
    certified, plan = center != "published", training.plan
    return Outcome(
        result,
        openly(min(hypotheses, 2), seed),
        hs.epsilon(plan, DELTA).upper if certified else float("inf"),
        DELTA,
        {
            "messages": set(training.sent.tolist()) == {plan.rounds},
            "charge": not certified or all(one.plan == plan.noise for one in training.charged),
        },
    )


def settings() -> Settings:
    """Return what the system is shown in."""
    return {name: partial(run, setting=name) for name in SETTINGS}
