"""The mean of vectors with heavy tails, by sinh-normal noise and by Gaussian noise of equal cost.

    python examples/systems/sinh_normal.py --seeds 5

van Dijk and Nguyen, "Considerations on the Theory of Training Models with Differential Privacy",
2023, propose noise ``a arsinh(N / a)`` with a Gaussian N for the sums of clipped gradients: its
tails are lighter. Here the vectors are Student-t about a center, clipped to length 1; both noises
have the least scale with which the sum meets the same budget, as certified.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from digits import Outcome, Setting, at_one_budget, source

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import SinhNormal
from hockeystick.release.noise.clipped_sum import UNITS, clipped_integers

SYSTEM = "Sinh-normal noise"
EPSILON, DELTA = 1.0, 1e-5
VECTORS, DIMENSION, DEGREES, SPREAD = 2000, 64, 2.5, 0.05
# Widths of sinh-normal noise, in lengths of a clipped vector; the Gaussian's is None.
METHODS: dict[str, float | None] = {
    "Gaussian": None,
    "sinh-normal, width 40": 40.0,
    "sinh-normal, width 80": 80.0,
    "sinh-normal, width 320": 320.0,
}


def vectors(seed: int | None) -> tuple[Any, Any]:
    """Return a center, and vectors about it with heavy tails."""
    random = np.random.default_rng(seed)
    center = np.full(DIMENSION, 0.5 / DIMENSION**0.5)
    return center, center + SPREAD * random.standard_t(DEGREES, (VECTORS, DIMENSION))


def clipped_sum(rows: Any) -> Any:
    """Return the sum of rows clipped to length 1: exact, in units of 2^-22."""
    return clipped_integers(rows, 1.0).sum(axis=0) / UNITS


@cache
def planned(method: str, epsilon: float = EPSILON) -> hs.Gaussian | SinhNormal:
    """Return the noise with the least scale, to 0.1 %, that meets the budget."""
    width = METHODS[method]
    if width is None:
        target = hs.ApproxDP(epsilon, DELTA)
        found = hs.calibrate(hs.Gaussian(1.0), "noise_multiplier", target).plan
        assert isinstance(found, hs.Gaussian)
        return found
    low, high = 1.01 / width**2, 10.0
    if cost(SinhNormal(rho=low, width=width)) > epsilon:
        raise ParameterError("epsilon", epsilon, f"what noise of width {width:g} can reach")
    while high > 1.001 * low:
        middle = (low * high) ** 0.5
        noise = SinhNormal(rho=middle, width=width)
        low, high = (middle, high) if cost(noise) <= epsilon else (low, middle)
    return SinhNormal(rho=low, width=width)


def account(noise: hs.Gaussian | SinhNormal) -> hs.mechanisms.Mechanism:
    """Return what noise on a vector is charged as."""
    return noise if isinstance(noise, hs.Gaussian) else hs.release.sinh_normal_divergences(noise)


def cost(noise: hs.Gaussian | SinhNormal) -> float:
    """Return the certified epsilon of noise on a vector."""
    return float(hs.epsilon(account(noise), DELTA).upper)


def deviation(noise: hs.Gaussian | SinhNormal) -> float:
    """Return the standard deviation of one entry's noise; that of a sinh-normal by quadrature."""
    if isinstance(noise, hs.Gaussian):
        return noise.noise_multiplier
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    values = noise.width * np.arcsinh(nodes / (noise.width * (2 * noise.rho) ** 0.5))
    return float((weights @ values**2 / weights.sum()) ** 0.5)


def released(noise: hs.Gaussian | SinhNormal, total: Any, charge: Any, bits: Any) -> Any:
    """Return a sum with noise, charged before it is drawn."""
    if isinstance(noise, hs.Gaussian):
        return hs.release.gaussian(noise, total, sensitivity=1, charge=charge, bits=bits)
    return hs.release.sinh_normal_vector(noise, total, sensitivity=1, charge=charge, bits=bits)


def run(
    seed: int | None = 0, *, method: str = "sinh-normal, width 40", epsilon: float = EPSILON
) -> Outcome:
    """Release the mean of clipped vectors within a budget, and return how far off it is."""
    noise, (center, rows), charge = planned(method, epsilon), vectors(seed), hs.Accountant()
    total = clipped_sum(rows)
    found = released(noise, total, charge, source(seed))
    drawn, spent = found - total, float(hs.epsilon(charge.plan, DELTA).upper)
    moved = float(np.linalg.norm(clipped_integers(rows, 1.0), axis=1).max()) / UNITS
    return Outcome(
        method,
        {
            "error": float(np.linalg.norm(found / VECTORS - center)),
            "without noise": float(np.linalg.norm(total / VECTORS - center)),
            "deviation": deviation(noise),
            "largest noise": float(np.abs(drawn).max()),
        },
        str(charge.plan),
        spent,
        DELTA,
        {
            "charge": charge.plan == account(noise),
            "budget": spent <= epsilon,
            "sensitivity": 1 - 1e-3 < moved <= 1.0,
            "deviation": abs(float(drawn.std()) / deviation(noise) - 1) < 5 / DIMENSION**0.5,
        },
    )


def settings(epsilon: float = EPSILON) -> dict[str, Setting]:
    """Return what the system is shown in."""
    figures = "error", "deviation", "largest noise"
    return {
        method: Setting(
            partial(run, method=method, epsilon=epsilon), figures=figures, plain="without noise"
        )
        for method in METHODS
    }


def main() -> None:
    """Release the mean with each noise at one budget, and say how far off it is."""
    at_one_budget(__doc__, settings, EPSILON, DELTA)


if __name__ == "__main__":
    main()
