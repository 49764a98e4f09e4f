"""Train a model on scikit-learn's digits privately, in Lightning's loop.

    pip install 'hockeystick[examples,lightning]'
    python examples/train_lightning.py

The module trains on what ``own_loop`` returns: its model, its batches, and the optimizer whose
steps are private. Lightning calls ``backward`` and ``step`` as for any other.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import lightning
import torch
from rich.console import Console
from sklearn.datasets import load_digits
from torch.nn import functional

import hockeystick as hs
from hockeystick.adapters.torch import make_private

EPSILON, DELTA = 3.0, 1e-4


class Digits(lightning.LightningModule):
    """A classifier, trained by a plan."""

    def __init__(self, examples: Any, plan: hs.DPSGD) -> None:
        super().__init__()
        layers = (torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
        network = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
        self.private = make_private(network, self.optimizer, examples, plan, clipping=1.0)
        self.network, self.batches = self.private.own_loop()

    def configure_optimizers(self) -> Any:
        """Return the optimizer that was made private."""
        return self.optimizer

    def train_dataloader(self) -> Any:
        """Return the batches that the plan draws."""
        return self.batches

    def training_step(self, batch: Any, _: int) -> Any:
        """Return the mean loss of a batch, which has no noise: it is not logged."""
        inputs, labels = batch
        return functional.cross_entropy(self.network(inputs), labels)

    def on_train_batch_end(self, *_: Any) -> None:
        """Log what is spent."""
        self.log("epsilon", torch.tensor(self.private.spent(DELTA).upper, dtype=torch.float64))


def halves() -> Iterator[torch.utils.data.TensorDataset]:
    """Give examples to train on, and others."""
    found = load_digits()
    images, labels = torch.tensor(found.data).float() / 16, torch.tensor(found.target)
    for start in (0, 1):
        yield torch.utils.data.TensorDataset(images[start::2], labels[start::2])


def main() -> None:
    """Train, and say what came out."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    torch.manual_seed(0)  # the noise has nothing to do with it
    seen, unseen = halves()
    plan = hs.DPSGD(examples=len(seen), batch_size=200, steps=60, noise_multiplier=1.0)
    plan = hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(EPSILON, DELTA)).plan
    module = Digits(seen, plan)
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", **dict.fromkeys(quiet, False))
    trainer.fit(module)
    with torch.no_grad():
        right = module.network(unseen.tensors[0]).argmax(1) == unseen.tensors[1]
    spent = trainer.callback_metrics["epsilon"]
    Console().print(f"accuracy {right.float().mean():.1%} at ({spent:.3f}, {DELTA:g})-DP")


if __name__ == "__main__":
    main()
