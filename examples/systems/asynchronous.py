"""Asynchronous DP-SGD: clients of different speeds, lost broadcasts, interrupts, restarts.

    python examples/systems/table.py --only asynchronous

Van Dijk and Nguyen, "Considerations on the Theory of Training Models with Differential Privacy",
algorithm 1: each client goes through its rounds at its own pace and sends each round's noisy sum;
whenever a global model arrives, it takes the place of the client's own, also within a round.
Sample sizes grow from round to round. Here clients are also killed, and go on from their journals.
"""

from __future__ import annotations

import heapq
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from digits import WEIGHTS, Outcome, Settings, digits, gradients, shards, source

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler, noisy_sum

SYSTEM = "Asynchronous DP-SGD"
CLIENTS, EXAMPLES, STEPS, BATCH, GROWTH = 12, 118, 60, 10, 4.0
NORM, RATE, EPSILON, DELTA = 1.0, 1.0, 8.0, 1e-4
WINDOW, LOST, KILLED = 6, 0.3, 0.02  # messages to a broadcast; chances to lose it, and to die
# By hs.calibrate(planned(sizes, 1.0), "noise_multiplier", hs.ApproxDP(EPSILON, DELTA)), rounded up.
NOISES = {"increasing": 1.1925, "constant": 1.1499, "fixed": 2.4290}


@dataclass
class Client:
    """A client of algorithm 1: its records, its model, and the journal that counts its rounds."""

    plan: hs.DPSGD
    rows: Any
    labels: Any
    journal: Path
    seed: int | None
    number: int = 0
    model: Any = field(default_factory=lambda: np.zeros(WEIGHTS))
    arrived: Any = None
    counted: int = 0

    def round(self, rate: float, *, dies: bool = False, cut: int = EXAMPLES // 2) -> Any:
        """Return the noisy mean of one round, or nothing where the client is killed within it.

        A global model may arrive during the round. Records below a place that is fixed beforehand
        are read with the model before, the others with the one after: so one record moves the sum
        by its own clipped gradient alone, whatever else was drawn.
        """
        own = None if self.seed is None else 1000 * self.seed + self.number
        sampler = Sampler(self.plan, len(self.labels), own)
        with closing(Account(self.plan, journal=self.journal)) as account:
            step = account.counted
            chosen = sampler.draw(step)
            account.count()
            self.counted = account.counted
        if dies:
            return None
        early = chosen < cut
        first = gradients(self.model, self.rows[chosen[early]], self.labels[chosen[early]])
        if self.arrived is not None:
            self.model, self.arrived = self.arrived, None
        second = gradients(self.model, self.rows[chosen[~early]], self.labels[chosen[~early]])
        total = noisy_sum(
            np.vstack([first, second]),
            norm=NORM,
            noise_multiplier=self.plan.noise_multiplier,
            bits=source(self.seed, self.number, step),
        )
        update = total / sampler.expected(step)
        self.model = self.model - rate * update
        return update


def serve(clients: list[Client], seed: int | None) -> tuple[Any, int]:
    """Return the server's model after all rounds of all clients, and how often one was killed.

    The queue has the times at which rounds end: speeds, losses and deaths depend on no record.
    """
    rng, model, messages, killed = np.random.default_rng(seed), np.zeros(WEIGHTS), 0, 0
    speeds = rng.uniform(0.5, 2.0, len(clients))
    queue = [(float(rng.exponential()), number) for number in range(len(clients))]
    heapq.heapify(queue)
    while queue:
        now, number = heapq.heappop(queue)
        client = clients[number]
        if client.counted == client.plan.total_steps:
            continue
        rate = RATE / (1 + 2 * client.counted / STEPS)
        update = client.round(rate, dies=bool(rng.random() < KILLED))
        if update is not None:
            model = model - rate * update
            messages += 1
        else:  # its process is a new one, to which nothing is on its way
            client.model, client.arrived = model, None
            killed += 1
        if messages % WINDOW == 0:
            for one in clients:
                if rng.random() >= LOST:
                    one.arrived = model
        heapq.heappush(queue, (now + float(rng.exponential() / speeds[number]), number))
    return model, killed


def planned(sizes: str, noise: float) -> hs.DPSGD:
    """Return each client's plan: batches that grow evenly, of their mean size, or sets of it.

    For random sets of one size the paper adds N(0, (2 C sigma)^2): 2 sigma under replace-one.
    """
    growing, fixed = sizes == "increasing", sizes == "fixed"
    return hs.DPSGD(
        noise_multiplier=noise,
        examples=EXAMPLES,
        batch_size=BATCH if growing else round(BATCH * (1 + GROWTH) / 2),
        steps=STEPS,
        sampling="fixed-size" if fixed else "poisson",
        adjacency="replace-one" if fixed else "add-remove",
        batch_schedule=hs.schedules.Linear(GROWTH) if growing else None,
    )


@cache
def trained(plan: hs.DPSGD, seed: int | None) -> tuple[dict[str, float], bool]:
    """Return what a run came to, and whether every journal has all rounds."""
    data = shards(CLIENTS, "writer", seed or 0, EXAMPLES)
    with TemporaryDirectory() as folder:
        clients = [Client(plan, *own, Path(folder, f"{k}"), seed, k) for k, own in enumerate(data)]
        model, killed = serve(clients, seed)
    result = {"accuracy": digits().accuracy(model), "killed": float(killed)}
    return result, {one.counted for one in clients} == {plan.total_steps}


def run(seed: int | None = 0, *, sizes: str) -> Outcome:
    """Train once and return what came out."""
    plan = planned(sizes, NOISES[sizes])
    result, counted = trained(plan, seed)
    openly, _ = trained(planned("increasing", 0.0), seed)
    spent = hs.epsilon(plan, DELTA).upper
    return Outcome(result, openly, spent, DELTA, {"rounds": counted, "budget": spent <= EPSILON})


def settings() -> Settings:
    """Return what the system is shown in."""
    return {f"sizes {sizes}": partial(run, sizes=sizes) for sizes in NOISES}
