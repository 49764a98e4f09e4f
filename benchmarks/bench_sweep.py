"""A sweep of DP-SGD plans: answers a second in process, and with two workers of dask beside it.

``make timings`` sweeps a few cells. Run as a program, it prints answers a second for 10,000 plans
in process and on a cluster of two worker processes, their ratio, and what the sweep costs on top
of its questions.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from rich.console import Console
from rich.table import Table

import hockeystick as hs
from hockeystick.calibration.sweeps.sweep import Grid

PLAN: Final = hs.DPSGD(noise_multiplier=1, examples=60_000, batch_size=256, epochs=1)
ASK: Final = hs.calibration.AskEpsilon(PLAN, 1e-5)
PLANS: Final = 10_000
FREE: Final = 20_000


def grid(plans: int) -> Mapping[str, Sequence[float]]:
    """Return about so many plans: noise from 0.8 to 4, up to 100 epochs, four batch sizes."""
    side = max(1, round((plans / 4) ** 0.5))
    return {
        "batch_size": (128, 256, 512, 1024),
        "epochs": [1 + 99 * k / side for k in range(side)],
        "noise_multiplier": [0.8 * 5 ** (k / side) for k in range(side)],
    }


def seconds(plans: int, executor: Executor | None = None, out: Path | None = None) -> float:
    """Return what a sweep takes."""
    start = time.perf_counter()
    rows = list(hs.sweep(grid(plans), ASK, executor, out=out, in_flight=8))
    taken = time.perf_counter() - start
    assert all(row["error"] is None for row in rows)
    return taken


def nothing(k: int) -> float:
    """Answer at once."""
    return k / 3


def on_top(out: Path | None) -> float:
    """Return what a sweep costs on top of its questions, in seconds a cell."""
    start = time.perf_counter()
    for _ in hs.sweep({"k": range(FREE)}, nothing, out=out):
        pass
    return (time.perf_counter() - start) / FREE


@pytest.mark.parametrize("ending", [None, ".csv", ".jsonl"])
def bench_sweep(benchmark: Any, tmp_path: Path, ending: str | None) -> None:
    plans = 100 if benchmark.enabled else 4
    out = None if ending is None else tmp_path / f"rows{ending}"
    seconds(4)
    taken = benchmark.pedantic(seconds, (plans,), {"out": out})
    benchmark.extra_info["answers a second"] = plans / taken


class Taken(NamedTuple):
    """What a sweep took: by the clock, and of the processors' time, here and in the workers.

    On a machine that others use as well, only the latter is the sweep's own.
    """

    seconds: float
    here: float
    workers: tuple[float, ...]


def in_process(plans: int) -> Taken:
    """Return what a sweep takes in this process."""
    start = time.process_time()
    taken = seconds(plans)
    return Taken(taken, time.process_time() - start, ())


def on_a_cluster(plans: int) -> Taken:
    """Return what a sweep takes on two worker processes, once they have started."""
    distributed: Any = import_module("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        seconds(100, executor)
        start, before = time.process_time(), client.run(time.process_time)
        taken = seconds(plans, executor)
        after = client.run(time.process_time)
        workers = tuple(after[name] - before[name] for name in before)
        return Taken(taken, time.process_time() - start, workers)


def table(plans: int) -> Table:
    """Return what a sweep takes here and there."""
    cells = len(Grid.of(grid(plans)))
    shown = Table(title=f"a sweep of {cells:,} DP-SGD plans")
    shown.add_column("where")
    for column in ("seconds", "answers/s", "ratio", "CPU s here", "CPU s of workers"):
        shown.add_column(column, justify="right")
    seconds(100)
    here, there = in_process(plans), on_a_cluster(plans)
    for name, taken in (("in process", here), ("two workers of dask", there)):
        shown.add_row(
            name,
            f"{taken.seconds:.1f}",
            f"{cells / taken.seconds:.0f}",
            f"{here.seconds / taken.seconds:.2f}",
            f"{taken.here:.1f}",
            " + ".join(f"{one:.1f}" for one in taken.workers),
        )
    with tempfile.TemporaryDirectory() as folder:
        for ending in (None, ".csv", ".jsonl"):
            out = None if ending is None else Path(folder) / f"rows{ending}"
            shown.add_row(
                f"on top, {ending or 'without a file'}", f"{on_top(out) * 1e6:.0f} us/cell"
            )
    return shown


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=PLANS)
    plans = parser.parse_args().plans
    console = Console(width=100)
    console.print(table(plans))
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} a minute")


if __name__ == "__main__":
    main()
