"""Noisy iterations: one pass of projected gradient steps, of which only the last model is seen.

    python examples/systems/noisy_iterations.py --seed 0

Feldman, Mironov, Talwar and Thakurta, "Privacy Amplification by Iteration", FOCS 2018; Bok, Su and
Altschuler, "Shifted Interpolation for Differential Privacy", ICML 2024; slides 003. A logistic
model of digits, even against odd; some steps of noise alone at the end cover the last records as
well.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from digits import Outcome, Parity, Setting, arguments, logistic_gradient, parity, show, source

import hockeystick as hs
from hockeystick.mechanisms import NoisyIterations

SYSTEM = "Noisy iterations"
DELTA = 1e-5
STEP_SIZE, RADIUS, SMOOTHNESS = 0.05, 10.0, 0.25


def planned(noise: float, steps: int, position: int) -> NoisyIterations:
    """Return the plan of one pass, for the record at a position."""
    return NoisyIterations(noise, steps, position, step_size=STEP_SIZE, smoothness=SMOOTHNESS)


def trained(plan: NoisyIterations, records: Any, seed: int, charge: Any = None) -> Any:
    """Return the last model of a pass over the records, with noise alone after the last one."""

    def gradient(model: Any, step: int) -> Any:
        if step >= len(records):
            return np.zeros(records.shape[1])
        return logistic_gradient(model, records[step : step + 1])

    start = np.zeros(records.shape[1])
    return hs.release.noisy_iterations(
        plan, start, gradient, lipschitz=1.0, radius=RADIUS, charge=charge, bits=source(seed)
    )


def run(seed: int = 0, *, noise: float = 0.3, noise_alone: int = 100) -> Outcome:
    """Train in one pass, and compare with the same budget spent where every model is seen."""
    records: Parity = parity(seed)
    count = len(records.train)
    steps = count + noise_alone
    plan = planned(noise, steps, count)
    account = hs.Accountant()
    model = trained(plan, records.train, seed, account)
    cost = hs.epsilon(account.plan, DELTA).upper
    target = hs.ApproxDP(cost, DELTA)
    # Every model seen: a record is covered by the noise of its own step alone, and has no later.
    seen = hs.calibrate(planned(1.0, 1, 1), "noise_multiplier", target).value
    return Outcome(
        system=f"Noisy iterations, {count} records, {noise_alone} steps of noise alone",
        result={
            "accuracy": records.accuracy(model),
            "accuracy without noise": records.accuracy(
                trained(planned(0, count, 1), records.train, seed)
            ),
            "accuracy where every model is seen, same epsilon": records.accuracy(
                trained(planned(seen, count, count), records.train, seed)
            ),
            "epsilon of the first record": hs.epsilon(planned(noise, steps, 1), DELTA).upper,
            "epsilon where every model is seen, same noise": hs.epsilon(
                planned(noise, 1, 1), DELTA
            ).upper,
        },
        plan=str(account.plan),
        epsilon=cost,
        delta=DELTA,
        checks=checks(seed, records, plan),
    )


def checks(seed: int, records: Parity, plan: NoisyIterations) -> dict[str, bool]:
    """Return what was compared between the run and its account."""
    place, most = len(records.train) // 2, 2 * STEP_SIZE
    changed = records.train.copy()
    changed[place] = -changed[place]
    models = [trained(plan, rows, seed) for rows in (records.train, changed)]
    first, second = (linear(sign, seed) for sign in (-1.0, 1.0))
    return {
        "one record moves the last model by at most 2 eta L": bool(
            0 < np.linalg.norm(models[0] - models[1]) <= most * (1 + 1e-6)
        ),
        "linear losses move it by as much": bool(abs(second - first - most) < 1e-6 * most),
        "models that differ never part": never_part(records, seed),
        "the noise of the last model is that of all steps": noise_agrees(seed),
    }


def linear(sign: float, seed: int) -> float:
    """Return the last model where the one record of length 1 points up or down."""

    def gradient(model: Any, step: int) -> Any:
        return np.full(1, -sign if step == 3 else 0.0)

    found = hs.release.noisy_iterations(
        planned(1.0, 8, 4), [0.0], gradient, lipschitz=1.0, radius=1e6, bits=source(seed)
    )
    return float(found[0])


def never_part(records: Parity, seed: int) -> bool:
    """Return whether two starts come no further apart by noisy steps with the same noise."""
    apart, ends = [], []
    for steps in (0, 50, 200):
        ends = [
            hs.release.noisy_iterations(
                planned(0.3, steps, 1) if steps else planned(0.3, 0, None),
                np.full(16, start),
                lambda w, t: logistic_gradient(w, records.train[t : t + 1]),
                lipschitz=1.0,
                radius=RADIUS,
                bits=source(seed),
            )
            for start in (-1.0, 1.0)
        ]
        apart.append(float(np.linalg.norm(ends[0] - ends[1])))
    return apart == sorted(apart, reverse=True)


def noise_agrees(seed: int, runs: int = 400) -> bool:
    """Return whether the last of five models has ``eta s sqrt(5)``, within five deviations."""
    bits = source(seed)
    drawn = [
        hs.release.noisy_iterations(
            planned(0.3, 5, 1),
            np.zeros(4),
            lambda w, t: w * 0,
            lipschitz=1.0,
            radius=1e6,
            bits=bits,
        )
        for _ in range(runs)
    ]
    ratio = np.var(drawn) / (5 * (0.3 * STEP_SIZE) ** 2)
    return bool(abs(ratio - 1) < 5 * (2 / (4 * runs)) ** 0.5)


def settings() -> dict[str, Setting]:
    """Return what the system is shown in."""
    return {
        f"{steps} steps of noise alone": Setting(
            partial(run, noise_alone=steps), figures=("accuracy",), plain="accuracy without noise"
        )
        for steps in (100, 400)
    }


def main() -> None:
    """Run the system and print what came out."""
    show(run(arguments(__doc__).parse_args().seed))


if __name__ == "__main__":
    main()
