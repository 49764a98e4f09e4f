"""Five ways to choose a clipping norm, each with a grid search, at the same budget.

    python examples/systems/table.py --only clipping

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
from functools import partial
from typing import Any

from digits import (
    DELTA,
    PLAN,
    RATES,
    WEIGHTS,
    Outcome,
    Settings,
    Training,
    Update,
    calibrated,
    digits,
    fixed_threshold,
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


def stepped(clipping: Any, rate: float | None = None) -> Update:
    """Return steps of a clipping that changes with what it releases; its own rate if none."""

    def update(rows: Any, size: float, bits: Bits) -> Any:
        nonlocal clipping
        own = clipping.learning_rate if rate is None else rate
        gradient, clipping = clipping.step(rows, expected=size, bits=bits)
        return -own * gradient

    return update


def fixed_quantile(noise: float, rate: float, quantile: float) -> Update:
    """A norm that follows a quantile of the lengths (Andrew et al. 2021)."""
    return stepped(by_quantile(noise, quantile), rate)


def by_quantile(noise: float, quantile: float) -> hs.release.QuantileClipping:
    """Return the clipping whose bits and gradients together have a plan's noise."""
    bit_noise = max(PLAN.batch_size / 20, noise)
    return hs.release.QuantileClipping(
        norm=FIRST_NORM,
        quantile=quantile,
        gradient_noise=hs.calibration.clipping_noise(noise, bit_noise=bit_noise),
        bit_noise=bit_noise,
    )


def online(noise: float, rate: float) -> Update:
    """OSO-DPSGD: the norm and the learning rate descend too (algorithm 3)."""
    return stepped(by_descent(noise, rate))


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
    return stepped(hs.release.CoordinateClipping(WEIGHTS, noise), rate)


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


def run(seed: int | None = 0, *, method: str) -> Outcome:
    """Search one method's grid within a budget and return what came out."""
    data, (build, grid) = digits(), GRIDS[method]
    tried = list(itertools.product(*grid))
    plan = calibrated(steps=len(tried) * PLAN.total_steps)
    training = Training(plan, data, seed, source(seed))
    found = (training.steps(build(plan.noise_multiplier, *one), PLAN.total_steps) for one in tried)
    best = max(data.accuracy(weights) for weights in found)
    joint = joint_cost(method, plan) <= hs.epsilon(plan, DELTA).upper * (1 + 1e-9)
    return training.outcome(best, {"joint noise": joint})


def joint_cost(method: str, plan: hs.DPSGD) -> float:
    """Return what a plan's steps cost by the noise of each query that a method asks."""
    noise = plan.noise_multiplier
    queries: dict[str, hs.Mechanism] = {
        "online": by_descent(noise, 1.0).mechanism,
        "fixed quantile": by_quantile(noise, 0.5).mechanism,
        "AdaClip": hs.release.CoordinateClipping(1, noise).mechanism,
    }
    step = hs.PoissonSubsampled(queries.get(method, hs.Gaussian(noise)), plan.sampling_rate)
    return float(hs.epsilon(step**plan.total_steps, DELTA).upper)


def settings() -> Settings:
    """Return what the system is shown in."""
    return {method: partial(run, method=method) for method in GRIDS}
