"""The mean of vectors with heavy tails, by sinh-normal noise and by Gaussian noise of equal cost.

    python examples/systems/table.py --only sinh_normal

van Dijk and Nguyen, "Considerations on the Theory of Training Models with Differential Privacy",
2023, propose noise ``a arsinh(N / a)`` with a Gaussian N for the sums of clipped gradients: its
tails are lighter. Here the vectors are Student-t about a center, clipped to length 1; both noises
have the least scale with which the sum meets the same budget, as certified.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from digits import Outcome, Settings, source

import hockeystick as hs
from hockeystick.mechanisms import SinhNormal
from hockeystick.release.noise.clipped_sum import UNITS, clipped_integers

SYSTEM = "Sinh-normal noise"
EPSILON, DELTA = 1.0, 1e-5
VECTORS, DIMENSION, DEGREES, SPREAD = 2000, 64, 2.5, 0.05
WIDTHS = (40.0, 80.0, 320.0)  # of sinh-normal noise, in lengths of a clipped vector


def released(noise: hs.Gaussian | SinhNormal, total: Any, charge: Any, bits: Any) -> Any:
    """Return a sum with noise, charged before it is drawn."""
    if isinstance(noise, hs.Gaussian):
        return hs.release.gaussian(noise, total, sensitivity=1, charge=charge, bits=bits)
    return hs.release.sinh_normal_vector(noise, total, sensitivity=1, charge=charge, bits=bits)


def account(noise: hs.Gaussian | SinhNormal) -> hs.mechanisms.Mechanism:
    """Return what noise on a vector is charged as."""
    return noise if isinstance(noise, hs.Gaussian) else hs.release.sinh_normal_divergences(noise)


def cost(noise: hs.Gaussian | SinhNormal) -> float:
    """Return the certified epsilon of noise on a vector."""
    return float(hs.epsilon(account(noise), DELTA).upper)


@cache
def planned(width: float | None) -> hs.Gaussian | SinhNormal:
    """Return noise of a width, or the Gaussian, of the least scale that meets the budget."""
    if width is None:
        target = hs.ApproxDP(EPSILON, DELTA)
        found = hs.calibrate(hs.Gaussian(1.0), "noise_multiplier", target).plan
        assert isinstance(found, hs.Gaussian)
        return found
    low, high = 1.01 / width**2, 10.0
    while high > 1.001 * low:
        middle = (low * high) ** 0.5
        within = cost(SinhNormal(rho=middle, width=width)) <= EPSILON
        low, high = (middle, high) if within else (low, middle)
    return SinhNormal(rho=low, width=width)


def vectors(seed: int | None) -> tuple[Any, Any]:
    """Return a center, and vectors about it with heavy tails."""
    random = np.random.default_rng(seed)
    center = np.full(DIMENSION, 0.5 / DIMENSION**0.5)
    return center, center + SPREAD * random.standard_t(DEGREES, (VECTORS, DIMENSION))


def clipped_sum(rows: Any) -> Any:
    """Return the sum of rows clipped to length 1: exact, in units of 2^-22."""
    return clipped_integers(rows, 1.0).sum(axis=0) / UNITS


def deviation(noise: hs.Gaussian | SinhNormal) -> float:
    """Return the standard deviation of one entry's noise; that of a sinh-normal by quadrature."""
    if isinstance(noise, hs.Gaussian):
        return noise.noise_multiplier
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    values = noise.width * np.arcsinh(nodes / (noise.width * (2 * noise.rho) ** 0.5))
    return float((weights @ values**2 / weights.sum()) ** 0.5)


def run(seed: int | None = 0, *, width: float | None) -> Outcome:
    """Release the mean of clipped vectors within a budget, and return how far off it is."""
    noise, (center, rows), charge = planned(width), vectors(seed), hs.Accountant()
    total = clipped_sum(rows)
    found = released(noise, total, charge, source(seed))
    drawn, spent = found - total, float(hs.epsilon(charge.plan, DELTA).upper)
    return Outcome(
        {
            "error": float(np.linalg.norm(found / VECTORS - center)),
            "deviation": deviation(noise),
            "largest noise": float(np.abs(drawn).max()),
        },
        {"without noise": float(np.linalg.norm(total / VECTORS - center))},
        spent,
        DELTA,
        {
            "charge": charge.plan == account(noise),
            "budget": spent <= EPSILON,
            "deviation": abs(float(drawn.std()) / deviation(noise) - 1) < 5 / DIMENSION**0.5,
        },
    )


def settings() -> Settings:
    """Return what the system is shown in."""
    widths = {f"sinh-normal, width {width:g}": partial(run, width=width) for width in WIDTHS}
    return {"Gaussian": partial(run, width=None)} | widths
