"""Noisy iterations: one pass of projected gradient steps, of which only the last model is seen.

    python examples/systems/table.py --only noisy_iterations

Feldman, Mironov, Talwar and Thakurta, "Privacy Amplification by Iteration", FOCS 2018; Bok, Su and
Altschuler, "Shifted Interpolation for Differential Privacy", ICML 2024; slides 003. A logistic
model of digits, even against odd; some steps of noise alone at the end cover the last records as
well.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from digits import Outcome, Settings, logistic_gradient, parity, source

import hockeystick as hs
from hockeystick.mechanisms import NoisyIterations

SYSTEM = "Noisy iterations"
DELTA, NOISE = 1e-5, 0.3
STEP_SIZE, RADIUS, SMOOTHNESS = 0.05, 10.0, 0.25


def trained(plan: NoisyIterations, records: Any, seed: int | None, charge: Any = None) -> Any:
    """Return the last model of a pass over the records, with noise alone after the last one."""

    def gradient(model: Any, step: int) -> Any:
        if step >= len(records):
            return np.zeros(records.shape[1])
        return logistic_gradient(model, records[step : step + 1])

    start = np.zeros(records.shape[1])
    return hs.release.noisy_iterations(
        plan, start, gradient, lipschitz=1.0, radius=RADIUS, charge=charge, bits=source(seed)
    )


def planned(noise: float, steps: int, position: int) -> NoisyIterations:
    """Return the plan of one pass, for the record at a position."""
    return NoisyIterations(noise, steps, position, step_size=STEP_SIZE, smoothness=SMOOTHNESS)


def run(seed: int | None = 0, *, noise_alone: int) -> Outcome:
    """Train in one pass with noise and without; the last record is the one that costs most."""
    train, test = parity(seed or 0)
    plan, account = planned(NOISE, len(train) + noise_alone, len(train)), hs.Accountant()
    model = trained(plan, train, seed, account)
    openly = trained(planned(0.0, len(train), 1), train, seed)
    changed = train.copy()
    changed[-1] = -changed[-1]
    moved = float(np.linalg.norm(trained(plan, changed, seed) - model))
    return Outcome(
        {"accuracy": float(np.mean(test @ model > 0))},
        {"accuracy without noise": float(np.mean(test @ openly > 0))},
        hs.epsilon(account.plan, DELTA).upper,
        DELTA,
        {
            "charge": account.plan == plan,
            "one record moves the last model by at most 2 eta L": (
                0 < moved <= 2 * STEP_SIZE * (1 + 1e-6)
            ),
        },
    )


def settings() -> Settings:
    """Return what the system is shown in."""
    return {
        f"{steps} steps of noise alone": partial(run, noise_alone=steps) for steps in (100, 400)
    }
