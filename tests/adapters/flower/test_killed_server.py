"""A server on Flower's simulation engine that is killed in the middle of a round.

``python -m tests.adapters.flower.test_killed_server FOLDER ROUND`` is the server, which a client
kills in that round, 0 for none; what is asked and released is written down.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
pytest.importorskip("flwr")

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


ROOT = Path(__file__).parents[3]


def _ran(folder: Path, killed: int) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tests.adapters.flower.test_killed_server", str(folder)]
    return subprocess.run(
        [*program, str(killed)], cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False
    )


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_round_is_counted_before_a_client_is_asked_and_a_killed_one_never_runs_again(
    tmp_path: Path,
) -> None:
    """Killed in the second of four rounds; the two that are left run, and then none."""
    asked, released = tmp_path / "asked-2", tmp_path / "released"
    first = _ran(tmp_path, killed=2)
    assert first.returncode == -signal.SIGKILL, first.stderr
    # Each client found its own round in the journal when it was asked.
    assert _lines(asked)[:2] == ["1", "1"]
    assert set(_lines(asked)[2:]) == {"2"}
    assert len(_lines(released)) == 1
    asked = tmp_path / "asked-0"
    second = _ran(tmp_path, killed=0)
    assert second.returncode == 0, second.stderr
    assert second.stdout.split()[-1] == "2"
    assert _lines(asked) == ["3", "3", "4", "4"]
    assert len(set(_lines(released))) == 3
    third = _ran(tmp_path, killed=0)
    assert third.returncode != 0
    assert "BudgetExhausted: the budget does not cover 5 rounds" in third.stderr
    assert _lines(asked) == ["3", "3", "4", "4"]


if __name__ == "__main__":
    main()
