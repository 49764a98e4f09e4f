"""What the systems without a server share: their records and repeatable noise.

Noise from a seed is for demonstrations: leave out ``bits=`` where something is released.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from hockeystick.release.samplers import Bits


def seeded(seed: int) -> Bits:
    """Return a source of pseudo-random words, so that a run can be repeated."""
    generator = np.random.default_rng(seed)
    return lambda count: generator.integers(2**64, size=count, dtype=np.uint64)


def arguments(description: str | None) -> argparse.Namespace:
    """Return what the command line says: a seed."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="of the data and of the noise")
    return parser.parse_args()


@dataclass(frozen=True)
class Records:
    """Rows of norm 1 times their label, 1 or -1: what a logistic loss needs to know.

    Args:
        train: Those to train on.
        test: Those to test on.
    """

    train: Any
    test: Any

    def accuracy(self, model: Any) -> float:
        """Return the share of test records on the right side of a linear model."""
        return float(np.mean(self.test @ model > 0))


def digits(seed: int) -> Records:
    """Return scikit-learn's digits, even against odd, in a random order.

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
    return Records(signed[order[:cut]], signed[order[cut:]])


def logistic_gradient(model: Any, rows: Any) -> Any:
    """Return the gradient of the mean of ``ln(1 + exp(-row w))``: convex and 1/4-smooth."""
    return -(rows / (1.0 + np.exp(rows @ model))[:, None]).mean(axis=0)
