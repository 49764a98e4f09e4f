"""Clipping norms chosen in five ways: what one image moves, the noise, and what a grid costs."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

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


@pytest.mark.parametrize("method", METHODS)
def test_the_noise_of_an_update_is_what_its_plan_leaves_it(example: Any, method: Any) -> None:
    build, norm, rate, noise = updates(example, 4000)[method]
    drawn = build()(np.zeros((0, 4000)), SIZE, words(2)) * SIZE / rate / (norm * noise)
    assert 1e-6 < stats.chi2.sf(float((drawn**2).sum()), 4000) < 1 - 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_a_grid_runs_as_it_is_accounted(example: Any, method: Any) -> None:
    found = example.run(3, method=method, steps=2)
    assert set(found.checks) == {"steps", "budget", "joint noise", "batches"}
    assert all(found.checks.values())
    assert found.epsilon == pytest.approx(3.0, rel=1e-3)


def test_adaclip_scales_each_coordinate_by_what_was_released_and_costs_the_same(
    example: Any,
) -> None:
    """After some steps scales differ, and one image moves the scaled sum by 1 and no more."""
    data, weights = example.digits(), np.zeros(10 * 65)
    rows = program("one_budget").gradients(weights, data.rows[:SIZE], data.labels[:SIZE])
    clipping = example.of_coordinates(0.01, 650)
    for seed in range(0, SIZE, 4):
        _, clipping = clipping.step(rows[seed : seed + 4], expected=4, bits=words(seed))
    assert clipping.scale.max() > 1.3 * clipping.scale.min()
    pair = [clipping.step(one, expected=SIZE, bits=words(1))[0] for one in (rows, rows[1:])]
    moved = np.linalg.norm((pair[0] - pair[1]) / clipping.scale) * SIZE
    assert 1 - 1e-3 < moved <= 1 + 1e-9
    assert str(clipping.mechanism) == "Gaussian (noise multiplier 0.01)"


def test_noise_for_another_query_than_accounted_is_seen(
    example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the thesis's line 13: the gradients' noise on the sum of directions."""
    right = example.by_descent

    def as_printed(noise: float, rate: float) -> Any:
        found = right(noise, rate)
        return replace_noise(found, found.gradient_noise)

    monkeypatch.setattr(example, "by_descent", as_printed)
    assert not example.run(3, method="online", steps=2).checks["joint noise"]


def replace_noise(clipping: Any, noise: float) -> Any:
    """Return an online clipping with other noise on the sum of directions."""
    return hs.release.OnlineClipping(
        clipping.norm, clipping.learning_rate, clipping.gradient_noise, noise
    )
