"""Rounds are counted before anything of them is released, also where a process is killed."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release.counting import Counter
from hockeystick.release.federated import ClientRounds, ClientTraining, first_rounds

CLIENTS: dict[str, Any] = {"total_clients": 4, "clients_per_round": 2}
PLAN = hs.federated.FedSDP(noise_multiplier=2, **CLIENTS, rounds=5, sampling="poisson")
RECORDS: dict[str, Any] = {
    "noise_multiplier": 4.0,
    **CLIENTS,
    "examples_per_client": 6,
    "batch_size": 2,
    "local_steps": 3,
    "rounds": 5,
    "sampling": "two-stage",
}


def test_the_first_rounds_of_a_decay_keep_its_noises() -> None:
    plan = hs.federated.FedAlphaCDP(**RECORDS, schedule=hs.schedules.Linear(0.2))
    for rounds in range(6):
        first = first_rounds(plan, rounds)
        assert first.noise_multipliers.tolist() == plan.noise_multipliers[:rounds].tolist()
    assert first_rounds(plan, 5) == plan
    for wrong in (-1, 6):
        with pytest.raises(ParameterError, match="rounds"):
            first_rounds(plan, wrong)


def test_a_journal_goes_on_where_a_run_was_left(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    run = ClientRounds(PLAN, size=1, norm=1.0, journal=path)
    run.draw()
    run.draw()
    run.close()
    with pytest.raises(IncompatibleError, match="closed"):
        run.draw()
    again = ClientRounds(PLAN, size=1, norm=1.0, journal=path)
    assert again.counted == 2
    with pytest.raises(ParameterError, match="no other run has open"):
        ClientRounds(PLAN, size=1, norm=1.0, journal=path)
    again.close()
    with pytest.raises(ParameterError, match="of this very plan"):
        ClientRounds(first_rounds(PLAN, 4), size=1, norm=1.0, journal=path)


KILLED = """
import os, signal, sys
import numpy as np
import hockeystick as hs
from hockeystick.release.federated import ClientTraining
plan = hs.federated.FedCDP(noise_multiplier=4.0, total_clients=4, clients_per_round=2,
    examples_per_client=6, batch_size=2, local_steps=3, rounds=5, sampling="two-stage")
client = ClientTraining(plan, 6, 1.0, journal=sys.argv[1])
seen = []
def gradients(weights, chosen):
    seen.append(len(chosen))
    if len(seen) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.zeros((len(chosen), 1))
client.train([0.0], gradients, learning_rate=1.0, round_index=0)
client.train([0.0], gradients, learning_rate=1.0, round_index=2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_client_that_is_killed_within_a_round_never_runs_it_again(tmp_path: Path) -> None:
    """It is killed in the second step of its second round, number 2; round 1 it was not drawn."""
    path = tmp_path / "journal"
    killed = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    client = ClientTraining(hs.federated.FedCDP(**RECORDS), 6, 1.0, journal=path)
    assert client.counted == 3
    for begun in (0, 1, 2):
        with pytest.raises(IncompatibleError, match="has begun already, or was left out"):
            client.train([0.0], _zeros, learning_rate=1.0, round_index=begun)
    client.train([0.0], _zeros, learning_rate=1.0, round_index=3)
    assert client.released == first_rounds(hs.federated.FedCDP(**RECORDS), 4)


def _zeros(weights: Any, chosen: Any) -> Any:
    """Return gradients of zero."""
    return np.zeros((len(chosen), len(weights)))


def test_two_threads_do_not_run_one_round_twice() -> None:
    """The journal waits, as a disk does, so that the other thread asks meanwhile."""

    class Slow:
        def add(self, _steps: int) -> None:
            time.sleep(0.05)

    run = ClientTraining(hs.federated.FedCDP(**RECORDS), 6, norm=1.0)
    run._journal = Slow()  # type: ignore[assignment]

    def ran(_: int) -> bool:
        try:
            run.train([0.0], lambda _w, at: np.ones((len(at), 1)), learning_rate=1, round_index=0)
        except IncompatibleError:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(ran, range(2))) == [False, True]
    assert run.counted == 1


def test_a_round_that_was_left_out_is_never_begun() -> None:
    run = Counter(PLAN, None, "")
    assert run._begin(2) == 2
    for begun in (1, 2):
        with pytest.raises(IncompatibleError, match="has begun already, or was left out"):
            run._begin(begun)
