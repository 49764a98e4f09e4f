"""Pruned gradients beside decaying noise, at the same budget for each image.

    python examples/systems/table.py --only pruning

Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023:
random pruning and distributed selective SGD (section 4.1), and noise that decays in four ways
(section 5.3), each on a linear model of scikit-learn's digits. What is pruned at random or by what
is released costs what the whole gradient does. Selective SGD as published chooses by the gradients
themselves, and has no epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from digits import WEIGHTS, Outcome, Settings, Training, calibrated, digits, source

import hockeystick as hs
from hockeystick.release import randomly_pruned_sum, selective_sum
from hockeystick.release.samplers import Bits

SYSTEM = "Pruning and decays"
NORM, RATE = 1.0, 3.0
# How a step's sum is released, which share of coordinates it has, and how the noise changes.
METHODS: dict[str, tuple[Callable[..., Any], float, hs.schedules.Schedule | None]] = {
    "all coordinates": (selective_sum, 1.0, None),
    "half, at random": (randomly_pruned_sum, 0.5, None),
    "a tenth, at random": (randomly_pruned_sum, 0.1, None),
    "half, largest of the noisy sum": (selective_sum, 0.5, None),
    "a tenth, largest of the noisy sum": (selective_sum, 0.1, None),
    "linear decay": (selective_sum, 1.0, hs.schedules.Linear(end=0.5)),
    "staircase decay": (selective_sum, 1.0, hs.schedules.Staircase(end=0.5, stairs=4)),
    "exponential decay": (selective_sum, 1.0, hs.schedules.Exponential(end=0.5)),
    "cyclic decay with a floor": (selective_sum, 1.0, hs.schedules.Cyclic(floor=0.5, cycles=3)),
}


def run(seed: int | None = 0, *, method: str, plan: hs.DPSGD | None = None) -> Outcome:
    """Train once within a budget and return what came out."""
    release, keep, schedule = METHODS[method]
    plan, data = plan or calibrated(schedule=schedule), digits()
    training, sent = Training(plan, data, seed, source(seed)), set[int]()
    noises = iter(plan.noise_multipliers.tolist())

    def update(rows: Any, size: float, bits: Bits) -> Any:
        total = release(hs.Gaussian(next(noises)), rows, norm=NORM, keep=keep, bits=bits)
        sent.add(int(np.count_nonzero(total)))
        return -RATE * total / size

    weights = training.steps(update, plan.total_steps)
    few = max(sent) <= math.ceil(keep * WEIGHTS)
    return training.outcome(data.accuracy(weights), {"coordinates": few})


def settings() -> Settings:
    """Return what the system is shown in."""
    return {method: partial(run, method=method) for method in METHODS}
