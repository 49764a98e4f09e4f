"""Asynchronous DP-SGD: clients of different speeds, lost broadcasts, interrupts, restarts.

    python examples/systems/asynchronous.py --seeds 5

Van Dijk and Nguyen, "Considerations on the Theory of Training Models with Differential Privacy",
algorithm 1: each client goes through its rounds at its own pace and sends each round's noisy sum;
whenever a global model arrives, it takes the place of the client's own, also within a round.
Sample sizes grow from round to round. Here clients are also killed, and go on from their journals.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
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
from engines import ENGINES, Arrays, Ask, LostError, alike, carried, rows_of

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler, noisy_sum

SYSTEM = "Asynchronous DP-SGD"
CLIENTS, EXAMPLES, STEPS, BATCH, GROWTH = 12, 118, 60, 10, 4.0
NORM, RATE = 1.0, 1.0
WINDOW, LOST, KILLED = 6, 0.3, 0.02  # messages to a broadcast; chances to lose it, and to die
DELTA = 1e-4
# The noise with which each of these costs (8, 1e-4), rounded up; found by
# hs.calibrate(planned(sizes, 1.0), "noise_multiplier", hs.ApproxDP(8, 1e-4)).
SIZES = {"increasing": 1.1925, "constant": 1.1499, "fixed": 2.4290, "none": 0.0}


def planned(sizes: str, noise: float | None = None) -> hs.DPSGD:
    """Return each client's plan.

    "increasing" grows the expected size of batches by the same amount from round to round,
    "constant" has the mean size throughout, "fixed" is the paper's random sets of one size, for
    which it adds N(0, (2 C sigma)^2): a noise multiplier of 2 sigma under replace-one.
    """
    mean = round(BATCH * (1 + GROWTH) / 2)
    growing, fixed = sizes in ("increasing", "none"), sizes == "fixed"
    return hs.DPSGD(
        noise_multiplier=SIZES[sizes] if noise is None else noise,
        examples=EXAMPLES,
        batch_size=BATCH if growing else mean,
        steps=STEPS,
        sampling="fixed-size" if fixed else "poisson",
        adjacency="replace-one" if fixed else "add-remove",
        batch_schedule=hs.schedules.Linear(GROWTH) if growing else None,
    )


@dataclass(frozen=True)
class Clients:
    """Algorithm 1 at the clients: their records, and the journals that count their rounds."""

    plan: hs.DPSGD
    shards: Sequence[tuple[Any, Any]]
    folder: Path
    seed: int | None

    def answer(self, client: int, sent: Arrays, kept: Arrays) -> Arrays:
        """Return the noisy mean of one round, or be killed within it.

        Where nothing came it tells what the demonstration compares with the account.
        """
        account = Account(self.plan, journal=self.folder / f"client-{client}.journal")
        try:
            if not sent:
                return kept | {"counted": np.array(account.counted)}
            model = kept.get("model", np.zeros(10 * self.shards[client][0].shape[1]))
            return {"update": self.round(client, account, model, sent, kept)}
        finally:
            account.close()

    def round(self, client: int, account: Account, model: Any, sent: Arrays, kept: Arrays) -> Any:
        """Return the noisy mean of one round, during which a global model may arrive.

        "restart" is the model of a client that has lost its own. Records below a place that is
        fixed beforehand are read with the model before, the others with the one after, "within":
        which of them depends on no other record, so that one record moves the sum by its own
        clipped gradient alone, whatever else was drawn.
        """
        rows, labels = self.shards[client]
        own = None if self.seed is None else 1000 * self.seed + client
        sampler, step = Sampler(self.plan, len(labels), own), account.counted
        chosen = sampler.draw(step)
        account.count()
        if sent["dies"]:
            raise LostError
        model, early = sent.get("restart", model), chosen < sent["cut"]
        first = gradients(model, rows[chosen[early]], labels[chosen[early]])
        model = sent.get("within", model)
        second = gradients(model, rows[chosen[~early]], labels[chosen[~early]])
        total = noisy_sum(
            np.vstack([first, second]),
            norm=NORM,
            noise_multiplier=self.plan.noise_multiplier,
            bits=source(self.seed, client, step),
        )
        update = total / sampler.expected(step)
        kept["model"] = model - sent["rate"] * update
        for name, one in (("used", len(chosen)), ("expected", sampler.expected(step)), ("sent", 1)):
            kept[name] = kept.get(name, np.array(0)) + one
        return update


class Server:
    """Adds what arrives to the global model, and broadcasts it now and then.

    It knows of a client how many of its rounds have begun, what is on its way to it, and whether it
    has to begin again with the global model; not what it holds.
    """

    def __init__(self, clients: int, size: int, steps: int) -> None:
        self.model, self.messages, self.steps = np.zeros(size), 0, steps
        self.begun, self.killed = np.zeros(clients, int), np.zeros(clients, int)
        self.waiting: list[Arrays] = [{} for _ in range(clients)]

    def ask(self, client: int, dies: bool, ask: Ask) -> None:
        """Let a client run its next round, and add what it sends."""
        rate = RATE / (1 + 2 * self.begun[client] / STEPS)
        told = alike([client], dies=dies, cut=EXAMPLES // 2, rate=rate, **self.waiting[client])
        updates = rows_of(ask(told), "update", len(self.model))
        self.begun[client] += 1
        if client in updates:
            self.waiting[client] = {}
            self.model = self.model - rate * updates[client]
            self.messages += 1
        else:
            # Its process is a new one, to which nothing is on its way.
            self.waiting[client] = {"restart": self.model.copy()}
            self.killed[client] += 1

    def broadcast(self, rng: np.random.Generator) -> None:
        """Send the global model to all clients after a window of messages; some do not get it."""
        if self.messages % WINDOW == 0:
            for waiting in self.waiting:
                if rng.random() >= LOST:
                    waiting["within"] = self.model.copy()


def serve(server: Server, rng: np.random.Generator, ask: Ask) -> dict[int, Arrays]:
    """Let all clients run all of their rounds; speeds, losses and deaths depend on no record.

    The queue has the times at which rounds end. What a client is sent before that time has arrived
    in the middle of the round, or before it.
    """
    clients = len(server.begun)
    speeds = rng.uniform(0.5, 2.0, clients)
    queue = [(float(rng.exponential()), number) for number in range(clients)]
    heapq.heapify(queue)
    while queue:
        now, number = heapq.heappop(queue)
        if server.begun[number] < server.steps:
            server.ask(number, bool(rng.random() < KILLED), ask)
            server.broadcast(rng)
            heapq.heappush(queue, (now + float(rng.exponential() / speeds[number]), number))
    return ask(alike(range(clients)))


def trained(
    plan: hs.DPSGD, data: Shards, seed: int | None, engine: str = "loop"
) -> tuple[Server, dict[int, Arrays]]:
    """Return the server after a run, and what its clients tell of themselves."""
    count = len(data.clients)
    server = Server(count, 10 * data.features.shape[1], plan.total_steps)
    with TemporaryDirectory() as folder:
        clients = Clients(plan, data.clients, Path(folder), seed)
        rng = np.random.default_rng(seed)
        return server, carried(engine, partial(serve, server, rng), clients.answer, count)


def run(
    seed: int | None = 0,
    *,
    sizes: str = "increasing",
    split: str = "writer",
    plan: hs.DPSGD | None = None,
    engine: str = "loop",
) -> Outcome:
    """Train once and return what came out."""
    plan = planned(sizes) if plan is None else plan
    data = shards(CLIENTS, split, seed or 0, EXAMPLES)
    server, told = trained(plan, data, seed, engine)
    private = plan.noise_multiplier > 0
    counted = [int(told[client]["counted"]) for client in range(CLIENTS)]
    sent = np.array([int(told[client]["sent"]) for client in range(CLIENTS)])
    expected, used = (
        sum(float(own[name]) for own in told.values()) for name in ("expected", "used")
    )
    return Outcome(
        f"asynchronous, sizes {sizes}, {split}",
        {
            "accuracy": accuracy(server.model, data.features, data.labels),
            "killed": float(server.killed.sum()),
        },
        str(plan),
        hs.epsilon(plan, DELTA).upper if private else float("inf"),
        DELTA,
        {
            "rounds": set(sent + server.killed) == {plan.total_steps},
            "batches": abs(used - expected) < 5 * expected**0.5,
            "all of the plan": set(counted) == {plan.total_steps},
        },
    )


def settings(split: str = "writer", engine: str = "loop") -> dict[str, Setting]:
    """Return what the system is shown in."""
    return {
        f"sizes {sizes}": Setting(
            partial(run, sizes=sizes, split=split, engine=engine), beside="sizes none"
        )
        for sizes in SIZES
    }


def main() -> None:
    """Train with growing, constant and fixed batches and without noise, and say what came out."""
    asked = arguments(__doc__, "writer", "label", "even", engines=ENGINES).parse_args()
    show_lines(settings(asked.split, asked.engine), asked.seed, asked.seeds)


if __name__ == "__main__":
    main()
