"""Run every system in each of its settings, and save the rows that docs/systems/index.md shows.

    python examples/systems/table.py
    python examples/systems/table.py --seeds 1 --only gopa --only shuffled

A row has the median over the seeds with the least and the largest value, the same without privacy,
the certified cost, and how a run shows that it is what was accounted. All rows are in table.json.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from digits import Outcome, Setting, cost, repeated, spreads, wrong
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

FOLDER = Path(__file__).resolve().parent
SAVED = FOLDER / "table.json"
SEEDS = 5
FEWER = {"flower_digits": 3}  # seeds of what takes most of the time
NOT_AS_ACCOUNTED = "**not as accounted**"
COLUMNS = "System and setting", "Result", "Without privacy", "Cost", "As accounted"


@dataclass(frozen=True)
class Row:
    """A system in one setting, as the table shows it."""

    program: str
    setting: str
    seeds: int
    system: str
    result: str
    plain: str
    cost: str
    check: str

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        return f"{self.system}: {self.setting}", self.result, self.plain, self.cost, self.check


def programs() -> list[str]:
    """Return the names of the programs that say what system they are; those on Flower last."""
    found = [
        path.stem
        for path in sorted(FOLDER.glob("*.py"))
        if re.search(r"^SYSTEM = ", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    return sorted(found, key=lambda name: name in FEWER)


def private(settings: dict[str, Setting]) -> dict[str, Setting]:
    """Return the settings that are no other one's comparison without privacy."""
    beside = {setting.beside for setting in settings.values()}
    return {name: setting for name, setting in settings.items() if name not in beside}


def told(outcomes: Sequence[Outcome], figures: Sequence[str]) -> str:
    """Return the figures of a setting over its runs; all where none are named."""
    found = spreads(outcomes)
    return "; ".join(f"{name} {found[name]}" for name in figures or found)


def checked(outcomes: Sequence[Outcome]) -> str:
    """Return in how many runs all that was compared with the account was true, or what was not."""
    named, compared = wrong(outcomes), any(one.checks for one in outcomes)
    if named or not compared:
        return f"{NOT_AS_ACCOUNTED}: {', '.join(named) or 'nothing was compared'}"
    return f"{len(outcomes)} runs"


def row(
    module: Any, name: str, setting: Setting, outcomes: Sequence[Outcome], plain: Sequence[Outcome]
) -> Row:
    """Return the row of a system in a setting from what its runs came to."""
    without = ""
    if setting.plain is not None:
        without = told(outcomes, (setting.plain,))
    elif plain:
        without = told(plain, [name for name in setting.figures if name in plain[0].result])
    return Row(
        program=module.__name__,
        setting=name,
        seeds=len(outcomes),
        system=module.SYSTEM,
        result=told(outcomes, setting.figures),
        plain=without,
        cost=cost(outcomes),
        check=checked(outcomes),
    )


def rows_of(names: Sequence[str], seeds: int, progress: Progress) -> list[Row]:
    """Run programs in their settings, and return the rows of all."""
    rows = []
    for name in names:
        task = progress.add_task(name, total=None)
        module: Any = import_module(name)
        count = min(seeds, FEWER.get(name, seeds))
        settings, plain = module.settings(), dict[str, Sequence[Outcome]]()
        shown = private(settings)
        progress.update(task, total=len(shown))
        for words, setting in shown.items():
            beside = setting.beside or ""
            if beside and beside not in plain:
                plain[beside] = repeated(settings[beside].run, 0, count)
            outcomes = repeated(setting.run, 0, count)
            rows.append(row(module, words, setting, outcomes, plain.get(beside, ())))
            progress.advance(task)
    return rows


def as_json(rows: Sequence[Row]) -> str:
    """Return rows as a text that is read again."""
    return json.dumps([asdict(one) for one in rows], indent=1) + "\n"


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table in Markdown."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(one.cells() for one in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many; medians are shown")
    parser.add_argument(
        "--only", action="append", choices=programs(), help="a program; shows its rows instead"
    )
    asked = parser.parse_args()
    if asked.seeds < 1:
        parser.error(f"--seeds must be at least 1; got {asked.seeds}")
    return asked


def main() -> None:
    """Run the systems, and save their rows, or print the rows of some."""
    asked, console = arguments(), Console(stderr=True)
    columns = TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        rows = rows_of(asked.only or programs(), asked.seeds, progress)
    if asked.only:
        sys.stdout.write(table(rows))
    else:
        SAVED.write_text(as_json(rows), encoding="utf-8")
        console.print(f"{len(rows)} rows in {SAVED}")
    if any(NOT_AS_ACCOUNTED in one.check for one in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
