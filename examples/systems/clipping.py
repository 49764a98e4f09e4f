"""Five ways to choose a clipping norm, each with a grid search, at the same budget.

    python examples/systems/clipping.py --seeds 5

Galli, "Sense and Sensitivity" (PhD thesis, Scuola Normale Superiore, 2024), chapter 3: a fixed
norm, one that follows a quantile, one that is optimised online with the learning rate
(algorithm 3), and Adam without its second moment; beside them AdaClip, which clips after each
coordinate is shifted and scaled. The budget is that of the whole grid search: a
method with more settings to try has more noise in each run. What is trained is a linear model of
scikit-learn's digits; the best run is chosen on test images that no training saw, which is part of
the demonstration and not covered by the guarantee.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from digits import (
    BATCH_SIZE,
    DELTA,
    EPSILON,
    RATES,
    STEPS,
    Outcome,
    Setting,
    Training,
    Update,
    at_one_budget,
    calibrated,
    digits,
    fixed_threshold,
    settings_of,
    source,
)

import hockeystick as hs
from hockeystick.adapters.loop import noisy_sum
from hockeystick.release.samplers import Bits

SYSTEM = "Clipping norms"
# The thesis's grids of granularity 5: even steps of logarithms, and the quantiles of Andrew et al.
NORMS = (0.01, 0.1, 1.0, 10.0, 100.0)
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
FIRST_NORM, ADAM_STEP = 0.1, 0.05


def fixed_quantile(noise: float, rate: float, quantile: float) -> Update:
    """A norm that follows a quantile of the lengths (Andrew et al. 2021)."""
    clipping = by_quantile(noise, quantile)

    def update(rows: Any, size: float, bits: Bits) -> Any:
        nonlocal clipping
        gradient, clipping = clipping.step(rows, expected=size, bits=bits)
        return -rate * gradient

    return update


def by_quantile(noise: float, quantile: float) -> hs.release.QuantileClipping:
    """Return the clipping whose bits and gradients together have a plan's noise."""
    bit_noise = max(BATCH_SIZE / 20, noise)
    return hs.release.QuantileClipping(
        norm=FIRST_NORM,
        quantile=quantile,
        gradient_noise=hs.calibration.clipping_noise(noise, bit_noise=bit_noise),
        bit_noise=bit_noise,
    )


def online(noise: float, rate: float) -> Update:
    """OSO-DPSGD: the norm and the learning rate descend too (algorithm 3)."""
    clipping = by_descent(noise, rate)

    def update(rows: Any, size: float, bits: Bits) -> Any:
        nonlocal clipping
        own = clipping.learning_rate
        gradient, clipping = clipping.step(rows, expected=size, bits=bits)
        return -own * gradient

    return update


def by_descent(noise: float, rate: float) -> hs.release.OnlineClipping:
    """Return the clipping whose two sums together have a plan's noise.

    The thesis takes steps of 0.0025 in some thousand steps; here are some dozens.
    """
    split = hs.calibration.joint_noise(noise, inflation=1.01)
    return hs.release.OnlineClipping(
        norm=FIRST_NORM,
        learning_rate=rate,
        gradient_noise=split.gradient,
        direction_noise=split.query,
        norm_rate=0.05,
        learning_rate_rate=0.05,
    )


def by_coordinates(noise: float, rate: float) -> Update:
    """Coordinates shifted and scaled as released gradients suggest (Pichapati et al. 2019)."""
    clipping: hs.release.CoordinateClipping | None = None

    def update(rows: Any, size: float, bits: Bits) -> Any:
        nonlocal clipping
        own = of_coordinates(noise, rows.shape[1]) if clipping is None else clipping
        gradient, clipping = own.step(rows, expected=size, bits=bits)
        return -rate * gradient

    return update


def of_coordinates(noise: float, dimension: int) -> hs.release.CoordinateClipping:
    """Return the clipping that begins with one scale for all coordinates."""
    return hs.release.CoordinateClipping(dimension, noise)


def adam_without_second_moment(noise: float, norm: float, decay: float = 0.9) -> Update:
    """Adam with the noise's own deviation for the second moment (Mohapatra et al. 2022)."""
    moment, weight = 0.0, 1.0

    def update(rows: Any, size: float, bits: Bits) -> Any:
        nonlocal moment, weight
        gradient = noisy_sum(rows, norm=norm, noise_multiplier=noise, bits=bits) / size
        moment, weight = decay * moment + (1 - decay) * gradient, weight * decay
        return -ADAM_STEP * moment / (1 - weight) / (noise * norm / size)

    return update


GRIDS: dict[str, tuple[Callable[..., Update], tuple[Sequence[float], ...]]] = {
    "online": (online, (RATES,)),
    "fixed threshold": (fixed_threshold, (RATES, NORMS)),
    "fixed quantile": (fixed_quantile, (RATES, QUANTILES)),
    "Adam without second moment": (adam_without_second_moment, (NORMS,)),
    "AdaClip": (by_coordinates, (RATES,)),
}


def planned(method: str, examples: int, epsilon: float = EPSILON, steps: int = STEPS) -> hs.DPSGD:
    """Return the plan of a method's whole grid with the least noise that meets the budget."""
    tried = len(list(itertools.product(*GRIDS[method][1])))
    return calibrated(epsilon, examples=examples, steps=tried * steps)


def run(
    seed: int | None = 0,
    *,
    method: str = "online",
    epsilon: float = EPSILON,
    steps: int = STEPS,
    plan: hs.DPSGD | None = None,
) -> Outcome:
    """Search one method's grid within a budget and return what came out."""
    data = digits()
    plan = planned(method, len(data.rows), epsilon, steps) if plan is None else plan
    build, grid = GRIDS[method]
    settings = list(itertools.product(*grid))
    training = Training(plan, data, seed, source(seed))
    best, best_settings = 0.0, settings[0]
    for tried in settings:
        update = build(plan.noise_multiplier, *tried)
        weights = training.steps(update, plan.total_steps // len(settings))
        best, best_settings = max((best, best_settings), (data.accuracy(weights), tried))
    told = ", ".join(f"{value:g}" for value in best_settings)
    joint = joint_cost(method, plan) <= training.spent * (1 + 1e-9)
    system = f"{method} ({len(settings)} runs; best with {told})"
    return training.outcome(system, best, epsilon, {"joint noise": joint})


def joint_cost(method: str, plan: hs.DPSGD) -> float:
    """Return what a plan's steps cost by the noise of each query that a method asks."""
    noise, asked = plan.noise_multiplier, hs.Gaussian(plan.noise_multiplier)
    queries = {
        "online": by_descent(noise, 1.0).mechanism,
        "fixed quantile": by_quantile(noise, 0.5).mechanism,
        "AdaClip": of_coordinates(noise, 1).mechanism,
    }
    query = queries.get(method, asked)
    step = hs.PoissonSubsampled(query, plan.sampling_rate)
    return float(hs.epsilon(step**plan.total_steps, DELTA).upper)


def settings(epsilon: float = EPSILON) -> dict[str, Setting]:
    """Return what the system is shown in."""
    return settings_of(run, GRIDS, epsilon)


def main() -> None:
    """Search each method's grid at one budget, and say what came out."""
    at_one_budget(__doc__, settings)


if __name__ == "__main__":
    main()
