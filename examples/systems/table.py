"""Run every system in each of its settings, and write docs/systems/table.md.

    python examples/systems/table.py
    python examples/systems/table.py --seeds 1 --only gopa --only shuffled

A row has the median over the seeds with the least and the largest value, the same without privacy,
the certified cost, and how a run shows that it is what was accounted. The page is written when all
rows are there.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from digits import Outcome, Setting, cost, repeated, spreads, wrong
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

FOLDER = Path(__file__).resolve().parent
DOCS = FOLDER.parents[1] / "docs" / "systems"
PAGE = DOCS / "table.md"
SEEDS = 5
FEWER = {"flower_digits": 3}  # seeds of what takes most of the time
PAGES = {"flower_digits": "../howto/flower.md"}
NOT_AS_ACCOUNTED = "**not as accounted**"
HEAD = """# All systems in one table

Each row is a program of `examples/systems/` in one of its settings, run with {seeds} seeds. This
page is written by

```sh
python examples/systems/table.py --seeds {seeds}
```

**Result** is the median over the seeds with the least and the largest value, on test images that no
client holds where it is an accuracy; beside it is the same without privacy. The experiments are
small ([Systems that run](index.md) says what they show). **Cost** is the certified upper end of
epsilon, rounded up, and its delta; the largest of the seeds. **What ran is what was accounted**
says first what the system's tests and its page show (`tests/systems/`), then what each run here
compared with its own account. All of it must be true in every run: where it is not the row says so,
and the command fails.

"""


@dataclass(frozen=True)
class Row:
    """A system in one setting, as the table shows it."""

    program: str
    setting: str
    seeds: int
    system: str
    source: str
    command: str
    result: str
    plain: str
    cost: str
    check: str

    def cells(self, seeds: int) -> tuple[str, ...]:
        """Return the cells of a table that has a number of seeds."""
        page = PAGES.get(self.program, f"{self.program}.md")
        system = f"[{self.system}]({page}): {self.setting}"
        result = f"{self.result}; {self.seeds} seeds" if self.seeds < seeds else self.result
        told = self.source, f"`{self.command}`", result, self.plain, self.cost, self.check
        return system, *told


COLUMNS = (
    "System and setting",
    "Paper, algorithm",
    "Command",
    "Result",
    "Without privacy",
    "Cost",
    "What ran is what was accounted",
)


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


def checked(outcomes: Sequence[Outcome], check: str) -> str:
    """Return what the tests show, and what was compared in each run and found true."""
    named, compared = wrong(outcomes), {name for one in outcomes for name in one.checks}
    if named or not compared:
        return f"{NOT_AS_ACCOUNTED}: {', '.join(named) or 'nothing was compared'}"
    return f"{check}. True in all {len(outcomes)} runs: {'; '.join(sorted(compared))}"


def row(
    module: Any, name: str, setting: Setting, outcomes: Sequence[Outcome], plain: Sequence[Outcome]
) -> Row:
    """Return the row of a system in a setting from what its runs came to."""
    system, without = module.SYSTEM, ""
    if setting.plain is not None:
        without = told(outcomes, (setting.plain,))
    elif plain:
        without = told(plain, [name for name in setting.figures if name in plain[0].result])
    return Row(
        program=module.__name__,
        setting=name,
        seeds=len(outcomes),
        system=system["name"],
        source=f"{system['paper']}, {system['algorithm']}",
        command=system["command"],
        result=told(outcomes, setting.figures),
        plain=without,
        cost=cost(outcomes),
        check=checked(outcomes, system["check"]),
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


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table in Markdown."""
    most = max((one.seeds for one in rows), default=0)
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(one.cells(most) for one in rows)]
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
    """Run the systems, and write the page, or print the rows of some."""
    asked, console = arguments(), Console(stderr=True)
    columns = TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        rows = rows_of(asked.only or programs(), asked.seeds, progress)
    if asked.only:
        sys.stdout.write(table(rows))
    else:
        PAGE.write_text(HEAD.format(seeds=asked.seeds) + table(rows), encoding="utf-8")
        console.print(f"{len(rows)} rows in {PAGE.relative_to(FOLDER.parents[1])}")
    if any(NOT_AS_ACCOUNTED in one.check for one in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
