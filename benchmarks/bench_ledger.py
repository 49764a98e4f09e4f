"""Reservations a second: SQLite that waits for the disk, PostgreSQL, and after 10,000 others.

``make timings`` reserves a few. Run as a program, it prints reservations a second of one process on
both databases, with what the disk alone allows beside SQLite, and what the 10,000th reservation
costs as against the 10th. PostgreSQL is left out, with a reason, where it is not installed.
"""

import argparse
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


def late(url: str, clock: Callable[[], float]) -> str:
    """Return what about the 10th and about the 10,000th reservation take, as a sentence."""
    ledger = opened(url)
    taken = times(ledger, LATE + 50, clock)
    ledger.close()
    early, then = (1000 * statistics.median(some) for some in (taken[:50], taken[-50:]))
    return f"the 10th {early:.2f} ms, the {LATE:,}th {then:.2f} ms, ratio {then / early:.2f}"


def late_ones() -> list[str]:
    """Return what late reservations take on both databases.

    In memory where the system has such a folder: the disk takes the same time for both.
    """
    memory = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        said = [f"SQLite, CPU: {late(str(Path(folder) / 'ledger.db'), time.process_time)}"]
    if postgres.missing() is None:
        with postgres.server(memory) as server:
            said.append(f"PostgreSQL, elapsed: {late(server.url(), time.perf_counter)}")
    return said


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
    for sentence in late_ones():
        console.print(sentence)


if __name__ == "__main__":
    main()
