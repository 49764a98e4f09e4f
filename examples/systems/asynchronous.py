"""Asynchronous DP-SGD: clients of different speeds, lost broadcasts, interrupts, restarts.

    python examples/systems/asynchronous.py --seeds 5

Van Dijk and Nguyen, "Considerations on the Theory of Training Models with Differential Privacy",
algorithm 1: each client goes through its rounds at its own pace and sends each round's noisy sum;
whenever a global model arrives, it takes the place of the client's own, also within a round.
Sample sizes grow from round to round. Here clients are also killed, and go on from their journals.
"""

from __future__ import annotations

import heapq
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from outcomes import Outcome, Setting, show_lines
from shards import accuracy, arguments, digits, gradients, source

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler, noisy_sum

SYSTEM = {
    "name": "asynchronous DP-SGD",
    "paper": "van Dijk and Nguyen 2022 (000)",
    "algorithm": "algorithm 1 with its interrupt service routine, increasing sample sizes",
    "command": "python examples/systems/asynchronous.py --seeds 5",
    "check": "each client's count is what it sent and what it lost, batches of the plan's law",
}
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


class KilledError(Exception):
    """The client's process ended within a round."""


class Client:
    """Algorithm 1 at one client: its records, its own model, and the count of its rounds."""

    def __init__(self, plan: hs.DPSGD, shard: Any, journal: Path, seed: int | None) -> None:
        self.plan, self.journal, self.bits = plan, journal, source(seed)
        self.rows, self.labels = shard
        self.sampler = Sampler(plan, len(self.labels), seed)
        self.weights = np.zeros(10 * self.rows.shape[1])
        self.account = Account(plan, journal=journal)
        self.arrived: Any = None
        self.sent = self.killed = self.used = 0
        self.expected = 0.0

    @property
    def done(self) -> bool:
        """Whether all rounds of the plan have been counted."""
        return self.account.counted >= self.account.limit

    def round(self, within: Any, cut: int, dies: bool) -> Any:
        """Return the noisy mean of one round, during which a global model may arrive.

        Records below a place that is fixed beforehand are read with the model before, the others
        with the one after: which of them depends on no other record, so that one record moves the
        sum by its own clipped gradient alone, whatever else was drawn.
        """
        step = self.account.counted
        chosen = self.sampler.draw(step)
        self.account.count()
        if dies:
            raise KilledError
        early = chosen[chosen < cut]
        first = gradients(self.weights, self.rows[early], self.labels[early])
        self.weights = self.weights if within is None else within
        late = chosen[chosen >= cut]
        second = gradients(self.weights, self.rows[late], self.labels[late])
        total = noisy_sum(
            np.vstack([first, second]),
            norm=NORM,
            noise_multiplier=self.plan.noise_multiplier,
            bits=self.bits,
        )
        expected = self.sampler.expected(step)
        self.sent, self.used = self.sent + 1, self.used + len(chosen)
        self.expected += expected
        return total / expected

    def restart(self, weights: Any) -> None:
        """Begin again in a new process: all but the journal is lost."""
        self.account.close()
        self.account = Account(self.plan, journal=self.journal)
        self.weights, self.killed = weights, self.killed + 1


class Server:
    """Adds what arrives to the global model, and broadcasts it now and then."""

    def __init__(self, size: int) -> None:
        self.model, self.messages = np.zeros(size), 0

    def receive(self, update: Any, rate: float) -> None:
        """Add a client's noisy mean."""
        self.model = self.model - rate * update
        self.messages += 1

    @property
    def broadcasts(self) -> bool:
        """Whether a window of messages is complete."""
        return self.messages % WINDOW == 0


def simulate(clients: list[Client], server: Server, rng: np.random.Generator) -> None:
    """Let all clients run all of their rounds; speeds, losses and deaths depend on no record."""
    speeds = rng.uniform(0.5, 2.0, len(clients))
    queue = [(float(rng.exponential()), number) for number in range(len(clients))]
    heapq.heapify(queue)
    while queue:
        now, number = heapq.heappop(queue)
        client = clients[number]
        if client.done:
            continue
        # A message that was on its way arrives in the middle of this round, or before it.
        within, client.arrived = client.arrived, None
        rate = RATE / (1 + 2 * client.account.counted / STEPS)
        try:
            update = client.round(within, EXAMPLES // 2, bool(rng.random() < KILLED))
        except KilledError:
            client.restart(server.model.copy())
        else:
            client.weights = client.weights - rate * update
            server.receive(update, rate)
        if server.broadcasts:
            for other in clients:
                if rng.random() >= LOST:
                    other.arrived = server.model.copy()
        heapq.heappush(queue, (now + float(rng.exponential() / speeds[number]), number))


def run(
    seed: int | None = 0,
    *,
    sizes: str = "increasing",
    split: str = "writer",
    plan: hs.DPSGD | None = None,
) -> Outcome:
    """Train once and return what came out.

    Args:
        seed: Of data, events and noise; None for noise from the operating system.
        sizes: "increasing", "constant", "fixed" or "none" for training without privacy.
        split: How the digits are split, see ``shards.digits``.
        plan: What each client runs and is charged for; that of ``sizes`` where not given.
    """
    plan = planned(sizes) if plan is None else plan
    data = digits(CLIENTS, split, seed or 0, EXAMPLES)
    with tempfile.TemporaryDirectory() as folder:
        clients = [
            Client(plan, shard, Path(folder) / str(n), None if seed is None else 1000 * seed + n)
            for n, shard in enumerate(data.clients)
        ]
        server = Server(10 * data.features.shape[1])
        simulate(clients, server, np.random.default_rng(seed))
        for client in clients:
            client.account.close()
    private = plan.noise_multiplier > 0
    released = {one.account.released for one in clients}
    expected, used = (sum(getattr(one, name) for one in clients) for name in ("expected", "used"))
    return Outcome(
        f"asynchronous, sizes {sizes}, {split}",
        {
            "accuracy": accuracy(server.model, data.features, data.labels),
            "killed": float(sum(one.killed for one in clients)),
        },
        str(plan),
        max(hs.epsilon(one, DELTA).upper for one in released) if private else float("inf"),
        DELTA,
        {
            "rounds": all(
                one.account.counted == one.sent + one.killed == plan.total_steps for one in clients
            ),
            "batches": abs(used - expected) < 5 * expected**0.5,
            "all of the plan": released == {plan},
        },
    )


def settings(split: str = "writer") -> dict[str, Setting]:
    """Return what the system is shown in."""
    return {
        f"sizes {sizes}": Setting(partial(run, sizes=sizes, split=split), beside="sizes none")
        for sizes in SIZES
    }


def main() -> None:
    """Train with growing, constant and fixed batches and without noise, and say what came out."""
    asked = arguments(__doc__, "writer", "label", "even").parse_args()
    show_lines(settings(asked.split), asked.seed, asked.seeds)


if __name__ == "__main__":
    main()
