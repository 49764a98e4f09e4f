"""The widths of 300 random plans' intervals.

Run by ``make tables``. The truths of the random plans are those of tests/oracles/random_plans.json,
computed by another route.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

import hockeystick as hs

RANDOM_PLANS = Path(__file__).parents[1] / "tests" / "oracles" / "random_plans.json"
WIDTHS = (1e-12, 1e-9, 1e-6, 1e-3, 1.0, 10.0, 1e9)
SAMPLED_ABOUT = (0.3, 3.0, 30.0, 300.0, 1e9)


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


def main() -> None:
    """Print the table."""
    console = Console(width=140)
    console.print(widths())


if __name__ == "__main__":
    main()
