"""Train on scikit-learn's handwritten digits at (3, 1e-4)-DP, in a loop of JAX.

    pip install 'hockeystick[jax]' scikit-learn
    python examples/train_jax.py

JAX computes a gradient of each image alone; which images a step uses, what it costs, and the sum
with noise are ``hockeystick.adapters.loop``'s. A batch is padded to a length that the plan gives,
so that JAX compiles once; the rows that are padding are dropped before the sum.
"""

from __future__ import annotations

import argparse
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from rich.console import Console

import hockeystick as hs
from hockeystick.adapters.loop import Account, Sampler, noisy_sum

EPSILON, DELTA = 3.0, 1e-4
BATCH_SIZE, EPOCHS, CLIPPING_NORM, LEARNING_RATE = 512, 30, 0.5, 4.0


def digits() -> Any:
    """Return images and labels to train on, and others."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    return train_test_split(images / 16.0, labels, test_size=0.2, stratify=labels, random_state=0)


def planned(examples: int) -> hs.DPSGD:
    """Return a plan with the least noise that meets the budget."""
    plan = hs.DPSGD(examples=examples, batch_size=BATCH_SIZE, epochs=EPOCHS, noise_multiplier=1.0)
    budget = hs.ApproxDP(epsilon=EPSILON, delta=DELTA)
    found = hs.calibrate(plan, "noise_multiplier", budget).plan
    assert isinstance(found, hs.DPSGD)
    return found


def network() -> dict[str, Any]:
    """Return the weights of a small network."""
    first, second = jax.random.split(jax.random.key(0))
    return {
        "hidden": 0.1 * jax.random.normal(first, (64, 32)),
        "out": 0.1 * jax.random.normal(second, (32, 10)),
    }


def scores(weights: dict[str, Any], image: Any) -> Any:
    """Return a score for each digit."""
    return jnp.tanh(image @ weights["hidden"]) @ weights["out"]


def loss(weights: dict[str, Any], image: Any, label: Any) -> Any:
    """Return the cross-entropy of one image."""
    return -jax.nn.log_softmax(scores(weights, image))[label]


@jax.jit
def gradients(weights: dict[str, Any], images: Any, labels: Any) -> Any:
    """Return each image's gradient as a row."""
    each = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(weights, images, labels)
    return jax.vmap(lambda one: ravel_pytree(one)[0])(each)


def train(
    weights: dict[str, Any], images: Any, labels: Any, plan: hs.DPSGD
) -> tuple[dict[str, Any], hs.Certified]:
    """Return weights that were trained by a plan, and what that costs."""
    sampler, account = Sampler(plan, len(images)), Account(plan)
    flat, restored = ravel_pytree(weights)
    for step in range(account.limit):
        drawn = sampler.draw(step)
        length = -(-max(len(drawn), 1) // BATCH_SIZE) * BATCH_SIZE
        padded = np.resize(drawn, length) if len(drawn) else np.zeros(length, dtype=np.int64)
        rows = np.asarray(gradients(restored(flat), images[padded], labels[padded]))
        account.count()
        total = noisy_sum(
            rows[: len(drawn)],
            norm=CLIPPING_NORM,
            noise_multiplier=float(plan.noise_multipliers[step]),
        )
        flat = flat - LEARNING_RATE * jnp.asarray(total / sampler.expected(step), flat.dtype)
    return restored(flat), hs.epsilon(account.released, DELTA)


def accuracy(weights: dict[str, Any], images: Any, labels: Any) -> float:
    """Return the share of images that are read rightly."""
    return float((jnp.argmax(scores(weights, jnp.asarray(images)), axis=1) == labels).mean())


def main() -> None:
    """Train, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    console = Console()
    seen, unseen, seen_labels, unseen_labels = digits()
    plan = planned(len(seen))
    console.print(f"noise multiplier {plan.noise_multiplier:.4f}, {plan.total_steps} steps")
    weights, spent = train(network(), seen, seen_labels, plan)
    share = accuracy(weights, unseen, unseen_labels)
    console.print(f"accuracy {share:.1%} at ({spent:.3f}, {DELTA:g})-DP")


if __name__ == "__main__":
    main()
