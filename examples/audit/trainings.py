"""Many small trainings on digits: by the adversary in floats, all at once, or released exactly.

The model is a softmax on random Fourier features of the pixels, which learns single records by
heart as larger networks do, and whose trainings are matrix products. Its last feature is 0 for
every record: gradients of its weights are those of a canary alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import hockeystick as hs
from hockeystick.audit import attacks
from hockeystick.release.noise.clipped_sum import noisy_sum
from hockeystick.release.samplers import Bits

CLASSES, PIXELS, FEATURES, WIDTH = 10, 64, 128, 2.0
POOL, MISLABELLED = 100, 20


@dataclass(frozen=True)
class Records:
    """Records that each training takes or leaves by a fair coin, and others to test on.

    Args:
        pixels: Those of the pool, a row for each.
        labels: Their labels; those of the first ``MISLABELLED`` are wrong.
        test_pixels: Those of other digits.
        test_labels: Their labels.
    """

    pixels: Any
    labels: Any
    test_pixels: Any
    test_labels: Any


@dataclass(frozen=True)
class Recipe:
    """How a model is trained: gradient descent on all records, clipped and noised where private.

    Args:
        steps: The number of steps.
        learning_rate: That of each step, of the sum of gradients over half the pool's size.
        norm: The clipping norm; None for no clipping, and no privacy.
        noise_multiplier: That of each step.
    """

    steps: int
    learning_rate: float
    norm: float | None = None
    noise_multiplier: float = 0.0

    @property
    def plan(self) -> hs.DPSGD:
        """What is accounted for; records are added or removed."""
        return hs.DPSGD(
            examples=POOL // 2,
            sampling="full-batch",
            steps=self.steps,
            noise_multiplier=self.noise_multiplier,
        )


@dataclass(frozen=True)
class Trained:
    """What trainings released, with who took part.

    Args:
        weights: The last weights of each model, shape (models, features, classes).
        included: Whether each model trained on each record.
        canaries: Whether each model trained on the canary of each direction.
        projections: The part of each step's noisy sum along each direction, in units of the
            clipping norm, shape (models, directions, steps).
    """

    weights: Any
    included: Any
    canaries: Any
    projections: Any


def digits(seed: int = 0) -> Records:
    """Return a pool of scikit-learn's digits, some with a wrong label, and digits to test on."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    random = np.random.default_rng(seed)
    order = random.permutation(len(images))
    taken, others = order[:POOL], order[POOL:]
    known = labels[taken].copy()
    moved = random.integers(1, CLASSES, MISLABELLED)
    known[:MISLABELLED] = (known[:MISLABELLED] + moved) % CLASSES
    return Records(images[taken] / 16, known, images[others] / 16, labels[others])


def features(pixels: Any) -> Any:
    """Return random Fourier features of norm about 1, the same in every run, and one that is 0."""
    random = np.random.default_rng(5)
    frequencies = random.standard_normal((PIXELS, FEATURES)) / WIDTH
    waves = np.cos(pixels @ frequencies + random.uniform(0, 2 * np.pi, FEATURES))
    found = np.sqrt(2 / FEATURES) * waves
    return np.concatenate((found, np.zeros((*found.shape[:-1], 1))), axis=-1)


def directions() -> Any:
    """Return the canaries' gradients: one weight of the feature that is 0, and a random one."""
    size = (FEATURES + 1) * CLASSES
    return np.stack(
        [attacks.dirac_direction(size, size - 1), attacks.random_direction(size, seed=1)]
    )


def probabilities(logits: Any) -> Any:
    """Return the softmax over the last axis."""
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def losses(weights: Any, pixels: Any, labels: Any) -> Any:
    """Return each model's loss on each record, shape (models, records)."""
    gaps = attacks.logit_gaps(features(pixels) @ weights, labels)
    return np.logaddexp(0.0, -gaps)


def accuracy(weights: Any, records: Records) -> float:
    """Return the share of test digits that the models read rightly, on average."""
    told = (features(records.test_pixels) @ weights).argmax(axis=-1)
    return float((told == records.test_labels).mean())


def simulate(recipe: Recipe, records: Records, models: int, seed: int) -> Trained:
    """Train as the adversary does: all models at once, in floats, with noise of a generator."""
    random = np.random.default_rng(seed)
    rows, hot = features(records.pixels), np.eye(CLASSES)[records.labels]
    included = random.random((models, len(rows))) < 0.5
    weights = np.zeros((models, rows.shape[1], CLASSES))
    lengths = np.linalg.norm(rows, axis=1)
    for _ in range(recipe.steps):
        errors = (probabilities(rows @ weights) - hot) * included[:, :, None]
        if recipe.norm is not None:
            long = np.linalg.norm(errors, axis=2) * lengths / recipe.norm
            errors /= np.maximum(long, 1.0)[:, :, None]
        sums = rows.T @ errors
        if recipe.norm is not None:
            deviation = recipe.noise_multiplier * recipe.norm
            sums += deviation * random.standard_normal(sums.shape)
        weights -= recipe.learning_rate / (POOL / 2) * sums
    none = np.zeros((models, 0))
    return Trained(weights, included, none, np.zeros((models, 0, recipe.steps)))


def release(
    recipe: Recipe, records: Records, models: int, seed: int, bits: Bits | None = None
) -> Trained:
    """Train as who is audited does: clipped sums with exact noise, by ``noisy_sum``.

    Besides the records, each model takes or leaves the canary of each direction. The seed is that
    of the coins and of the noise, so that a demonstration can be repeated; where ``bits`` is
    ``secret_bits`` the noise comes from the operating system.
    """
    # Another stream than that of the coins.
    words = np.random.PCG64((seed, 1)).random_raw if bits is None else bits
    random = np.random.default_rng(seed)
    included = random.random((models, len(records.labels))) < 0.5
    along = directions()
    canaries = random.random((models, len(along))) < 0.5
    runs = [
        _released(recipe, records, mine, along, along[own], words)
        for mine, own in zip(included, canaries, strict=True)
    ]
    weights, projections = (np.stack(part) for part in zip(*runs, strict=True))
    return Trained(weights, included, canaries, projections)


def _released(
    recipe: Recipe, records: Records, included: Any, along: Any, canaries: Any, bits: Bits
) -> tuple[Any, Any]:
    """Return the weights of one training, and what its sums have along some directions."""
    assert recipe.norm is not None
    rows, labels = features(records.pixels[included]), records.labels[included]
    weights, seen = np.zeros((rows.shape[1], CLASSES)), []
    for _ in range(recipe.steps):
        errors = probabilities(rows @ weights)
        errors[np.arange(len(labels)), labels] -= 1.0
        gradients = (rows[:, :, None] * errors[:, None, :]).reshape(len(rows), weights.size)
        total = noisy_sum(
            np.concatenate((gradients, recipe.norm * canaries)),
            norm=recipe.norm,
            noise_multiplier=recipe.noise_multiplier,
            bits=bits,
        )
        seen.append([attacks.canary_projections(total, one, norm=recipe.norm) for one in along])
        weights = weights - recipe.learning_rate / (POOL / 2) * total.reshape(weights.shape)
    return weights, np.transpose(seen)


def without_privacy(recipe: Recipe) -> Recipe:
    """Return the same training without clipping and noise."""
    return replace(recipe, norm=None, noise_multiplier=0.0)
