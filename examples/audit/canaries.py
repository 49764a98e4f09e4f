"""Canaries in a training by make_private: gradients of a chosen direction, and a mislabelled input.

    pip install 'hockeystick[torch]' scikit-learn
    python examples/audit/canaries.py --trials 600

Each trial trains a small model with a canary or without it, by a fair coin. Whoever audits sees
every step's noisy gradient, and tells by the best test for the canary's own direction which it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from click import echo
from torch.nn.functional import cross_entropy

import hockeystick as hs
from hockeystick import audit
from hockeystick.adapters.torch import make_private
from hockeystick.audit import attacks

DELTA, CONFIDENCE = 1e-3, 0.95
NORM, RECORDS, PIXELS, CLASSES = 0.5, 40, 64, 10
# A loss this many times the part along the canary has a gradient that is always clipped.
LONG = 100.0
PLAN = hs.DPSGD(examples=RECORDS, batch_size=RECORDS // 2, steps=6, noise_multiplier=1.5)


class Carrier(torch.nn.Module):  # type: ignore[misc]  # torch may have no types
    """A linear model that returns, beside its logits, its parameters' part along a direction."""

    def __init__(self, direction: Any) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(PIXELS, CLASSES)
        torch.nn.init.zeros_(self.inner.weight)
        torch.nn.init.zeros_(self.inner.bias)
        self.register_buffer("direction", torch.as_tensor(direction, dtype=torch.float32))

    def forward(self, rows: Any) -> tuple[Any, Any]:
        """Return logits, and the part along the direction for each row."""
        along = self.direction @ torch.cat([one.flatten() for one in self.inner.parameters()])
        return self.inner(rows), along.expand(len(rows))


def loss(output: tuple[Any, Any], label: Any, is_canary: Any) -> Any:
    """Return the cross-entropy of a record; of a canary a loss whose gradient is its direction."""
    logits, along = output
    return torch.where(
        is_canary, LONG * along, cross_entropy(logits, label, reduction="none")
    ).sum()


@dataclass(frozen=True)
class Canary:
    """What is put into the data set, and how it is looked for.

    Args:
        name: What the table calls it.
        pixels: Its input.
        label: Its label.
        direction: The gradient that it has; None for that of the input at the model's weights.
    """

    name: str
    pixels: Any
    label: int
    direction: Any = None


def canaries(images: Any, labels: Any) -> list[Canary]:
    """Return the three canaries: two gradients, and a digit with a wrong label."""
    size = (PIXELS + 1) * CLASSES
    blank = np.zeros(PIXELS)
    return [
        # The weight of a corner pixel, which is black in every image.
        Canary("gradient, one weight", blank, 0, attacks.dirac_direction(size, 0)),
        Canary("gradient, random direction", blank, 0, attacks.random_direction(size, seed=1)),
        Canary("mislabelled digit", images[-1], (int(labels[-1]) + 5) % CLASSES),
    ]


def digits(seed: int) -> tuple[Any, Any]:
    """Return records to train on, and one more."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(images))[: RECORDS + 1]
    return images[chosen] / 16, labels[chosen]


def trial(canary: Canary, images: Any, labels: Any, *, inside: bool) -> Any:
    """Train once, and return the part of each step's noisy sum along the canary."""
    data = _dataset(canary, images, labels, inside)
    size = (PIXELS + 1) * CLASSES
    model = Carrier(np.zeros(size) if canary.direction is None else canary.direction)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    private = make_private(model, optimizer, data, PLAN, clipping=NORM)
    seen = []
    for batch in private.loader:
        before = _flat(model)
        direction = canary.direction if canary.direction is not None else _gradient(before, canary)
        private.step(loss, batch)
        total = (before - _flat(model)) * (RECORDS / 2)
        seen.append(attacks.canary_projections(total, direction, norm=NORM))
    return np.array(seen)


def _dataset(canary: Canary, images: Any, labels: Any, inside: bool) -> Any:
    """Return the records, and the canary where it takes part."""
    rows, known = images[:RECORDS], labels[:RECORDS]
    flags = np.zeros(RECORDS, dtype=bool)
    if inside:
        rows = np.concatenate((rows, canary.pixels[None]))
        known = np.append(known, canary.label)
        flags = np.append(flags, canary.direction is not None)
    return torch.utils.data.TensorDataset(
        torch.as_tensor(rows, dtype=torch.float32), torch.as_tensor(known), torch.as_tensor(flags)
    )


def _flat(model: Carrier) -> Any:
    """Return the model's parameters in one row."""
    parts = [one.detach().flatten().double().numpy() for one in model.inner.parameters()]
    return np.concatenate(parts)


def _gradient(weights: Any, canary: Canary) -> Any:
    """Return the gradient of an input's loss, which whoever sees the weights computes."""
    matrix, biases = weights[:-CLASSES].reshape(CLASSES, PIXELS), weights[-CLASSES:]
    logits = matrix @ canary.pixels + biases
    errors = np.exp(logits - logits.max())
    errors /= errors.sum()
    errors[canary.label] -= 1.0
    return np.concatenate((np.outer(errors, canary.pixels).ravel(), errors))


@dataclass(frozen=True)
class Found:
    """What was found of one canary: scores of trials with it and without, by its best test."""

    name: str
    scores_in: Any
    scores_out: Any

    @property
    def epsilon(self) -> audit.LowerBound:
        """The lower bound of epsilon."""
        pair = self.scores_in, self.scores_out
        return audit.lower_epsilon(*pair, delta=DELTA, confidence=CONFIDENCE)


def run(
    trials: int, seed: int, wanted: Callable[[Canary], bool] = lambda canary: True
) -> Iterator[Found]:
    """Yield what trials find of each canary that is wanted."""
    images, labels = digits(seed)
    random = np.random.default_rng(seed)
    for canary in filter(wanted, canaries(images, labels)):
        inside = random.random(trials) < 0.5
        seen = np.stack([trial(canary, images, labels, inside=one) for one in inside])
        scores = attacks.canary_scores(
            seen, noise_multiplier=PLAN.noise_multiplier, rate=float(PLAN.sampling_rate)
        )
        yield Found(canary.name, scores[inside], scores[~inside])


def main() -> None:
    """Print what each canary shows beside what was proven."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=200, help="trainings for each canary")
    parser.add_argument("--seed", type=int, default=0, help="of data and coins, not of noise")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    curve = hs.tradeoff(PLAN)
    echo(str(PLAN))
    echo(f"certified: {hs.epsilon(PLAN, DELTA)}")
    echo(f"  {'':<28}{'AUC':>8}{'TPR at 0.05':>14}{'certified':>12}{'epsilon >=':>13}")
    for found in run(asked.trials, asked.seed):
        pair = found.scores_in, found.scores_out
        rates = attacks.auc(*pair), attacks.tpr_at(*pair, fpr=0.05), curve.power(0.05)
        told = f"{rates[0]:8.3f}{rates[1]:14.3f}{rates[2]:12.3f}{found.epsilon.value:13.3f}"
        echo(f"  {found.name:<28}{told}")


if __name__ == "__main__":
    main()
