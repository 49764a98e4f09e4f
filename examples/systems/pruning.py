"""Pruned gradients beside decaying noise, at the same budget for each image.

    python examples/systems/pruning.py --seeds 5

Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023:
random pruning and distributed selective SGD (section 4.1), and noise that decays in four ways
(section 5.3), each on a linear model of scikit-learn's digits. What is pruned at random or by what
is released costs what the whole gradient does. Selective SGD as published chooses by the gradients
themselves: it has no epsilon, and the program counts how often one image changes what is chosen.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from click import echo
from clipping import CLASSES, accuracy, digits, gradients, openly
from outcomes import Outcome, Setting, line, repeated

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler
from hockeystick.release import randomly_pruned_sum, selective_sum
from hockeystick.release.samplers import secret_bits

SYSTEM = {
    "name": "Random pruning, selective SGD and decaying noise",
    "paper": "Wei et al. 2023 (002)",
    "algorithm": "section 4.1, and the decays of section 5.3",
    "command": "python examples/systems/pruning.py --seeds 5",
    "check": "steps counted, batches' sizes, as many coordinates as are to be sent",
}
EPSILON, DELTA, BATCH_SIZE, STEPS, NORM, RATE = 3.0, 1e-4, 256, 60, 1.0, 3.0
DIMENSION = CLASSES * 65
FEW = 0.1
# How a step's sum is released, which share of coordinates it has, and how the noise changes.
METHODS: dict[str, tuple[Callable[..., Any], float, hs.schedules.Schedule | None]] = {
    "all coordinates": (selective_sum, 1.0, None),
    "half, at random": (randomly_pruned_sum, 0.5, None),
    "a tenth, at random": (randomly_pruned_sum, FEW, None),
    "half, largest of the noisy sum": (selective_sum, 0.5, None),
    "a tenth, largest of the noisy sum": (selective_sum, FEW, None),
    "linear decay": (selective_sum, 1.0, hs.schedules.Linear(end=0.5)),
    "staircase decay": (selective_sum, 1.0, hs.schedules.Staircase(end=0.5, stairs=4)),
    "exponential decay": (selective_sum, 1.0, hs.schedules.Exponential(end=0.5)),
    "cyclic decay with a floor": (selective_sum, 1.0, hs.schedules.Cyclic(floor=0.5, cycles=3)),
}


def planned(method: str, examples: int, epsilon: float = EPSILON, steps: int = STEPS) -> hs.DPSGD:
    """Return the plan of a method with the least first noise that meets the budget."""
    plan = hs.DPSGD(
        examples=examples,
        batch_size=BATCH_SIZE,
        steps=steps,
        noise_multiplier=1.0,
        schedule=METHODS[method][2],
    )
    found = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(epsilon, DELTA)).plan
    assert isinstance(found, hs.DPSGD)
    return found


def run(
    seed: int | None = 0,
    *,
    method: str = "all coordinates",
    epsilon: float = EPSILON,
    steps: int = STEPS,
    plan: hs.DPSGD | None = None,
) -> Outcome:
    """Train once within a budget and return what came out.

    Args:
        seed: Of batches and noise; None for the operating system's, the only private run.
        method: One of ``METHODS``.
        epsilon: The budget, at delta 1e-4.
        steps: The steps of the training.
        plan: What is run and accounted for; calibrated to the budget where not given.
    """
    data = digits()
    plan = planned(method, len(data.rows), epsilon, steps) if plan is None else plan
    release, keep, _ = METHODS[method]
    account, sampler = Account(plan), Sampler(plan, len(data.rows), seed)
    bits = secret_bits if seed is None else np.random.PCG64(seed).random_raw
    weights, drawn, sent = np.zeros(DIMENSION), 0, set[int]()
    for step, noise in enumerate(plan.noise_multipliers.tolist()):
        batch = sampler.draw(step)
        drawn += len(batch)
        rows = gradients(weights, data.rows[batch], data.labels[batch])
        account.count()
        total = release(hs.Gaussian(noise), rows, norm=NORM, keep=keep, bits=bits)
        sent.add(int(np.count_nonzero(total)))
        weights -= RATE * total / sampler.expected(step)
    spent, size = hs.epsilon(account.released, DELTA).upper, plan.total_steps * BATCH_SIZE
    return Outcome(
        method,
        {"accuracy": accuracy(weights, data)},
        str(account.released),
        spent,
        DELTA,
        {
            "steps": account.counted == plan.total_steps,
            "budget": spent <= epsilon,
            "batches": abs(drawn - size) < 5 * size**0.5,
            "coordinates": max(sent) <= math.ceil(keep * DIMENSION),
        },
    )


def shown_by_selection(images: int = BATCH_SIZE) -> float:
    """Return how often leaving out one image changes what selective SGD as published chooses.

    The coordinates are the tenth of a batch's clipped sum that is largest, without noise: if they
    differ, whoever sees them knows which of the two batches it was.
    """
    data = digits()
    rows = gradients(np.zeros(DIMENSION), data.rows[:images], data.labels[:images])
    clipped = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1) / NORM)[:, None]
    total = clipped.sum(axis=0)
    return float(np.mean([_largest(total) != _largest(total - row) for row in clipped]))


def _largest(total: Any) -> frozenset[int]:
    """Return the coordinates of the tenth that is largest in size."""
    count = math.ceil(FEW * len(total))
    return frozenset(np.argsort(-np.abs(total), kind="stable")[:count].tolist())


def settings(epsilon: float = EPSILON) -> dict[str, Setting]:
    """Return what the system is shown in."""
    private = {
        method: Setting(partial(run, method=method, epsilon=epsilon), beside="without privacy")
        for method in METHODS
    }
    return private | {"without privacy": Setting(openly)}


def main() -> None:
    """Train by each method at one budget, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of batches and noise")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs; medians are shown")
    parser.add_argument("--epsilon", type=float, default=EPSILON, help=f"at delta {DELTA:g}")
    asked = parser.parse_args()
    for method in METHODS:
        plan = planned(method, len(digits().rows), asked.epsilon)
        outcomes = repeated(settings(asked.epsilon)[method].run, asked.seed, asked.seeds)
        last = plan.noise_multipliers.min()
        echo(f"noise {plan.noise_multiplier:.3f} to {last:.3f}  {line(outcomes)}")
    share = shown_by_selection()
    echo(f"selective SGD as published: no epsilon; {share:.0%} of images change what is chosen")


if __name__ == "__main__":
    main()
