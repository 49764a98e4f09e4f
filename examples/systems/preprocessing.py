"""Private normalisation and private principal components, then DP-SGD on what comes out.

    python examples/systems/table.py --only preprocessing

van Dijk and Nguyen, "Considerations on the Theory of Training Models with Differential Privacy",
2023, section 2.7 (normalisation, components), and Galli, "Sense and Sensitivity" (PhD thesis),
section 1.3 (DP-PCA): statistics of scikit-learn's digits are released with noise, a linear model is
trained on the digits as they transform them, and one budget covers both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from digits import Digits, Outcome, Settings, Training, calibrated, digits, fixed_threshold, source

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


def run(seed: int | None = 0, *, method: str, plan: hs.DPSGD | None = None) -> Outcome:
    """Release the statistics, train, and return what came out."""
    plan = plan or calibrated(extra=METHODS[method])
    bits, before = source(seed), hs.Accountant()
    data = transformed(method, digits(), before, bits)
    training = Training(plan, data, seed, bits)
    weights = training.steps(fixed_threshold(plan.noise_multiplier, RATE, NORM), plan.total_steps)
    charged = before.plan if len(before) else None
    return training.outcome(data.accuracy(weights), {"statistics": charged == plan.extra})


def transformed(method: str, data: Digits, charge: Any, bits: Any) -> Digits:
    """Return the digits as a method's private statistics transform them, a last one appended."""
    pixels, size = data.rows[:, :PIXELS], len(data.rows)
    given: Any = {"bound": LENGTH, "size": size, "center": CENTER, "charge": charge, "bits": bits}
    if method == "normalised":
        found = hs.release.normalisation(STATISTICS, pixels, **given)

        def of(rows: Any) -> Any:
            return found.apply(rows) / PIXELS**0.5

    elif method == "principal components":
        of = hs.release.principal_components(
            MOMENTS, pixels, components=COMPONENTS, **given
        ).transform
    else:
        return data
    rows, tested = (
        np.hstack([of(one), np.ones((len(one), 1))]) for one in (pixels, data.test_rows[:, :PIXELS])
    )
    return replace(data, rows=rows, test_rows=tested)


def settings() -> Settings:
    """Return what the system is shown in."""
    return {method: partial(run, method=method) for method in METHODS}
