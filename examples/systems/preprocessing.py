"""Private normalisation and private principal components, then DP-SGD on what comes out.

    python examples/systems/preprocessing.py --seeds 5

van Dijk and Nguyen, "Considerations on the Theory of Training Models with Differential Privacy",
2023, section 2.7 (normalisation, components), and Galli, "Sense and Sensitivity" (PhD thesis),
section 1.3 (DP-PCA): statistics of scikit-learn's digits are released with noise, a linear model is
trained on the digits as they transform them, and one budget covers both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from digits import (
    EPSILON,
    STEPS,
    Digits,
    Outcome,
    Setting,
    Training,
    at_one_budget,
    calibrated,
    digits,
    fixed_threshold,
    settings_of,
    source,
)

import hockeystick as hs

SYSTEM = "Preprocessing"
NORM, RATE = 1.0, 6.0
# Rows of 64 pixels from 0 to 1, less a public half, have lengths up to 4.
CENTER, LENGTH, PIXELS, COMPONENTS = 0.5, 4.0, 64, 40
STATISTICS = hs.mechanisms.JointGaussian((10.0, 10.0))
MOMENTS = hs.mechanisms.PrivateCovariance(8.0, columns=PIXELS)
METHODS: dict[str, hs.mechanisms.Mechanism | None] = {
    "as they are": None,
    "normalised": STATISTICS,
    "principal components": MOMENTS,
}


def planned(method: str, examples: int, epsilon: float = EPSILON, steps: int = STEPS) -> hs.DPSGD:
    """Return the plan with the least noise of the steps that meets the budget beside the rest."""
    return calibrated(epsilon, examples=examples, steps=steps, extra=METHODS[method])


def transformed(method: str, data: Digits, charge: Any, bits: Any) -> Digits:
    """Return the digits as a method's private statistics transform them, a last one appended."""
    pixels, size = data.rows[:, :PIXELS], len(data.rows)
    given: Any = {"bound": LENGTH, "size": size, "center": CENTER, "charge": charge, "bits": bits}
    if method == "normalised":
        found = hs.release.normalisation(STATISTICS, pixels, **given)

        def of(rows: Any) -> Any:
            return found.apply(rows) / PIXELS**0.5

    elif method == "principal components":
        components = hs.release.principal_components(
            MOMENTS, pixels, components=COMPONENTS, **given
        )
        of = components.transform
    else:
        return data
    rows, tested = of(pixels), of(data.test_rows[:, :PIXELS])
    return replace(data, rows=_with_one(rows), test_rows=_with_one(tested))


def _with_one(rows: Any) -> Any:
    """Return rows with a last entry of 1."""
    return np.hstack([rows, np.ones((len(rows), 1))])


def run(
    seed: int | None = 0,
    *,
    method: str = "principal components",
    epsilon: float = EPSILON,
    steps: int = STEPS,
    plan: hs.DPSGD | None = None,
) -> Outcome:
    """Release the statistics, train, and return what came out."""
    raw = digits()
    plan = planned(method, len(raw.rows), epsilon, steps) if plan is None else plan
    bits, before = source(seed), hs.Accountant()
    data = transformed(method, raw, before, bits)
    training = Training(plan, data, seed, bits)
    weights = training.steps(fixed_threshold(plan.noise_multiplier, RATE, NORM), plan.total_steps)
    statistics = charged(before) == plan.extra
    return training.outcome(method, data.accuracy(weights), epsilon, {"statistics": statistics})


def charged(account: hs.Accountant) -> Any:
    """Return the one mechanism that an account was charged for, or None."""
    parts = [part for part in METHODS.values() if part is not None and account.plan == part]
    return parts[0] if parts else None


def settings(epsilon: float = EPSILON) -> dict[str, Setting]:
    """Return what the system is shown in."""
    return settings_of(run, METHODS, epsilon)


def main() -> None:
    """Train on the digits as they are and as each method transforms them, at one budget."""
    at_one_budget(__doc__, settings)


if __name__ == "__main__":
    main()
