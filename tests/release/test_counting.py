"""A run is counted once, on the disk first: no copy, fork, thread or killed process goes on."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import mechanisms as m
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.release import (
    above_threshold,
    matrix_factorization,
    sparse_vector,
    tree_aggregation,
)
from hockeystick.release.counting import Counter, Journal
from hockeystick.release.federated import ClientRounds, ClientTraining, first_rounds

ROUND = hs.federated.FedSDP(
    noise_multiplier=2, total_clients=3, clients_per_round=3, rounds=1, sampling="poisson"
)
RUNS: list[Callable[[], Any]] = [
    lambda: above_threshold(m.AboveThreshold(2.0, 4.0), 100.0, 1.0),
    lambda: sparse_vector(m.SparseVector(20.0, 40.0, positives=2), 100.0, 1.0),
    lambda: tree_aggregation(m.TreeAggregation(5.0, leaves=10), 1, 1.0),
    lambda: matrix_factorization(m.MatrixFactorization(5.0, m.Encoder.square_root(9)), 1, 1.0),
    lambda: ClientRounds(ROUND, size=1, norm=1.0).draw(),
]


def _asked(run: Any) -> None:
    """Ask once."""
    if hasattr(run, "above"):
        run.above(0.0)
    elif hasattr(run, "release"):
        run.release()
    else:
        run.add([1.0])


@pytest.mark.parametrize("begun", RUNS)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_run_is_not_copied(begun: Any, copied: Callable[[Any], Any]) -> None:
    with pytest.raises(IncompatibleError, match="not copied or pickled"):
        copied(begun())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("begun", RUNS)
def test_a_fork_is_told_nothing(begun: Any) -> None:
    run = begun()
    if not hasattr(run, "release"):
        _asked(run)
    child = os.fork()
    if child == 0:
        try:
            _asked(run)
        except IncompatibleError as error:
            os._exit(7 if "was forked from" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    _asked(run)


CLIENTS: dict[str, Any] = {"total_clients": 4, "clients_per_round": 2}
ROUNDS = hs.federated.FedSDP(noise_multiplier=2, **CLIENTS, rounds=5, sampling="poisson")
RECORDS: dict[str, Any] = {
    "noise_multiplier": 4.0,
    **CLIENTS,
    "examples_per_client": 6,
    "batch_size": 2,
    "local_steps": 3,
    "rounds": 5,
    "sampling": "two-stage",
}


def zeros(weights: Any, chosen: Any) -> Any:
    return np.zeros((len(chosen), len(weights)))


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
    run = ClientRounds(ROUNDS, size=1, norm=1.0, journal=path)
    run.draw()
    run.draw()
    run.close()
    with pytest.raises(IncompatibleError, match="closed"):
        run.draw()
    again = ClientRounds(ROUNDS, size=1, norm=1.0, journal=path)
    assert again.counted == 2
    with pytest.raises(ParameterError, match="no other run has open"):
        ClientRounds(ROUNDS, size=1, norm=1.0, journal=path)
    again.close()
    with pytest.raises(ParameterError, match="of this very plan"):
        ClientRounds(first_rounds(ROUNDS, 4), size=1, norm=1.0, journal=path)


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
            client.train([0.0], zeros, learning_rate=1.0, round_index=begun)
    client.train([0.0], zeros, learning_rate=1.0, round_index=3)
    assert client.released == first_rounds(hs.federated.FedCDP(**RECORDS), 4)


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
    run = Counter(ROUNDS, None, "")
    assert run._begin(2) == 2
    for begun in (1, 2):
        with pytest.raises(IncompatibleError, match="has begun already, or was left out"):
            run._begin(begun)


linux = pytest.mark.skipif(sys.platform != "linux", reason="asks for Linux's fsync")


class Disk:
    """What is forced to the disk: a file's bytes, and the names in a folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: dict[int, int] = {}
        self.folders: dict[int, list[str]] = {}
        self._force = os.fsync
        monkeypatch.setattr(os, "fsync", self.force)

    def force(self, descriptor: int) -> None:
        self._force(descriptor)
        found = os.fstat(descriptor)
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            self.folders[found.st_ino] = os.listdir(descriptor)
        else:
            self.files[found.st_ino] = found.st_size

    def kept(self, path: Path) -> int:
        """Return how many bytes of a file would be left by a machine that stops now."""
        named = path.name in self.folders.get(path.parent.stat().st_ino, ())
        return self.files.get(path.stat().st_ino, 0) if named else 0


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@linux
def test_each_entry_is_on_the_disk_when_it_is_counted(tmp_path: Path, disk: Disk) -> None:
    path = tmp_path / "steps"
    journal = Journal(path, "plan")
    title = len(b"plan ") + 32 + 1
    assert disk.kept(path) == path.stat().st_size == title
    for done in range(1, 4):
        journal.add(1)
        assert disk.kept(path) == title + done
    journal.add(5)
    assert disk.kept(path) == title + 8
    journal.close()


@linux
def test_the_name_of_a_journal_is_on_the_disk(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that was there, of one in this folder, and of one that a link leads to."""
    Journal(tmp_path / "steps", "plan").close()
    disk.folders.clear()
    Journal(tmp_path / "steps", "plan").close()
    assert disk.kept(tmp_path / "steps") == (tmp_path / "steps").stat().st_size
    monkeypatch.chdir(tmp_path)
    Journal("here", "plan").close()
    assert disk.kept(tmp_path / "here") > 0
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to("far/steps")
    Journal(tmp_path / "near", "plan").close()
    assert disk.kept(tmp_path / "far" / "steps") > 0


@linux
def test_a_round_is_on_the_disk_before_its_cohort_is_known(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = tmp_path / "rounds", []
    plan = hs.federated.FedSDP(
        noise_multiplier=2, total_clients=9, clients_per_round=3, rounds=2, sampling="poisson"
    )
    run = ClientRounds(plan, size=2, norm=0.5, journal=path)
    draw = "hockeystick.release.federated.draw_clients"

    def drawn(*_: Any, **__: Any) -> Any:
        kept.append(disk.kept(path))
        raise KeyboardInterrupt

    before = disk.kept(path)
    monkeypatch.setattr(draw, drawn)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run.draw()
    assert kept == [before + 1, before + 2]
    run.close()


@linux
def test_a_disk_that_fails_is_an_error_and_leaves_the_file_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: int) -> None:
        raise OSError(5, "Input/output error")

    path = tmp_path / "steps"
    journal = Journal(path, "plan")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="Input/output"):
            journal.add(1)
    journal.close()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="Input/output"):
            Journal(path, "plan")
    again = Journal(path, "plan")
    assert again.counted == 1
    again.close()
