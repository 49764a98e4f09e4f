"""Processor time and relative width of epsilon for random plans, of few hits and of many.

Rates are from 1e-5 to 0.5, noise multipliers from 0.5 to 10, steps from 30 to 10^6 and deltas from
1e-12 to 1e-4, each uniform in its logarithm. ``python -m benchmarks.bench_random_plans`` asks 250.
"""

import argparse
import math
import random
import time
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

import hockeystick as hs

SEED = 24


class Asked(NamedTuple):
    """How long an answer took, and its relative width."""

    milliseconds: float
    width: float


def plans(count: int) -> list[tuple[hs.Mechanism, float]]:
    """Return so many plans, each with its delta."""
    draw = random.Random(SEED)

    def between(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    found: list[tuple[hs.Mechanism, float]] = []
    for _ in range(count):
        rate, noise = between(1e-5, 0.5), between(0.5, 10)
        steps, delta = round(between(30, 1e6)), between(1e-12, 1e-4)
        found.append((hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** steps, delta))
    return found


def asked(plan: hs.Mechanism, delta: float) -> Asked:
    """Ask for epsilon once."""
    began = time.process_time()
    answer = hs.epsilon(plan, delta)
    return Asked(1e3 * (time.process_time() - began), answer.relative_width)


def main() -> None:
    """Print quantiles of times and widths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=250)
    chosen = plans(parser.parse_args().count)
    for plan, delta in chosen[:10]:  # compiled code is loaded before it is timed
        hs.epsilon(plan, delta)
    found = [asked(*one) for one in track(chosen, description="Asking", transient=True)]
    times, widths = map(np.array, zip(*found, strict=True))
    said = ", ".join(f"{name} {np.quantile(times, q):.1f}" for name, q in QUANTILES.items())
    console = Console()
    console.print(f"Processor ms of {len(found)} plans: {said}, mean {times.mean():.1f}")
    console.print(f"Largest relative width {widths.max():.1e}, above 1e-6: {(widths > 1e-6).sum()}")


QUANTILES = {"median": 0.5, "95 %": 0.95, "99 %": 0.99, "largest": 1.0}


def test_random_plans_are_answered_narrowly() -> None:
    found = [asked(*one) for one in plans(8)]
    assert max(one.width for one in found) < 1e-4
    assert min(one.milliseconds for one in found) >= 0.0


if __name__ == "__main__":
    main()
