"""Reservations a second, one by one and in batches, on SQLite and PostgreSQL.

``python -m benchmarks.bench_ledger`` prints what reservations take, with what the disk alone allows
beside SQLite, and what the 10,000th costs as against the 10th. PostgreSQL is left out, with a
reason, where it is not installed.
"""

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

import hockeystick as hs
from tests.ledger import postgres

BUDGET: Final = hs.ZCDP(rho=1e6)
RELEASE: Final = hs.Gaussian(10.0)
BATCH: Final = 100
LATE: Final = 10_000
MEMORY: Final = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


def times(count: int, work: Callable[[], object], clock: Callable[[], float]) -> list[float]:
    """Return what each of some calls takes."""
    found = []
    for _ in range(count):
        start = clock()
        work()
        found.append(clock() - start)
    return found


@contextmanager
def ledgers(memory: Path | None) -> Iterator[dict[str, hs.Ledger]]:
    """Yield a ledger on each database that there is, of which one reservation has been made."""
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        found = {"SQLite": hs.Ledger(Path(folder) / "ledger.db", "d", BUDGET)}
        if postgres.missing() is None:
            with postgres.server(memory) as server:
                found["PostgreSQL"] = hs.Ledger(server.url(), "d", BUDGET)
                for ledger in found.values():
                    ledger.reserve(RELEASE)
                yield found
                found["PostgreSQL"].close()
        else:
            found["SQLite"].reserve(RELEASE)
            yield found


def bare(file: Path, count: int) -> list[float]:
    """Return what transactions of one insertion take in SQLite alone, as durable as a ledger's."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE rows (text TEXT)")

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?)", ("x" * 600,))
        connection.execute("COMMIT")

    found = times(count, insert, time.perf_counter)
    connection.close()
    return found


def late_ones() -> Iterator[str]:
    """Yield what late reservations take as against early ones, in memory where there is such."""
    with ledgers(MEMORY) as there:
        for name, ledger in there.items():
            clock = time.process_time if name == "SQLite" else time.perf_counter
            taken = times(LATE + 50, partial(ledger.reserve, RELEASE), clock)
            early, then = (1000 * statistics.median(some) for some in (taken[:50], taken[-50:]))
            told = f"the 10th {early:.2f} ms, the {LATE:,}th {then:.2f} ms"
            yield f"{name}: {told}, ratio {then / early:.2f}"


def table(count: int) -> Table:
    """Return what reservations take on a disk."""
    shown = Table(title=f"{count:,} reservations by one process, and batches of {BATCH}")
    shown.add_column("where")
    for column in ("a second", "median ms"):
        shown.add_column(column, justify="right")

    def add(name: str, taken: list[float], each: int = 1) -> None:
        rate = f"{each * len(taken) / sum(taken):.0f}"
        shown.add_row(name, rate, f"{1000 * statistics.median(taken):.2f}")

    with tempfile.TemporaryDirectory() as folder:
        add("SQLite alone, one insertion", bare(Path(folder) / "bare.db", count))
    with ledgers(None) as there:
        for name, ledger in there.items():
            one = partial(ledger.reserve, RELEASE)
            many = partial(ledger.reserve_many, [RELEASE] * BATCH)
            add(f"{name}, one by one", times(count, one, time.perf_counter))
            add(f"{name}, a batch", times(max(count // BATCH, 3), many, time.perf_counter), BATCH)
    if reason := postgres.missing():
        shown.add_row(f"PostgreSQL: {reason}", "", "")
    return shown


def main() -> None:
    """Print the table and what late reservations take."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    console = Console()
    console.print(table(given.count))
    for sentence in late_ones():
        console.print(sentence)


if __name__ == "__main__":
    main()
