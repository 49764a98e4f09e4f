"""Processor time and relative width of epsilon for random plans, of few hits and of many.

Rates are from 1e-5 to 0.5, noise multipliers from 0.5 to 10, steps from 30 to 10^6 and deltas from
1e-12 to 1e-4, each uniform in its logarithm. ``python -m benchmarks.bench_random_plans`` asks 250,
and with ``--peers N`` the first N of them of dp-accounting's PLD and of Opacus's PRV as well: each
library in a process of its own, the sides taking turns, with a limit on every answer.
"""

import argparse
import math
import random
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import hockeystick as hs
from benchmarks.reporting.cost import relative_width
from benchmarks.reporting.page import NOTHING
from benchmarks.reporting.sides import OWN, SIDES, Question, Side, is_answer
from benchmarks.reporting.worker import Crew, Outcome

SEED = 24
LIMIT = 5.0
PEERS = ("dp-accounting PLD", "Opacus PRV")
QUANTILES = {"median": 0.5, "95 %": 0.95, "99 %": 0.99, "largest": 1.0}


def questions(count: int) -> list[Question]:
    """Return so many plans, each with its delta."""
    draw = random.Random(SEED)

    def between(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    found: list[Question] = []
    for _ in range(count):
        rate, noise = between(1e-5, 0.5), between(0.5, 10)
        steps, delta = round(between(30, 1e6)), between(1e-12, 1e-4)
        found.append(Question(rate, (noise,), steps, delta))
    return found


def outcomes(crew: Crew, sides: Sequence[Side], count: int, peers: int) -> dict[str, list[Outcome]]:
    """Return what each side answers: this package all questions, the others the first ones."""
    found: dict[str, list[Outcome]] = {side.name: [] for side in sides}
    for k, question in enumerate(track(questions(count), description="Asking", transient=True)):
        for side in sides:
            if side is OWN or k < peers:
                found[side.name].append(crew.ask(side, question, LIMIT))
    return found


def quantiles(found: Sequence[Outcome]) -> dict[str, float]:
    """Return quantiles of the times in milliseconds; a limit that was hit counts as the limit."""
    times = np.array([1e3 * one.seconds for one in found])
    return {name: float(np.quantile(times, q)) for name, q in QUANTILES.items()}


def too_small(found: Sequence[Outcome], own: Sequence[Outcome]) -> int:
    """Return how many printed numbers lie below the proven lower end."""
    pairs = zip(found, own, strict=False)
    return sum(
        not one.failure and not ours.failure and one.answer[1] < ours.answer[0]
        for one, ours in pairs
    )


def answered(one: Outcome) -> bool:
    """Whether a finite number came back in time."""
    return not one.failure and is_answer(one.answer)


def table(found: dict[str, list[Outcome]]) -> Table:
    """Return the sides' times, refusals and errors."""
    shown = Table(title="epsilon of random plans, ms of the processor")
    for column in ("side", "plans", *QUANTILES, "no answer", "below ours", "median / our 95 %"):
        shown.add_column(column, justify="left" if column == "side" else "right")
    own = found[OWN.name]
    for name, ones in found.items():
        if not ones:
            continue
        times = quantiles(ones)
        shown.add_row(
            name,
            str(len(ones)),
            *(f"{one:.1f}" for one in times.values()),
            str(sum(not answered(one) for one in ones)),
            *((NOTHING, NOTHING) if name == OWN.name else _beside(ones, own)),
        )
    return shown


def _beside(found: Sequence[Outcome], own: Sequence[Outcome]) -> tuple[str, str]:
    """Return how many numbers of another side are too small, and its median over our 95 %."""
    ratio = quantiles(found)["median"] / quantiles(own)["95 %"]
    return str(too_small(found, own)), f"{ratio:.2f}"


def main() -> None:
    """Print quantiles of times, and widths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=250)
    parser.add_argument("--peers", type=int, default=0, metavar="N")
    asked = parser.parse_args()
    sides = [side for side in SIDES if side is OWN or (side.name in PEERS and side.installed)]
    with Crew([side.library for side in sides if side is OWN or asked.peers]) as crew:
        for question in questions(10):  # compiled code is loaded before it is timed
            crew.ask(OWN, question, LIMIT)
        found = outcomes(crew, sides, asked.count, asked.peers)
    widths = np.array([relative_width(one.answer) for one in found[OWN.name]])
    console = Console(width=120)
    console.print(table(found))
    console.print(f"Largest relative width {widths.max():.1e}, above 1e-6: {(widths > 1e-6).sum()}")


def test_random_plans_are_answered_narrowly() -> None:
    for question in questions(8):
        found = hs.epsilon(question.plan, question.delta)
        assert relative_width((found.lower, found.upper)) < 1e-4


if __name__ == "__main__":
    main()
