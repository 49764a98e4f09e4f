"""What the systems share: digits and a linear model, random words, and one table of outcomes.

The 1,797 images of scikit-learn's digits come with it; nothing is downloaded. Every fifth image is
held out to test on, which is part of the demonstration and not covered by any guarantee.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from functools import cache
from typing import Any

import numpy as np

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler, noisy_sum
from hockeystick.release.samplers import Bits, secret_bits

CLASSES, WEIGHTS = 10, 650
# Of what is trained on all images: a budget, a plan whose noise is still to be found, and the
# thesis's grid of granularity 5 (Galli 2024, chapter 3), even steps of logarithms.
EPSILON, DELTA = 3.0, 1e-4
PLAN = hs.DPSGD(examples=1438, batch_size=256, steps=60, noise_multiplier=1.0)
RATES = tuple(10.0**power for power in (-2.5, -1.5, -0.5, 0.5, 1.5))
NOT_AS_ACCOUNTED = "**not as accounted**"

Update = Callable[[Any, float, Bits], Any]
"""From a batch's gradients, its expected size and random words to the change of the weights."""


@dataclass(frozen=True)
class Outcome:
    """What one run of a system came to.

    Args:
        result: The figures on data, by name.
        plain: Those of the same without privacy.
        epsilon: The certified upper end, inf without privacy.
        delta: The delta it holds at.
        checks: What was compared between the run and its account, by name: True where they agree.
    """

    result: Mapping[str, float]
    plain: Mapping[str, float]
    epsilon: float
    delta: float
    checks: Mapping[str, bool]


Settings = Mapping[str, Callable[[int], Outcome]]
"""The settings in which a system is shown, by name: each a function from a seed to an outcome."""


