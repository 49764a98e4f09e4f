"""Two tables: the widths of 300 random plans' intervals, and what an answer costs.

Run by ``make tables``. The truths of the random plans are those of tests/oracles/random_plans.json,
computed by another route.
"""

import json
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import hockeystick as hs

RANDOM_PLANS = Path(__file__).parents[1] / "tests" / "oracles" / "random_plans.json"
WIDTHS = (1e-12, 1e-9, 1e-6, 1e-3, 1.0, 10.0, 1e9)
SAMPLED_ABOUT = (0.3, 3.0, 30.0, 300.0, 1e9)
STEPS = tuple(10**k for k in range(2, 10))
DELTAS = (1e-3, 1e-5, 1e-10, 1e-30, 1e-100, 1e-300)
PAIRS = ((0.01, 1.0), (0.001, 0.8))
REPEATS = 5


def steps_of(rate: float, noise_multiplier: float, steps: int) -> hs.Mechanism:
    """Return so many steps of DP-SGD as a mechanism."""
    return hs.PoissonSubsampled(hs.Gaussian(noise_multiplier), rate) ** steps


def widths() -> Table:
    """Return how many intervals of the random plans are how wide, relative to the truth."""
    counts: dict[tuple[float, float], int] = {}
    missed = 0
    for plan in track(json.loads(RANDOM_PLANS.read_text(encoding="utf-8")), "random plans"):
        mechanism = steps_of(plan["rate"], plan["noise_multiplier"], plan["steps"])
        answer = hs.epsilon(mechanism, plan["delta"], accountant="contour")
        truth = max(float(plan[direction]["epsilon"]) for direction in ("remove", "add"))
        missed += not answer.lower <= truth <= answer.upper
        sampled = first_above(SAMPLED_ABOUT, plan["rate"] * plan["steps"])
        width = first_above(WIDTHS, answer.width / truth)
        counts[sampled, width] = counts.get((sampled, width), 0) + 1
    table = Table(title=f"Relative widths of 300 random plans; {missed} miss the truth")
    table.add_column("rate x steps")
    for width in WIDTHS:
        table.add_column("wider" if width == WIDTHS[-1] else f"<= {width:g}", justify="right")
    for sampled in SAMPLED_ABOUT:
        label = "more" if sampled == SAMPLED_ABOUT[-1] else f"<= {sampled:g}"
        table.add_row(label, *(str(counts.get((sampled, width), 0)) for width in WIDTHS))
    return table


def first_above(limits: Iterable[float], value: float) -> float:
    """Return the first limit that the value does not exceed."""
    return next(limit for limit in limits if value <= limit)


def cost(rate: float, noise_multiplier: float) -> Table:
    """Return what an answer costs, over steps and delta: the median time and the width."""
    table = Table(title=f"ms (relative width) at rate {rate:g}, noise {noise_multiplier:g}")
    table.add_column("delta")
    for steps in STEPS:
        table.add_column(f"{steps:.0e}", justify="right")
    hs.epsilon(steps_of(rate, noise_multiplier, STEPS[0]), DELTAS[0], accountant="contour")
    for delta in track(DELTAS, f"rate {rate:g}"):
        asked = [timed(steps_of(rate, noise_multiplier, steps), delta) for steps in STEPS]
        table.add_row(f"{delta:.0e}", *(f"{ms:.1f} ({width:.0e})" for ms, width in asked))
    return table


def timed(plan: hs.Mechanism, delta: float) -> tuple[float, float]:
    """Return the median time of an answer in milliseconds, and its relative width."""
    seconds = []
    answer: Any = None
    for _ in range(REPEATS):
        start = time.perf_counter()
        answer = hs.epsilon(plan, delta, accountant="contour")
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds), answer.relative_width


def main() -> None:
    """Print the tables."""
    console = Console(width=140)
    console.print(widths())
    for pair in PAIRS:
        console.print(cost(*pair))


if __name__ == "__main__":
    main()
