"""Train on scikit-learn's handwritten digits at (3, 1e-4)-DP, in several processes.

    pip install 'hockeystick[torch]' scikit-learn
    torchrun --nproc_per_node=2 examples/train_ddp.py --checkpoint digits.pt

Data, network and plan are those of ``train_digits``. Each process computes the gradients of its
share of each batch. There is one batch, one noise and one count, as in a single process, and so
there is one guarantee. A run that was killed goes on from its checkpoint when it is started again,
in any number of processes.
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
from train_digits import CLIPPING_NORM, DELTA, LEARNING_RATE, accuracy, digits, network, planned

import hockeystick as hs
from hockeystick.adapters.torch import Counting, make_private


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
