"""Digits split among clients, a linear model in numpy, and the arguments of a command.

The 1,797 images of scikit-learn's digits come with it; nothing is downloaded. Every fifth image is
held out to test on, which is part of the demonstration and not covered by any guarantee.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hockeystick.release.samplers import Bits, secret_bits

CLASSES = 10


@dataclass(frozen=True)
class Shards:
    """Training records by client, and test records that no client holds.

    Args:
        clients: The features and labels of each client; features have a last column of ones.
        features: Those of the test records.
        labels: Their labels.
    """

    clients: tuple[tuple[Any, Any], ...]
    features: Any
    labels: Any

    @property
    def records(self) -> int:
        """How many records there are in training."""
        return sum(len(labels) for _, labels in self.clients)


def digits(clients: int, split: str, seed: int = 0, each: int | None = None) -> Shards:
    """Return the digits split among clients, all with the same number of records.

    Args:
        clients: How many.
        split: "writer": consecutive images, which in this file are mostly of one writer; "label":
            each client has two blocks of the images sorted by label; "even": at random.
        seed: Of which blocks a client gets.
        each: How many records a client keeps; as many as there are for all where not given.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rows = np.hstack([images / 16.0, np.ones((len(images), 1))])
    tested = np.arange(len(rows)) % 5 == 4
    seen, known = rows[~tested], labels[~tested]
    order = _order(known, split, seed, clients)
    held = len(order) // clients
    parts = order[: held * clients].reshape(clients, held)[:, :each]
    shards = tuple((seen[part], known[part]) for part in parts)
    return Shards(shards, rows[tested], labels[tested])


def _order(labels: Any, split: str, seed: int, clients: int) -> Any:
    """Return the records in the order in which they are dealt out."""
    rng = np.random.default_rng(seed)
    if split == "writer":
        return np.arange(len(labels))
    if split == "even":
        return rng.permutation(len(labels))
    if split != "label":
        raise SystemExit(f"--split must be writer, label or even; got {split!r}")
    half = len(labels) // (2 * clients)
    blocks = np.argsort(labels, kind="stable")[: 2 * half * clients].reshape(2 * clients, half)
    return blocks[rng.permutation(2 * clients)].ravel()


def gradients(weights: Any, rows: Any, labels: Any) -> Any:
    """Return each record's gradient of the cross-entropy of a linear model, a row for each."""
    errors = probabilities(weights, rows)
    errors[np.arange(len(labels)), labels] -= 1.0
    return (errors[:, :, None] * rows[:, None, :]).reshape(len(labels), len(weights))


def probabilities(weights: Any, rows: Any) -> Any:
    """Return the model's probabilities of the classes."""
    scores = rows @ weights.reshape(CLASSES, -1).T
    scores -= scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    return shares / shares.sum(axis=1, keepdims=True)


def accuracy(weights: Any, rows: Any, labels: Any) -> float:
    """Return the share of records that a model reads rightly."""
    return float((probabilities(weights, rows).argmax(axis=1) == labels).mean())


def source(seed: int | None, *whose: int) -> Bits:
    """Return random words: the operating system's, or for a demonstration those of a seed.

    Whoever knows the seed knows the noise: a run with one can be repeated, and protects nobody.

    Args:
        seed: That of the run, or None.
        *whose: A client and its round, which have words of their own; none for the server, whose
            words are those of client 0 in round 0 too, as numpy fills seeds up with zeros.
    """
    return secret_bits if seed is None else np.random.PCG64([seed, *whose]).random_raw


def arguments(
    text: str | None, *splits: str, engines: Sequence[str] = ()
) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all systems share."""
    parser = argparse.ArgumentParser(description=(text or "").splitlines()[0])
    parser.add_argument(
        "--seed", type=int, default=0, help="of data and noise (for a repeatable run)"
    )
    parser.add_argument("--seeds", type=int, default=1, help="how many runs; medians are shown")
    if splits:
        parser.add_argument("--split", choices=splits, default=splits[0], help="of the digits")
    if engines:
        parser.add_argument("--engine", choices=engines, default=engines[0], help="of messages")
    return parser
