"""A server on Flower's simulation engine that a client kills, for test_killed_server.py.

    python -m tests.adapters.flower.killed_server FOLDER ROUND

In that round the first client that is asked kills the server's process; 0 is for no round. What
clients saw in the journal when they were asked, and each model that was released, is written down.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import hockeystick as hs
from hockeystick.adapters.flower import PrivateFedAvg
from tests.adapters.flower.clients import zeros
from tests.systems.programs import program

PLAN = hs.federated.FedSDP(
    noise_multiplier=4, total_clients=2, clients_per_round=2, rounds=4, sampling="poisson"
)


def counted(folder: Path) -> int:
    return (folder / "journal").read_bytes().partition(b"\n")[2].count(b".")


def client_app(folder: Path, server: int, killed: int) -> ClientApp:
    """Return clients that write down the journal's count, and kill the server in a round."""
    app = ClientApp()

    @app.train()  # type: ignore[untyped-decorator, unused-ignore]  # theirs may have no types
    def train(message: Message, context: Any) -> Message:
        # What a killed run's clients write late is in no other run's file.
        with (folder / f"asked-{killed}").open("a", encoding="utf-8") as asked:
            asked.write(f"{counted(folder)}\n")
        if message.content["config"]["server-round"] == killed:
            os.kill(server, signal.SIGKILL)
            time.sleep(60)
        content = {"arrays": message.content["arrays"], "metrics": MetricRecord({"n": 1})}
        return Message(RecordDict(content), reply_to=message)

    return app


def main() -> None:
    folder, killed = Path(sys.argv[1]), int(sys.argv[2])

    def released(server_round: int, arrays: ArrayRecord) -> None:
        if server_round > 0:
            with (folder / "released").open("a", encoding="utf-8") as models:
                models.write(f"{arrays['w'].numpy().tolist()}\n")

    def server(grid: Any) -> int:
        strategy = PrivateFedAvg(PLAN, clipping_norm=1.0, journal=folder / "journal")
        begun = strategy.counted
        strategy.start(grid, zeros(), evaluate_fn=released)
        return begun

    app = client_app(folder, os.getpid(), killed)
    begun = program("flower_digits").simulated(server, app, PLAN.total_clients)
    sys.stdout.write(f"{begun}\n")


if __name__ == "__main__":
    main()
