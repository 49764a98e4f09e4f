"""Figures of the literature on noisy gradient descent of which the last model is released."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs

# Bok, Su and Altschuler 2024: images of norm 8 with a constant 1, clipped gradients of norm 5.
SQUARE, NORM, STEP_SIZE = 65.0, 5.0, 0.05
MNIST: dict[str, Any] = {
    "examples": 60_000,
    "batch_size": 1500,
    "step_size": STEP_SIZE,
    "smoothness": SQUARE / 2 + 0.004,
}


def run(strength: float, epochs: int) -> hs.Mechanism:
    return hs.mechanisms.LastIterate(3.0, 40 * epochs, convexity=strength, **MNIST)


@pytest.mark.parametrize(
    ("strength", "epochs", "here", "renyi"),
    [
        (0.002, 50, 4.34, 5.82),
        (0.002, 100, 5.60, 7.61),
        (0.002, 200, 7.58, 9.88),
        (0.004, 50, 4.32, 5.61),
        (0.004, 100, 5.51, 7.00),
        (0.004, 200, 7.09, 8.38),
    ],
)
def test_logistic_regression_in_cycles_beside_renyi_divergences(
    strength: float, epochs: int, here: float, renyi: float
) -> None:
    found = hs.epsilon(run(strength, epochs), 1e-5)
    assert round(found.lower, 2) == round(found.upper, 2) == here
    c, n = 1 - STEP_SIZE * strength, 40
    rest = c ** (n - 2) * (1 - c**2) / (1 - c**n) ** 2 * (1 - c ** (n * (epochs - 1)))
    known = hs.epsilon(hs.ZCDP((2 / 3) ** 2 / 2 * (1 + rest)), 1e-5).upper
    assert round(known, 2) == renyi
    assert found.upper < known < hs.epsilon(hs.Gaussian(1.5) ** epochs, 1e-5).lower


def test_a_step_with_clipped_softmax_gradients_may_drive_models_apart() -> None:
    # One image in all places of the batch: its ten scores move along themselves.
    def step(scores: Any) -> Any:
        shares = np.exp(scores - scores.max())
        error = shares / shares.sum() - np.eye(10)[0]
        clipped = error * min(1.0, NORM / (math.sqrt(SQUARE) * float(np.linalg.norm(error))))
        return (1 - STEP_SIZE * 0.002) * scores - STEP_SIZE * SQUARE * clipped

    scores = np.log([15.8, 3.1, 2.9, 1.6, 2.5, 3.2, 3.3, 59.6, 2.6, 5.3])
    columns = [(step(scores + 1e-4 * e) - step(scores - 1e-4 * e)) / 2e-4 for e in np.eye(10)]
    worst = 0.05 * np.linalg.svd(np.array(columns).T)[2][0]
    apart = np.linalg.norm(step(scores + worst) - step(scores - worst))
    assert apart > 1.02 * np.linalg.norm(2 * worst)
