"""Train on scikit-learn's handwritten digits at (3, 1e-4)-DP, and without privacy beside it.

    pip install 'hockeystick[torch]' scikit-learn
    python examples/train_digits.py

The noise is calibrated to the budget. With privacy 92 to 95 % of the test images are read rightly,
without 97 %, in some ten seconds. The accuracy is told for a fifth of the images that no training
saw: it is part of the demonstration, and not covered by the guarantee of the other images.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from rich.console import Console
from torch.nn.functional import cross_entropy

import hockeystick as hs
from hockeystick.adapters.torch import make_private

EPSILON, DELTA = 3.0, 1e-4
BATCH_SIZE, EPOCHS, CLIPPING_NORM, LEARNING_RATE = 512, 60, 0.5, 4.0


def digits() -> tuple[Any, Any]:
    """Return four fifths of the images to train on, and the others."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16.0, labels, test_size=0.2, stratify=labels, random_state=0)
    seen, unseen, seen_labels, unseen_labels = parts
    return _dataset(seen, seen_labels), _dataset(unseen, unseen_labels)


def _dataset(images: Any, labels: Any) -> Any:
    """Return images as 1 x 8 x 8 tensors with their labels."""
    pixels = torch.as_tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8)
    return torch.utils.data.TensorDataset(pixels, torch.as_tensor(labels, dtype=torch.long))


def network() -> Any:
    """Return a small convolutional network without statistics of batches."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1),
        torch.nn.Tanh(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 4 * 4, 10),
    )


def planned(examples: int) -> hs.DPSGD:
    """Return a plan with the least noise that meets the budget."""
    plan = hs.DPSGD(examples=examples, batch_size=BATCH_SIZE, epochs=EPOCHS, noise_multiplier=1.0)
    budget = hs.ApproxDP(epsilon=EPSILON, delta=DELTA)
    found = hs.calibrate(plan, "noise_multiplier", budget).plan
    assert isinstance(found, hs.DPSGD)
    return found


def train_privately(model: Any, dataset: Any, plan: hs.DPSGD) -> hs.Certified:
    """Train by a plan, and return what that costs."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    private = make_private(model, optimizer, dataset, plan, clipping=CLIPPING_NORM)
    for batch in private.loader:
        private.step(cross_entropy, batch)
    return private.spent(DELTA)


def train_openly(model: Any, dataset: Any, steps: int) -> None:
    """Train for as many steps without privacy."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images, labels = dataset.tensors
    for _ in range(steps):
        chosen = torch.randperm(len(images))[:BATCH_SIZE]
        optimizer.zero_grad()
        cross_entropy(model(images[chosen]), labels[chosen]).backward()
        optimizer.step()


def accuracy(model: Any, dataset: Any) -> float:
    """Return the share of images that are read rightly."""
    images, labels = dataset.tensors
    with torch.no_grad():
        return float((model(images).argmax(dim=1) == labels).float().mean())


def main() -> None:
    """Train twice, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    torch.set_num_threads(1)  # so small a network gains nothing from more
    console = Console()
    started = time.perf_counter()
    seen, unseen = digits()
    plan = planned(len(seen))
    console.print(f"noise multiplier {plan.noise_multiplier:.4f}, {plan.total_steps} steps")
    private, openly = network(), network()
    spent = train_privately(private, seen, plan)
    train_openly(openly, seen, plan.total_steps)
    console.print(f"accuracy {accuracy(private, unseen):.1%} at ({spent:.3f}, {DELTA:g})-DP")
    console.print(f"accuracy {accuracy(openly, unseen):.1%} without privacy")
    console.print(f"{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()
