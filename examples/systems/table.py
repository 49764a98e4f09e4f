"""Run every system in each of its settings, and save the rows that docs/systems/index.md shows.

    python examples/systems/table.py
    python examples/systems/table.py --seeds 1 --only gopa --only shuffled

A row has the median over the seeds with the least and the largest value, the same without privacy,
the certified cost, and how a run shows that it is what was accounted. All rows are in table.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from click import echo
from digits import NOT_AS_ACCOUNTED, cells

FOLDER = Path(__file__).resolve().parent
SAVED = FOLDER / "table.json"
SEEDS = 5
FEWER = {"flower_digits": 3}  # seeds of what takes most of the time
COLUMNS = "system and setting", "result", "without privacy", "cost", "as accounted"


def programs() -> list[str]:
    """Return the names of the programs that say what system they are; those on Flower last."""
    found = [
        path.stem
        for path in sorted(FOLDER.glob("*.py"))
        if "\nSYSTEM = " in path.read_text(encoding="utf-8")
    ]
    return sorted(found, key=lambda name: name in FEWER)


def rows_of(names: Sequence[str], seeds: int) -> list[dict[str, Any]]:
    """Run programs in their settings, and return the rows of all; each is printed."""
    rows = []
    for name in names:
        module: Any = import_module(name)
        count = min(seeds, FEWER.get(name, seeds))
        for setting, run in module.settings().items():
            found = cells([run(seed) for seed in range(count)])
            head = {"program": name, "setting": setting, "seeds": count, "system": module.SYSTEM}
            rows.append(head | found)
            echo(f"| {module.SYSTEM}: {setting} | {' | '.join(found.values())} |")
    return rows


def main() -> None:
    """Run the systems, print their rows, and save them where all have run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many; medians are shown")
    parser.add_argument(
        "--only", action="append", choices=programs(), help="a program; nothing is saved"
    )
    asked = parser.parse_args()
    if asked.seeds < 1:
        parser.error(f"--seeds must be at least 1; got {asked.seeds}")
    echo(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    rows = rows_of(asked.only or programs(), asked.seeds)
    if not asked.only:
        SAVED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if any(NOT_AS_ACCOUNTED in one["check"] for one in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
