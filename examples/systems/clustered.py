"""Private clustered federated learning: clients of two kinds, hypotheses, and Laplace noise on R^n.

    python examples/systems/clustered.py --seeds 5

Galli, "Sense and Sensitivity", 2024, chapter 2, algorithms 1 and 2: the server sends hypotheses,
each client trains the one that fits it best, and sends the outcome with noise of the density
``~ exp(-|z|/b)``; the server clusters what arrives by a step of Lloyd. The data are those of its
first experiment: two linear maps of the plane, ten points a client.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from digits import Outcome, Setting, arguments, show_lines, source
from engines import ENGINES, Arrays, Ask, alike, carried, rows_of

import hockeystick as hs
from hockeystick.release.counting import Journal
from hockeystick.release.federated import lloyd_step, sanitized
from hockeystick.release.samplers import Bits, permutation

SYSTEM = "Private clusters"
TRUTH = np.array([[5.0, 6.0], [4.0, -4.5]])  # equations 2.26 and 2.27
COHORT, POINTS, ROUNDS = 100, 10, 16
CLIENTS = COHORT * ROUNDS  # so that each takes part once
RATE, DELTA = 0.1, 0.0
Served = tuple[Any, Any, dict[int, Arrays]]
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


@dataclass(frozen=True)
class Clients:
    """What the clients of a run hold, and where each counts its messages."""

    plan: hs.federated.FederatedClustering
    center: str
    points: Any
    values: Any
    epochs: int
    seed: int | None
    folder: Path

    def answer(self, client: int, sent: Arrays, kept: Arrays) -> Arrays:
        """Return what a client sends, lines 5 to 7, or nothing where it has sent all it may.

        Where no hypotheses came it tells how many of its messages were clipped.
        """
        if not sent:
            return kept
        points, values = self.points[client], self.values[client]
        if not self._counted(client):
            return {}
        best = min(sent["hypotheses"], key=lambda one: loss(one, points, values))
        trained = local_update(best, points, values, self.epochs)
        bits = source(self.seed, client, int(sent["round"]))
        if self.center == "published":
            return {"message": self._published(best, trained, bits)}
        about = best if self.center == "hypothesis" else np.zeros(2)
        clipped = np.linalg.norm(trained - about) > self.plan.radius / 2
        kept["clipped"] = kept.get("clipped", np.array(0)) + clipped
        return {"message": sanitized(self.plan, trained, about, bits=bits)}

    def _counted(self, client: int) -> bool:
        """Count a message that is about to be made; return whether it is one of the plan's."""
        journal = Journal(self.folder / f"client-{client}.journal", f"clusters {self.plan!r}")
        able = journal.counted < self.plan.rounds
        journal.add(int(able))
        journal.close()
        return able

    def _published(self, best: Any, trained: Any, bits: Bits) -> Any:
        """Return what algorithm 2 sends: nu times the length of the update is its noise's length.

        It has no guarantee, as the noise tells that length; a client without an update sends its
        parameters as they are.
        """
        length = float(np.linalg.norm(trained - best))
        if length == 0.0:
            return trained
        nu = self.plan.noise_multiplier / 2
        own = hs.federated.FederatedClustering(nu, dimension=2, radius=2 * length, rounds=1)
        return sanitized(own, trained, best, bits=bits)


def serve(
    hypotheses: Any, often: int, clients: int, cohort: int, rounds: int, bits: Bits, ask: Ask
) -> Served:
    """Run rounds, lines 2 to 10: who has sent as often as it may is left out, openly."""
    sent = np.zeros(clients, dtype=int)
    for index in range(rounds):
        able = np.flatnonzero(sent < often)
        drawn = able[permutation(len(able), bits=bits)[:cohort]]
        answers = ask(alike(drawn.tolist(), hypotheses=hypotheses, round=index))
        messages = rows_of(answers, "message", hypotheses.shape[1])
        sent[drawn] += 1
        if messages:
            hypotheses, _ = lloyd_step(np.array(list(messages.values())), hypotheses)
    return hypotheses, sent, ask(alike(range(clients)))


def trained(
    setting: str, data: Any, cohort: int, rounds: int, seed: int | None, engine: str = "loop"
) -> Served:
    """Return the last hypotheses, how often each client sent, and what clients tell."""
    hypotheses, center, _, _, epochs = SETTINGS[setting]
    plan, (points, values, _) = planned(setting), data
    server = partial(
        serve, begun(hypotheses), plan.rounds, len(points), cohort, rounds, source(seed)
    )
    with TemporaryDirectory() as folder:
        clients = Clients(plan, center, points, values, epochs, seed, Path(folder))
        return carried(engine, server, clients.answer, len(points))


def run(
    seed: int | None = 0,
    *,
    setting: str = "whatever the data",
    cohort: int = COHORT,
    rounds: int = ROUNDS,
    engine: str = "loop",
) -> Outcome:
    """Train once and return what came out."""
    _, center, noise, _, _ = SETTINGS[setting]
    plan, rng = planned(setting), np.random.default_rng(seed)
    data, held_out = people(cohort * rounds, rng), people(200, rng)
    hypotheses, sent, told = trained(setting, data, cohort, rounds, seed, engine)
    clipped = sum(int(own.get("clipped", 0)) for own in told.values())
    losses = [
        min(loss(one, points, values) for one in hypotheses)
        for points, values, _ in zip(*held_out, strict=True)
    ]
    certified = noise > 0 and center != "published"
    return Outcome(
        setting,
        {"rmse": float(np.mean(losses)), "clipped": clipped / len(sent)},
        str(plan),
        hs.epsilon(plan, DELTA).upper if certified else float("inf"),
        DELTA,
        {"messages": set(sent.tolist()) == {plan.rounds}},
    )


def settings(engine: str = "loop") -> dict[str, Setting]:
    """Return what the system is shown in."""
    return {
        name: Setting(
            partial(run, setting=name, engine=engine),
            beside="one hypothesis, no noise" if hypotheses == 1 else "two hypotheses, no noise",
        )
        for name, (hypotheses, *_) in SETTINGS.items()
    }


def main() -> None:
    """Train with and without noise and clusters, and say what came out."""
    asked = arguments(__doc__, engines=ENGINES).parse_args()
    show_lines(settings(asked.engine), asked.seed, asked.seeds)


if __name__ == "__main__":
    main()
