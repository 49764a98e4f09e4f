"""Ray as an executor: what its tasks answer, what they raise, and how they are called off."""

from __future__ import annotations

import fcntl
import gc
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs

pytest.importorskip("ray", reason="needs the extra ray")

import ray

from hockeystick.adapters.ray import RayExecutor

pytestmark = [
    # Its sockets and pipes are closed by the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLAN = hs.DPSGD(noise_multiplier=1, examples=60_000, batch_size=256, epochs=1)
GRID = {"epochs": range(1, 21), "noise_multiplier": [1 + 0.05 * k for k in range(10)]}
PATIENCE_SECONDS = 300


class FaultError(Exception):
    """What is no error of the library's."""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # Two clusters at once, of two processes of tests, would keep tasks of each other waiting.
    paths = str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")
    lock = Path(tempfile.gettempdir()) / "hockeystick-tests-ray.lock"
    with lock.open("w") as held, warnings.catch_warnings():
        fcntl.flock(held, fcntl.LOCK_EX)
        # What Ray and what it loads warn of is theirs.
        warnings.simplefilter("ignore")
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            object_store_memory=100 * 2**20,
            # Workers unpickle what this file defines.
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(paths)}},
        )
        yield
        ray.shutdown()
        gc.collect()


@pytest.fixture
def executor() -> Iterator[Any]:
    with RayExecutor(max_retries=0) as executor:
        yield executor


def test_a_sweep_is_that_of_this_process_byte_for_byte_also_when_it_is_taken_up_again(
    executor: Any, tmp_path: Path
) -> None:
    ask = hs.calibration.AskEpsilon(PLAN, 1e-5)
    here = list(hs.sweep(GRID, ask, out=tmp_path / "here.csv"))
    rows: Any = hs.sweep(GRID, ask, executor, out=tmp_path / "ray.csv", in_flight=4)
    first = [next(rows) for _ in range(50)]
    rows.close()
    told: list[int] = []
    again = hs.sweep(
        GRID, ask, executor, out=tmp_path / "ray.csv", progress=lambda done, _: told.append(done)
    )
    assert list(again) == here
    assert first == here[:50]
    assert told[0] >= 50
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_what_a_call_raises_is_raised_as_itself(executor: Any) -> None:
    def fails() -> None:
        raise FaultError("no such thing", 3)

    error = executor.submit(fails).exception(PATIENCE_SECONDS)
    assert type(error) is FaultError
    assert error.args == ("no such thing", 3)
    assert isinstance(error.__cause__, ray.exceptions.RayTaskError)

    def ask(x: int) -> int:
        if x > 1:
            fails()
        return x

    rows = hs.sweep({"x": range(9)}, ask, executor, in_flight=1)
    assert [next(rows)["value"] for _ in range(2)] == [0, 1]
    with pytest.raises(FaultError, match="no such thing"):
        next(rows)


def test_a_worker_that_dies_fails_its_call_and_no_other(executor: Any) -> None:
    died = executor.submit(os._exit, 1)
    assert executor.submit(pow, 2, exp=5).result(PATIENCE_SECONDS) == 32
    assert list(executor.map(pow, [2, 3], [5, 2])) == [32, 9]
    assert isinstance(died.exception(PATIENCE_SECONDS), ray.exceptions.WorkerCrashedError)


def test_a_call_that_runs_is_cancelled_and_one_that_is_done_is_not(
    executor: Any, tmp_path: Path
) -> None:
    def runs() -> None:
        (tmp_path / "began").touch()
        while True:
            time.sleep(0.01)

    future = executor.submit(runs)
    end = time.monotonic() + PATIENCE_SECONDS
    while not (tmp_path / "began").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert future.cancel()
    done, _ = wait([future], PATIENCE_SECONDS)
    assert done == {future}
    with pytest.raises(CancelledError):
        future.result()
    ready = executor.submit(pow, 2, 3)
    assert ready.result(PATIENCE_SECONDS) == 8
    assert not ready.cancel()


def test_the_end_waits_for_the_calls_or_cancels_them_and_takes_no_more() -> None:
    with RayExecutor() as waiting:
        future = waiting.submit(time.sleep, 0.2)
    assert future.done()
    with pytest.raises(RuntimeError, match="after shutdown"):
        waiting.submit(pow, 2, 3)
    ending = RayExecutor(num_cpus=2)
    futures = [ending.submit(time.sleep, 0.5) for _ in range(8)]
    ending.shutdown(cancel_futures=True)
    assert all(future.done() for future in futures)
    assert futures[-1].cancelled()
