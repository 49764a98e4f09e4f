"""What epsilon of DP-SGD costs over steps and rate, and over delta and rate, for some noises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from benchmarks.reporting.sides import OWN, Question
from benchmarks.reporting.timing import Progress, Timed, asking, medians
from benchmarks.reporting.worker import Crew

NOISES: Final = (0.7, 1.0, 3.0)
RATES: Final = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
STEPS: Final = tuple(10**k for k in range(1, 10))
DELTAS: Final = (1e-3, 1e-5, 1e-8, 1e-12, 1e-20, 1e-50, 1e-100, 1e-300)
USUAL_STEPS: Final = 10_000
USUAL_DELTA: Final = 1e-5


class Cell(NamedTuple):
    """One cell: its question, what the answer takes, and how wide it is over its upper end."""

    question: Question
    timed: Timed
    width: float


class CostTable(NamedTuple):
    """The cells of one noise: a row for each size along an axis, a column for each rate."""

    axis: str
    noise: float
    rates: Sequence[float]
    rows: dict[float, list[Cell]]

    @property
    def slowest(self) -> Cell:
        """The cell that takes longest."""
        return max((one for row in self.rows.values() for one in row), key=lambda one: one[1][0])

    @property
    def widest(self) -> Cell:
        """The cell whose answer is widest."""
        return max((one for row in self.rows.values() for one in row), key=lambda one: one.width)


class Grid(NamedTuple):
    """What a table asks: its axis, the sizes along it, and the rates."""

    axis: str
    sizes: Sequence[float]
    rates: Sequence[float]

    def question(self, noise: float, rate: float, size: float) -> Question:
        """Return the question of a cell."""
        if self.axis == "steps":
            return Question(rate, (noise,), round(size), USUAL_DELTA)
        return Question(rate, (noise,), USUAL_STEPS, size)


GRIDS: Final = (Grid("steps", STEPS, RATES), Grid("delta", DELTAS, RATES))


def costs(
    crew: Crew,
    grids: Sequence[Grid],
    noises: Sequence[float],
    repeats: int,
    limit: float,
    track: Progress,
) -> list[CostTable]:
    """Return what every cell takes: the median of some runs, and the width of the last answer."""

    def cell(question: Question) -> Cell:
        timed = medians(asking(crew, (OWN,), question, limit), repeats, limit)[OWN.name]
        return Cell(question, timed, relative_width(timed.answer))

    asked = [(grid, noise) for grid in grids for noise in noises]
    return [
        CostTable(
            grid.axis,
            noise,
            grid.rates,
            {
                size: [cell(grid.question(noise, rate, size)) for rate in grid.rates]
                for size in grid.sizes
            },
        )
        for grid, noise in track(asked, "cost")
    ]


def relative_width(answer: Any) -> float:
    """Return the width of an interval over its upper end: 1 for no answer, 0 for a single 0."""
    if answer is None:
        return 1.0
    lower, upper = answer
    return float((upper - lower) / upper) if upper > 0.0 else 0.0
