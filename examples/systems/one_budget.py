"""What the programs have in common that compare methods on digits at one budget.

What is trained is a linear model of scikit-learn's digits by DP-SGD: four fifths of the images to
train on, every fifth to test on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from outcomes import Outcome, Setting

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler, noisy_sum
from hockeystick.release.samplers import Bits, secret_bits

EPSILON, DELTA, BATCH_SIZE, STEPS = 3.0, 1e-4, 256, 60
CLASSES = 10
# The thesis's grid of granularity 5 (Galli 2024, chapter 3): even steps of logarithms.
RATES = tuple(10.0**power for power in (-2.5, -1.5, -0.5, 0.5, 1.5))

Update = Callable[[Any, float, Bits], Any]
"""From a batch's gradients, its expected size and random words to the change of the weights."""


@dataclass(frozen=True)
class Digits:
    """Features with a last column of ones, and labels: to train on, and to test on."""

    rows: Any
    labels: Any
    test_rows: Any
    test_labels: Any


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


def accuracy(weights: Any, data: Digits) -> float:
    """Return the share of test images that are read rightly."""
    return float((probabilities(weights, data.test_rows).argmax(1) == data.test_labels).mean())


def fixed_threshold(noise: float, rate: float, norm: float) -> Update:
    """DP-SGD (Abadi et al. 2016)."""

    def update(rows: Any, size: float, bits: Bits) -> Any:
        return -rate * noisy_sum(rows, norm=norm, noise_multiplier=noise, bits=bits) / size

    return update


def calibrated(epsilon: float, **plan: Any) -> hs.DPSGD:
    """Return a plan's with the least noise that meets a budget."""
    known = {"batch_size": BATCH_SIZE, "steps": STEPS, "noise_multiplier": 1.0} | plan
    target = hs.ApproxDP(epsilon, DELTA)
    found = hs.calibrate(hs.DPSGD(**known), "noise_multiplier", target).plan
    assert isinstance(found, hs.DPSGD)
    return found


def words(seed: int | None) -> Bits:
    """Return the random words of a seed; the operating system's for None."""
    return secret_bits if seed is None else np.random.PCG64(seed).random_raw


class Training:
    """The steps of a plan on digits: how many were counted, and how many images were drawn."""

    def __init__(self, plan: hs.DPSGD, data: Digits, seed: int | None, bits: Bits) -> None:
        self.data, self.bits, self.drawn = data, bits, 0
        self.account, self._sampler = Account(plan), Sampler(plan, len(data.rows), seed)

    def steps(self, update: Update, count: int) -> Any:
        """Return the weights after so many steps from 0, each counted before its noise is drawn."""
        weights = np.zeros(CLASSES * self.data.rows.shape[1])
        for _ in range(count):
            step = self.account.counted
            batch = self._sampler.draw(step)
            self.drawn += len(batch)
            rows = gradients(weights, self.data.rows[batch], self.data.labels[batch])
            self.account.count()
            weights = weights + update(rows, self._sampler.expected(step), self.bits)
        return weights

    def outcome(
        self, system: str, accuracy: float, epsilon: float, checks: dict[str, bool]
    ) -> Outcome:
        """Return what came of all steps, with its cost, and checks beside those of the steps."""
        steps, result = self.account.plan.total_steps, {"accuracy": accuracy}
        own = {
            "steps": self.account.counted == steps,
            "budget": self.spent <= epsilon,
            "batches": abs(self.drawn - steps * BATCH_SIZE) < 5 * (steps * BATCH_SIZE) ** 0.5,
        }
        plan = str(self.account.released)
        return Outcome(system, result, plan, self.spent, DELTA, own | checks)

    @property
    def spent(self) -> float:
        """The certified epsilon of the steps counted so far."""
        return float(hs.epsilon(self.account.released, DELTA).upper)


def without_privacy(steps: int = STEPS) -> float:
    """Return the best accuracy of the same steps on all images, without clipping and noise."""
    data, found = digits(), []
    for rate in RATES:
        weights = np.zeros(CLASSES * 65)
        for _ in range(steps):
            weights = weights - rate * gradients(weights, data.rows, data.labels).mean(axis=0)
        found.append(accuracy(weights, data))
    return max(found)


def openly(seed: int | None = 0, *, steps: int = STEPS) -> Outcome:
    """Return what the same model comes to without privacy, whatever the seed."""
    found = {"accuracy": without_privacy(steps)}
    return Outcome("without privacy", found, "", float("inf"), 0.0)


def settings_of(
    run: Callable[..., Outcome], methods: Iterable[str], epsilon: float, steps: int = STEPS
) -> dict[str, Setting]:
    """Return a run's methods at a budget, each beside the same model without privacy."""
    private = {
        method: Setting(partial(run, method=method, epsilon=epsilon), beside="without privacy")
        for method in methods
    }
    return private | {"without privacy": Setting(partial(openly, steps=steps))}


def asked_for(
    document: str | None, epsilon: float = EPSILON, delta: float = DELTA
) -> argparse.Namespace:
    """Return what the command line says: the first seed, how many, and the budget."""
    parser = argparse.ArgumentParser(description=(document or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of batches and noise")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs; medians are shown")
    parser.add_argument("--epsilon", type=float, default=epsilon, help=f"at delta {delta:g}")
    return parser.parse_args()
