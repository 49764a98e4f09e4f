"""Train on scikit-learn's handwritten digits at (3, 1e-4)-DP, in several processes.

    pip install 'hockeystick[torch]' scikit-learn
    torchrun --nproc_per_node=2 examples/train_ddp.py --checkpoint digits.pt

Each process computes the gradients of its share of each batch. There is one batch, one noise and
one count, as in a single process, and so there is one guarantee. A run that was killed goes on from
its checkpoint when it is started again, in any number of processes.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import torch
from rich.console import Console
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import hockeystick as hs
from hockeystick.adapters.torch import Counting, make_private

EPSILON, DELTA = 3.0, 1e-4
BATCH_SIZE, EPOCHS, CLIPPING_NORM, LEARNING_RATE = 512, 60, 0.5, 4.0


def digits() -> tuple[Any, Any]:
    """Return four fifths of the images to train on, and the others."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16.0, labels, test_size=0.2, stratify=labels, random_state=0)
    seen, unseen, *numbers = parts
    return tuple(
        torch.utils.data.TensorDataset(
            torch.as_tensor(pixels, dtype=torch.float32).reshape(-1, 1, 8, 8), torch.tensor(label)
        )
        for pixels, label in zip((seen, unseen), numbers, strict=True)
    )


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


def train(dataset: Any, plan: hs.DPSGD, checkpoint: str | None) -> Any:
    """Train by a plan, from a checkpoint if there is one, and return the loop."""
    model = DistributedDataParallel(network())  # which gives all processes the first one's weights
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    private = make_private(
        model,
        optimizer,
        dataset,
        plan,
        clipping=CLIPPING_NORM,
        counting=Counting(checkpoint=checkpoint),
    )
    if checkpoint is not None and os.path.exists(checkpoint):
        private.load()
    for epoch in private.epochs():
        for batch in epoch:
            private.step(cross_entropy, batch)
        if checkpoint is not None:
            private.save()
    return private


def accuracy(model: Any, dataset: Any) -> float:
    """Return the share of images that are read rightly."""
    images, labels = dataset.tensors
    with torch.no_grad():
        return float((model(images).argmax(dim=1) == labels).float().mean())


def main() -> None:
    """Train, and say in the first process what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", help="a file to go on from after a kill")
    arguments = parser.parse_args()
    distributed.init_process_group("gloo")
    seen, unseen = digits()
    private = train(seen, planned(len(seen)), arguments.checkpoint)
    if distributed.get_rank() == 0:
        share = accuracy(private.model, unseen)
        spent = private.spent(DELTA)
        console = Console()
        console.print(f"{private.steps} steps in {distributed.get_world_size()} processes")
        console.print(f"accuracy {share:.1%} at ({spent.upper:.3f}, {DELTA:g})-DP")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
