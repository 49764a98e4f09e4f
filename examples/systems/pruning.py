"""Pruned gradients beside decaying noise, at the same budget for each image.

    python examples/systems/pruning.py --seeds 5

Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023:
random pruning and distributed selective SGD (section 4.1), and noise that decays in four ways
(section 5.3), each on a linear model of scikit-learn's digits. What is pruned at random or by what
is released costs what the whole gradient does. Selective SGD as published chooses by the gradients
themselves: it has no epsilon, and the program counts how often one image changes what is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from click import echo
from digits import (
    BATCH_SIZE,
    CLASSES,
    EPSILON,
    STEPS,
    Outcome,
    Setting,
    Training,
    at_one_budget,
    calibrated,
    digits,
    gradients,
    settings_of,
    source,
)

import hockeystick as hs
from hockeystick.release import randomly_pruned_sum, selective_sum
from hockeystick.release.samplers import Bits

SYSTEM = "Pruning and decays"
NORM, RATE = 1.0, 3.0
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
    return calibrated(epsilon, examples=examples, steps=steps, schedule=METHODS[method][2])


def run(
    seed: int | None = 0,
    *,
    method: str = "all coordinates",
    epsilon: float = EPSILON,
    steps: int = STEPS,
    plan: hs.DPSGD | None = None,
) -> Outcome:
    """Train once within a budget and return what came out."""
    data = digits()
    plan = planned(method, len(data.rows), epsilon, steps) if plan is None else plan
    release, keep, _ = METHODS[method]
    training, sent = Training(plan, data, seed, source(seed)), set[int]()
    noises = iter(plan.noise_multipliers.tolist())

    def update(rows: Any, size: float, bits: Bits) -> Any:
        total = release(hs.Gaussian(next(noises)), rows, norm=NORM, keep=keep, bits=bits)
        sent.add(int(np.count_nonzero(total)))
        return -RATE * total / size

    weights = training.steps(update, plan.total_steps)
    few = max(sent) <= math.ceil(keep * DIMENSION)
    return training.outcome(method, data.accuracy(weights), epsilon, {"coordinates": few})


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
    return settings_of(run, METHODS, epsilon)


def main() -> None:
    """Train by each method at one budget, and say what came out."""
    at_one_budget(__doc__, settings)
    share = shown_by_selection()
    echo(f"selective SGD as published: no epsilon; {share:.0%} of images change what is chosen")


if __name__ == "__main__":
    main()
