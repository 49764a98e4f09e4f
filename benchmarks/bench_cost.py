"""What epsilon costs over steps, delta and rate: the tables of the report, and every slow cell.

``python -m benchmarks.bench_cost`` prints the processor's time and the relative width of each cell,
and lists what takes longer than ``--slow`` milliseconds; with ``--routes`` also the answers there.
With ``--out FILE`` all of it is written to a page as well: benchmarks/COST.md is one.
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.progress import track

import hockeystick as hs
from benchmarks.reporting import cost, page
from benchmarks.reporting.sides import OWN
from benchmarks.reporting.worker import Crew

REPEATS = 3
LIMIT = 3.0
HEAD = f"""# What epsilon costs

Written by `python -m benchmarks.bench_cost --routes --out benchmarks/COST.md`: the processor's
time for one answer, the median of up to {REPEATS}, and in brackets the interval's width relative to
its upper end. A limit of {LIMIT:g} s stands on each answer.
"""


def main() -> None:
    """Print the tables, then the slow cells."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slow", type=float, default=300.0, help="milliseconds")
    parser.add_argument("--routes", action="store_true", help="ask the slow cells again")
    parser.add_argument("--out", type=Path, help="a page for tables and slow cells")
    asked = parser.parse_args()
    slow = asked.slow / 1e3
    console = Console(width=160)
    with Crew([OWN.library]) as crew:
        found = cost.costs(
            crew,
            cost.GRIDS,
            cost.NOISES,
            REPEATS,
            LIMIT,
            lambda items, label: track(items, label, transient=True),
        )
    lines = [page.costs(found), ""]
    cells = [cell for table in found for row in table.rows.values() for cell in row]
    for cell in cells:
        if cell.timed.seconds > slow:
            answer = hs.epsilon(cell.question.plan, cell.question.delta) if asked.routes else ""
            lines.append(f"- {page.duration(cell.timed.seconds)}: {cell.question} {answer}")
    count = sum(cell.timed.seconds > slow for cell in cells)
    lines.append(f"\n{count} of {len(cells)} take longer than {asked.slow:g} ms")
    text = "\n".join(lines)
    console.print(text, highlight=False, markup=False)
    if asked.out:
        asked.out.write_text(f"{HEAD}\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
