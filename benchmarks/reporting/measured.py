"""All that a report says, measured in one go."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.progress import track as rich_track

from benchmarks.reporting import machine, soundness, timing
from benchmarks.reporting.sides import OWN, SIDES, here
from benchmarks.reporting.worker import Crew


class Effort(NamedTuple):
    """How much is asked."""

    repeats: int
    limit: float
    usual_deltas: int
    small_deltas: int
    widths: int
    sizes: dict[str, Sequence[float]]

    @property
    def solve_limit(self) -> float:
        """The limit of a search, which asks many times."""
        return 4.0 * self.limit


FULL: Final = Effort(
    repeats=3,
    limit=3.0,
    usual_deltas=30,
    small_deltas=10,
    widths=150,
    sizes={
        "steps": tuple(10.0**k for k in (2, 3, 4, 5, 6, 7, 9)),
        "1/delta": tuple(10.0**k for k in (3, 6, 10, 15, 30, 100, 300)),
        "distinct mechanisms": (1, 3, 10, 30, 100),
        timing.POINTS: (10, 100, 1000),
    },
)
QUICK: Final = Effort(
    repeats=1,
    limit=0.5,
    usual_deltas=2,
    small_deltas=1,
    widths=5,
    sizes={
        "steps": (100.0, 1000.0),
        "1/delta": (1e3, 1e5),
        "distinct mechanisms": (1, 2),
        timing.POINTS: (10, 100),
    },
)


class Measured(NamedTuple):
    """What one run of the report found."""

    effort: Effort
    machine: dict[str, str]
    versions: dict[str, str]
    usual: dict[str, dict[str, timing.Timed]]
    judged: dict[str, list[soundness.Judged]]
    widths: list[soundness.Judged]
    growth: list[timing.Curve]
    solved: dict[str, timing.Solved]
    absent: tuple[str, ...]


def measure(effort: Effort, console: Console) -> Measured:
    """Ask everything, and show how far it is."""
    start, load = time.perf_counter(), machine.load()

    def track(items: Iterable[Any], label: str) -> Iterator[Any]:
        yield from rich_track(list(items), label, console=console)

    with Crew() as crew:
        usual = timing.usual(crew, effort.repeats, effort.limit, track)
        solved = timing.solved(crew, effort.repeats, effort.solve_limit, track)
        growth = timing.growth(crew, effort.sizes, effort.repeats, effort.limit, track)
        cases = soundness.cases()[: effort.widths]
        widths = soundness.judgements(crew, track([OWN], "widths"), cases, effort.limit)[OWN.name]
        asked = soundness.chosen(effort.usual_deltas, effort.small_deltas)
        judged = soundness.judgements(crew, track(here(), "random plans"), asked, effort.limit)
    about = machine.described() | {
        "load before": load,
        "load after": machine.load(),
        "taken": f"{(time.perf_counter() - start) / 60.0:.1f} minutes",
    }
    absent = tuple(side.name for side in SIDES if not side.installed)
    found = usual, judged, widths, growth, solved
    return Measured(effort, about, machine.versions(), *found, absent)
