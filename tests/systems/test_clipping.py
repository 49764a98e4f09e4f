"""Clipping norms chosen in five ways: what one image moves, the noise, and what a grid costs."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")

SIZE, NOISE = 64, 2.0


@pytest.fixture(scope="module")
def example() -> Any:
    return program("clipping")


def updates(example: Any, columns: int, noise: Any = NOISE) -> Any:
    """Return each method's update with its first norm and its rate of change.

    AdaClip's first scale is ``v^(1/2) sqrt(d)`` in each of d coordinates, with a variance v of
    ``sqrt(h_1 h_2) = 1e-4``.
    """
    split = hs.calibration.joint_noise(noise, inflation=1.01)
    own = example.by_quantile(noise, 0.5).gradient_noise
    step = example.ADAM_STEP
    return {
        "online": (lambda: example.online(noise, 0.5), 0.1, 0.5, split.gradient),
        "fixed threshold": (lambda: example.fixed_threshold(noise, 0.5, 0.2), 0.2, 0.5, noise),
        "fixed quantile": (lambda: example.fixed_quantile(noise, 0.5, 0.5), 0.1, 0.5, own),
        "Adam without second moment": (
            lambda: example.adam_without_second_moment(noise, 0.2),
            0.2,
            step / (noise * 0.2 / SIZE),
            noise,
        ),
        "AdaClip": (lambda: example.by_coordinates(noise, 0.5), 0.01 * columns**0.5, 0.5, noise),
    }


METHODS = ("online", "fixed threshold", "fixed quantile", "Adam without second moment", "AdaClip")


def words(seed: int) -> Any:
    return np.random.PCG64(seed).random_raw


@pytest.mark.parametrize("method", METHODS)
def test_one_image_moves_an_update_by_the_norm_and_no_more(example: Any, method: Any) -> None:
    """The same noise with the first image and without it."""
    data = example.digits()
    weights = np.zeros(10 * data.rows.shape[1])
    rows = program("one_budget").gradients(weights, data.rows[:5], data.labels[:5])
    build, norm, rate, _ = updates(example, rows.shape[1])[method]
    assert (np.linalg.norm(rows, axis=1) > norm).all()
    pair = [build()(one, SIZE, words(1)) for one in (rows, rows[1:])]
    moved = float(np.linalg.norm(pair[0] - pair[1])) * SIZE / rate
    assert norm * (1 - 1e-4) < moved <= norm * (1 + 1e-12)
