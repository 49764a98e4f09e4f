"""Processor time to solve random plans for their noise, and how many answers are tight.

Plans are those of ``bench_random_plans``, without their noise; targets are epsilons from 0.1 to 10,
uniform in the logarithm, at the plans' deltas. ``python -m benchmarks.bench_random_targets`` asks
200.
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
from benchmarks.bench_random_plans import QUANTILES, SEED, questions


class Solved(NamedTuple):
    """How long a solution took, and whether the next value provably misses the target."""

    milliseconds: float
    tight: bool


def targets(count: int) -> list[tuple[hs.Mechanism, hs.ApproxDP]]:
    """Return so many plans, each with its target."""
    draw = random.Random(SEED)
    log_epsilons = [draw.uniform(math.log(0.1), math.log(10.0)) for _ in range(count)]
    return [
        (
            hs.PoissonSubsampled(hs.Gaussian(*one.noises), one.rate) ** one.steps,
            hs.ApproxDP(math.exp(log_epsilon), one.delta),
        )
        for one, log_epsilon in zip(questions(count), log_epsilons, strict=True)
    ]


def solved(plan: hs.Mechanism, target: hs.ApproxDP) -> Solved:
    """Solve for the noise once."""
    began = time.process_time()
    found = hs.calibrate(plan, "noise_multiplier", target)
    return Solved(1e3 * (time.process_time() - began), str(found.status) == "tight")


def main() -> None:
    """Print quantiles of times, and the share of tight answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    chosen = targets(parser.parse_args().count)
    for one in chosen[:10]:  # compiled code is loaded before it is timed
        solved(*one)
    found = [solved(*one) for one in track(chosen, description="Solving", transient=True)]
    times = np.array([one.milliseconds for one in found])
    said = ", ".join(f"{name} {np.quantile(times, q):.1f}" for name, q in QUANTILES.items())
    console = Console()
    console.print(f"Processor ms of {len(found)} targets: {said}, mean {times.mean():.1f}")
    console.print(f"Tight: {sum(one.tight for one in found)}")


def test_random_targets_are_solved_tightly() -> None:
    found = [solved(*one) for one in targets(5)]
    assert all(one.tight for one in found)
    assert min(one.milliseconds for one in found) >= 0.0


if __name__ == "__main__":
    main()
