"""Four ways to choose a clipping norm, each with a grid search, at the same budget.

    python examples/systems/clipping.py --seeds 5

Galli, "Sense and Sensitivity" (PhD thesis, Scuola Normale Superiore, 2024), chapter 3: a fixed
norm, one that follows a quantile, one that is optimised online with the learning rate
(algorithm 3), and Adam without its second moment. The budget is that of the whole grid search: a
method with more settings to try has more noise in each run. What is trained is a linear model of
scikit-learn's digits; the best run is chosen on test images that no training saw, which is part of
the demonstration and not covered by the guarantee.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from click import echo
from outcomes import Outcome, Setting, line, repeated

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler, noisy_sum
from hockeystick.release.samplers import Bits, secret_bits

SYSTEM = {
    "name": "Clipping norms: fixed, by quantile, online, Adam without second moment",
    "paper": "Galli 2024 (001), chapter 3",
    "algorithm": "algorithm 3 (OSO-DPSGD) beside Andrew et al. 2021 and Mohapatra et al. 2022",
    "command": "python examples/systems/clipping.py --seeds 5",
    "check": "steps counted, the joint noise of both queries costs the plan's, batches' sizes",
}
EPSILON, DELTA, BATCH_SIZE, STEPS = 3.0, 1e-4, 256, 60
# The thesis's grids of granularity 5: even steps of logarithms, and the quantiles of Andrew et al.
RATES = tuple(10.0**power for power in (-2.5, -1.5, -0.5, 0.5, 1.5))
NORMS = (0.01, 0.1, 1.0, 10.0, 100.0)
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
FIRST_NORM, CLASSES, ADAM_STEP = 0.1, 10, 0.05


@dataclass(frozen=True)
class Digits:
    """Features with a last column of ones, and labels: to train on, and to test on."""

    rows: Any
    labels: Any
    test_rows: Any
    test_labels: Any


Update = Callable[[Any, float, Bits], Any]
"""From a batch's gradients, its expected size and random words to the change of the weights."""


def digits() -> Digits:
    """Return four fifths of the images to train on, and every fifth to test on."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rows = np.hstack([images / 16.0, np.ones((len(images), 1))])
    tested = np.arange(len(rows)) % 5 == 4
    return Digits(rows[~tested], labels[~tested], rows[tested], labels[tested])


def gradients(weights: Any, rows: Any, labels: Any) -> Any:
    """Return each image's gradient of the cross-entropy of a linear model, a row for each."""
    errors = probabilities(weights, rows)
    errors[np.arange(len(labels)), labels] -= 1.0
    return (errors[:, :, None] * rows[:, None, :]).reshape(len(labels), -1)


def probabilities(weights: Any, rows: Any) -> Any:
    """Return the model's probabilities of the classes."""
    scores = rows @ weights.reshape(CLASSES, -1).T
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def fixed_threshold(noise: float, rate: float, norm: float) -> Update:
    """DP-SGD (Abadi et al. 2016)."""

    def update(rows: Any, size: float, bits: Bits) -> Any:
        return -rate * noisy_sum(rows, norm=norm, noise_multiplier=noise, bits=bits) / size

    return update


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
}


def planned(method: str, examples: int, epsilon: float = EPSILON, steps: int = STEPS) -> hs.DPSGD:
    """Return the plan of a method's whole grid with the least noise that meets the budget."""
    tried = len(list(itertools.product(*GRIDS[method][1])))
    plan = hs.DPSGD(
        examples=examples, batch_size=BATCH_SIZE, steps=tried * steps, noise_multiplier=1.0
    )
    found = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(epsilon, DELTA)).plan
    assert isinstance(found, hs.DPSGD)
    return found


