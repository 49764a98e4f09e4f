"""Reservations a second: SQLite that waits for the disk, PostgreSQL, and after 10,000 others.

``make timings`` reserves a few. Run as a program, it prints reservations a second of one process on
both databases, with what the disk alone allows beside SQLite, and what the 10,000th reservation
costs as against the 10th. PostgreSQL is left out, with a reason, where it is not installed.
"""

import argparse
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

import hockeystick as hs
from tests.ledger import postgres

BUDGET: Final = hs.ZCDP(rho=1e6)
RELEASE: Final = hs.Gaussian(10.0)
LATE: Final = 10_000


def opened(url: str) -> hs.Ledger:
    """Return a ledger of which one reservation has been made."""
    ledger = hs.Ledger(url, "d", BUDGET)
    ledger.reserve(RELEASE, by="ana")
    return ledger


def times(ledger: hs.Ledger, count: int, clock: Callable[[], float]) -> list[float]:
    """Return what each of some reservations takes."""
    found = []
    for _ in range(count):
        start = clock()
        ledger.reserve(RELEASE, by="ana", note="weekly")
        found.append(clock() - start)
    return found


def bench_reserve(benchmark: Any, tmp_path: Path) -> None:
    ledger = opened(str(tmp_path / "ledger.db"))
    benchmark(ledger.reserve, RELEASE, by="ana")


def bare(file: Path, count: int) -> list[float]:
    """Return what transactions of one insertion take in SQLite alone, as durable as a ledger's."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE rows (text TEXT)")
    found = []
    for _ in range(count):
        start = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?)", ("x" * 600,))
        connection.execute("COMMIT")
        found.append(time.perf_counter() - start)
    connection.close()
    return found


def late(folder: Path) -> tuple[float, float]:
    """Return the processor's time of about the 10th and about the 10,000th reservation.

    In memory where the system has such a folder: the disk takes the same time for both.
    """
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else folder
    with tempfile.TemporaryDirectory(dir=memory) as place:
        ledger = opened(str(Path(place) / "ledger.db"))
        taken = times(ledger, LATE + 50, time.process_time)
    return statistics.median(taken[:50]), statistics.median(taken[-50:])


def table(count: int) -> Table:
    """Return what reservations take."""
    shown = Table(title=f"{count:,} reservations by one process")
    shown.add_column("where")
    for column in ("a second", "median ms", "CPU ms"):
        shown.add_column(column, justify="right")

    def add(name: str, taken: list[float], processor: float | None) -> None:
        median = f"{1000 * statistics.median(taken):.2f}"
        own = "" if processor is None else f"{1000 * processor / len(taken):.2f}"
        shown.add_row(name, f"{len(taken) / sum(taken):.0f}", median, own)

    def add_ledger(name: str, url: str) -> None:
        ledger = opened(url)
        start = time.process_time()
        taken = times(ledger, count, time.perf_counter)
        add(name, taken, time.process_time() - start)
        ledger.close()

    with tempfile.TemporaryDirectory() as folder:
        add("SQLite alone, one insertion", bare(Path(folder) / "bare.db", count), None)
        add_ledger("ledger on SQLite", str(Path(folder) / "ledger.db"))
    if reason := postgres.missing():
        shown.add_row(f"PostgreSQL: {reason}", "", "", "")
    else:
        with postgres.server() as server:
            add_ledger("ledger on PostgreSQL", server.url())
    return shown


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    console = Console()
    console.print(table(given.count))
    early, then = late(Path(os.curdir))
    console.print(
        f"processor's time: the 10th {1000 * early:.2f} ms, the {LATE:,}th {1000 * then:.2f} ms, "
        f"ratio {then / early:.2f}"
    )


if __name__ == "__main__":
    main()