def cells(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return what a row of the table says of one or more runs of a setting."""
    wrong = sorted({name for one in outcomes for name, right in one.checks.items() if not right})
    if not all(one.checks for one in outcomes):
        wrong = ["nothing was compared"]
    dearest = max(outcomes, key=lambda one: one.epsilon)
    epsilon = Decimal(dearest.epsilon)
    if epsilon.is_finite():
        epsilon = epsilon.quantize(Decimal("0.001"), ROUND_CEILING)
    return {
        "result": _spreads([one.result for one in outcomes]),
        "plain": _spreads([one.plain for one in outcomes]),
        "cost": f"({epsilon}, {dearest.delta:g})" if epsilon.is_finite() else "no privacy",
        "check": f"{NOT_AS_ACCOUNTED}: {', '.join(wrong)}" if wrong else f"{len(outcomes)} runs",
    }


def _spreads(figures: Sequence[Mapping[str, float]]) -> str:
    """Return each figure's median, and where there are several runs the least and the largest."""
    told = []
    for name in figures[0]:
        values = [one[name] for one in figures]
        whole = all(value == int(value) for value in values) and max(values) > 1
        middle, *ends = (
            f"{value:g}" if whole else f"{value:.3f}"
            for value in (statistics.median(values), min(values), max(values))
        )
        told.append(f"{name} {middle}" + (f" [{', '.join(ends)}]" if len(values) > 1 else ""))
    return "; ".join(told)


def source(seed: int | None, *whose: int) -> Bits:
    """Return random words: the operating system's, or for a demonstration those of a seed.

    Whoever knows the seed knows the noise: a run with one can be repeated, and protects nobody.

    Args:
        seed: That of the run, or None.
        *whose: A client and its round, which have words of their own; none for the server.
    """
    if seed is None:
        return secret_bits
    # Words of a seed that are 0 at its end change nothing, so that numbers begin with 1.
    return np.random.PCG64([seed, *(1 + one for one in whose)]).random_raw


@dataclass(frozen=True)
class Digits:
    """Features with a last column of ones, and labels: to train on, and to test on."""

    rows: Any
    labels: Any
    test_rows: Any
    test_labels: Any

    def accuracy(self, weights: Any) -> float:
        """Return the share of test images that a linear model reads rightly."""
        return accuracy(weights, self.test_rows, self.test_labels)


@cache
def digits() -> Digits:
    """Return four fifths of the images to train on, and every fifth to test on."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rows = np.hstack([images / 16.0, np.ones((len(images), 1))])
    tested = np.arange(len(rows)) % 5 == 4
    return Digits(rows[~tested], labels[~tested], rows[tested], labels[tested])


def shards(clients: int, split: str, seed: int = 0, each: int | None = None) -> list[Any]:
    """Return rows and labels to train on for each client, all with the same number of records.

    Args:
        clients: How many.
        split: "writer": consecutive images, which in this file are mostly of one writer; "label":
            each client has two blocks of the images sorted by label; "even": at random.
        seed: Of which blocks a client gets.
        each: How many records a client keeps; as many as there are for all where not given.
    """
    data, rng = digits(), np.random.default_rng(seed)
    order = np.arange(len(data.labels))
    if split == "even":
        order = rng.permutation(len(order))
    elif split == "label":
        half = len(order) // (2 * clients)
        sorted_by_label = np.argsort(data.labels, kind="stable")[: 2 * half * clients]
        blocks = sorted_by_label.reshape(2 * clients, half)
        order = blocks[rng.permutation(2 * clients)].ravel()
    held = len(order) // clients
    parts = order[: held * clients].reshape(clients, held)[:, :each]
    return [(data.rows[part], data.labels[part]) for part in parts]


def gradients(weights: Any, rows: Any, labels: Any) -> Any:
    """Return each record's gradient of the cross-entropy of a linear model, a row for each."""
    errors = probabilities(weights, rows)
    errors[np.arange(len(labels)), labels] -= 1.0
    return (errors[:, :, None] * rows[:, None, :]).reshape(len(labels), len(weights))


def noted_gradients(data: Any, sizes: list[int], weights: Any, chosen: Any) -> Any:
    """Return the gradients of some of a client's records, and note how many there are."""
    rows, labels = data
    sizes.append(len(chosen))
    return gradients(weights, rows[chosen], labels[chosen])


def probabilities(weights: Any, rows: Any) -> Any:
    """Return the model's probabilities of the classes."""
    scores = rows @ weights.reshape(CLASSES, -1).T
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def accuracy(weights: Any, rows: Any, labels: Any) -> float:
    """Return the share of records that a model reads rightly."""
    return float((probabilities(weights, rows).argmax(axis=1) == labels).mean())


def parity(seed: int) -> tuple[Any, Any]:
    """Return digits to train and to test on, in a random order: rows times 1 if even, else -1.

    Each image is averaged over squares of four pixels, its own mean is taken off, and it is scaled
    to length 1: a function of that image alone, so that one record's gradient has norm at most 1.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rows = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    rows = rows - rows.mean(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 2.0**-40)
    signed = rows * np.where(labels % 2 == 0, 1.0, -1.0)[:, None]
    order = np.random.default_rng(seed).permutation(len(signed))
    cut = 4 * len(signed) // 5
    return signed[order[:cut]], signed[order[cut:]]


def logistic_gradient(model: Any, rows: Any) -> Any:
    """Return the gradient of the mean of ``ln(1 + exp(-row w))``: convex and 1/4-smooth."""
    return -(rows / (1.0 + np.exp(rows @ model))[:, None]).mean(axis=0)


def calibrated(**plan: Any) -> hs.DPSGD:
    """Return a plan on all images with the least noise that meets the budget."""
    target = hs.ApproxDP(EPSILON, DELTA)
    found = hs.calibrate(replace(PLAN, **plan), "noise_multiplier", target).plan
    assert isinstance(found, hs.DPSGD)
    return found


def fixed_threshold(noise: float, rate: float, norm: float) -> Update:
    """DP-SGD (Abadi et al. 2016)."""

    def update(rows: Any, size: float, bits: Bits) -> Any:
        return -rate * noisy_sum(rows, norm=norm, noise_multiplier=noise, bits=bits) / size

    return update


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

    def outcome(self, accuracy: float, checks: Mapping[str, bool]) -> Outcome:
        """Return what came of all steps, with its cost, and checks beside those of the steps."""
        steps = self.account.plan.total_steps
        images = steps * PLAN.batch_size
        spent = float(hs.epsilon(self.account.released, DELTA).upper)
        own = {
            "steps": self.account.counted == steps,
            "budget": spent <= EPSILON,
            "batches": abs(self.drawn - images) < 5 * images**0.5,
        }
        return Outcome({"accuracy": accuracy}, openly(), spent, DELTA, {**own, **checks})


@cache
def openly() -> dict[str, float]:
    """Return the best of the same steps on all images without clipping and noise."""
    data, found = digits(), []
    for rate in RATES:
        weights = np.zeros(WEIGHTS)
        for _ in range(PLAN.total_steps):
            weights = weights - rate * gradients(weights, data.rows, data.labels).mean(axis=0)
        found.append(data.accuracy(weights))
    return {"accuracy": max(found)}