def run(
    seed: int | None = 0,
    *,
    method: str = "online",
    epsilon: float = EPSILON,
    steps: int = STEPS,
    plan: hs.DPSGD | None = None,
) -> Outcome:
    """Search one method's grid within a budget and return what came out.

    Args:
        seed: Of batches and noise; None for the operating system's, the only private run.
        method: One of ``GRIDS``.
        epsilon: The budget of the grid, at delta 1e-4.
        steps: The steps of each run.
        plan: What is run and accounted for; calibrated to the budget where not given.
    """
    data = digits()
    plan = planned(method, len(data.rows), epsilon, steps) if plan is None else plan
    build, grid = GRIDS[method]
    settings = list(itertools.product(*grid))
    account, sampler = Account(plan), Sampler(plan, len(data.rows), seed)
    bits = secret_bits if seed is None else np.random.PCG64(seed).random_raw
    best, best_settings, drawn = 0.0, settings[0], 0
    for tried in settings:
        update, weights = build(plan.noise_multiplier, *tried), np.zeros(CLASSES * 65)
        for _ in range(plan.total_steps // len(settings)):
            batch = sampler.draw(account.counted)
            drawn += len(batch)
            rows = gradients(weights, data.rows[batch], data.labels[batch])
            size = sampler.expected(account.counted)
            account.count()
            weights = weights + update(rows, size, bits)
        found = accuracy(weights, data)
        best, best_settings = max((best, best_settings), (found, tried))
    spent, size = hs.epsilon(account.released, DELTA).upper, plan.total_steps * BATCH_SIZE
    told = ", ".join(f"{value:g}" for value in best_settings)
    return Outcome(
        f"{method} ({len(settings)} runs; best with {told})",
        {"accuracy": best},
        str(account.released.mechanism),
        spent,
        DELTA,
        {
            "steps": account.counted == plan.total_steps,
            "budget": spent <= epsilon,
            "joint noise": joint_cost(method, plan) <= spent * (1 + 1e-9),
            "batches": abs(drawn - size) < 5 * size**0.5,
        },
    )


def joint_cost(method: str, plan: hs.DPSGD) -> float:
    """Return what a plan's steps cost by the noise of each query that a method asks."""
    noise, asked = plan.noise_multiplier, hs.Gaussian(plan.noise_multiplier)
    clippings = {"online": by_descent(noise, 1.0), "fixed quantile": by_quantile(noise, 0.5)}
    query = clippings[method].mechanism if method in clippings else asked
    step = hs.PoissonSubsampled(query, plan.sampling_rate)
    return float(hs.epsilon(step**plan.total_steps, DELTA).upper)


def accuracy(weights: Any, data: Digits) -> float:
    """Return the share of test images that are read rightly."""
    return float((probabilities(weights, data.test_rows).argmax(1) == data.test_labels).mean())


def without_privacy(steps: int = STEPS) -> float:
    """Return the best accuracy of the same steps on all images, without clipping and noise."""
    data, found = digits(), []
    for rate in RATES:
        weights = np.zeros(CLASSES * 65)
        for _ in range(steps):
            weights = weights - rate * gradients(weights, data.rows, data.labels).mean(axis=0)
        found.append(accuracy(weights, data))
    return max(found)


def openly(seed: int | None = 0) -> Outcome:
    """Return what the same model comes to without privacy, whatever the seed."""
    return Outcome("without privacy", {"accuracy": without_privacy()}, "", float("inf"), 0.0)


def settings(epsilon: float = EPSILON) -> dict[str, Setting]:
    """Return what the system is shown in."""
    private = {
        method: Setting(partial(run, method=method, epsilon=epsilon), beside="without privacy")
        for method in GRIDS
    }
    return private | {"without privacy": Setting(openly)}


def main() -> None:
    """Search each method's grid at one budget, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of batches and noise")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs; medians are shown")
    parser.add_argument("--epsilon", type=float, default=EPSILON, help=f"at delta {DELTA:g}")
    asked = parser.parse_args()
    echo(f"without privacy: accuracy {without_privacy():.3f}")
    for method in GRIDS:
        plan = planned(method, len(digits().rows), asked.epsilon)
        outcomes = repeated(settings(asked.epsilon)[method].run, asked.seed, asked.seeds)
        echo(f"noise multiplier {plan.noise_multiplier:.3f}  {line(outcomes)}")


if __name__ == "__main__":
    main()
