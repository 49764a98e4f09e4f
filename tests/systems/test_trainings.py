"""What one image moves in trainings at one budget, and that a check can fail."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.mechanisms import SinhNormal
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


SIZE, NOISE = 64, 2.0


def updates(clipping: Any, columns: int, noise: Any = NOISE) -> Any:
    """Return each method's update with its first norm and its rate of change.

    AdaClip's first scale is ``v^(1/2) sqrt(d)`` in each of d coordinates, with a variance v of
    ``sqrt(h_1 h_2) = 1e-4``.
    """
    split = hs.calibration.joint_noise(noise, inflation=1.01)
    own = clipping.by_quantile(noise, 0.5).gradient_noise
    step = clipping.ADAM_STEP
    return {
        "online": (lambda: clipping.online(noise, 0.5), 0.1, 0.5, split.gradient),
        "fixed threshold": (lambda: clipping.fixed_threshold(noise, 0.5, 0.2), 0.2, 0.5, noise),
        "fixed quantile": (lambda: clipping.fixed_quantile(noise, 0.5, 0.5), 0.1, 0.5, own),
        "Adam without second moment": (
            lambda: clipping.adam_without_second_moment(noise, 0.2),
            0.2,
            step / (noise * 0.2 / SIZE),
            noise,
        ),
        "AdaClip": (lambda: clipping.by_coordinates(noise, 0.5), 0.01 * columns**0.5, 0.5, noise),
    }


CLIPPINGS = ("online", "fixed threshold", "fixed quantile", "Adam without second moment", "AdaClip")


def words(seed: int) -> Any:
    return np.random.PCG64(seed).random_raw


@pytest.mark.parametrize("method", CLIPPINGS)
def test_one_image_moves_an_update_by_the_norm_and_no_more(method: Any) -> None:
    """The same noise with the first image and without it."""
    clipping = program("clipping")
    data = clipping.digits()
    weights = np.zeros(10 * data.rows.shape[1])
    rows = program("digits").gradients(weights, data.rows[:5], data.labels[:5])
    build, norm, rate, _ = updates(clipping, rows.shape[1])[method]
    assert (np.linalg.norm(rows, axis=1) > norm).all()
    pair = [build()(one, SIZE, words(1)) for one in (rows, rows[1:])]
    moved = float(np.linalg.norm(pair[0] - pair[1])) * SIZE / rate
    assert norm * (1 - 1e-4) < moved <= norm * (1 + 1e-12)


def test_one_image_moves_a_score_by_one_and_its_noise_is_what_is_charged() -> None:
    """The same noise with the first image and without it; with weights that read it rightly."""
    tuning = program("tuning")
    data = tuning.digits()
    weights = np.zeros((10, 65))
    weights[data.labels[0], -1] = 1.0
    fewer = replace(data, rows=data.rows[1:], labels=data.labels[1:])
    pair = [tuning.noisy_score(weights, one, words(3)) for one in (data, fewer)]
    assert pair[0] - pair[1] == pytest.approx(1.0)
    none = replace(data, rows=data.rows[:0], labels=data.labels[:0])
    bits = words(4)
    drawn = np.array([tuning.noisy_score(weights, none, bits) for _ in range(1000)]) / 20
    assert 1e-6 < stats.chi2.sf(float((drawn**2).sum()), 1000) < 1 - 1e-6
    assert tuning.SCORE == hs.Gaussian(noise_multiplier=20)


@pytest.mark.parametrize("name", ["charge", "budget", "deviation"])
def test_a_mean_that_is_not_as_accounted_is_seen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged as the number's own noise; of twice the rho; drawn with less noise."""
    noisy = program("sinh_normal")
    right = noisy.released

    def released(noise: Any, total: Any, charge: Any, bits: Any) -> Any:
        if name == "charge":
            charge.step(noise)
            return right(noise, total, None, bits)
        if name == "budget":
            return right(SinhNormal(2 * noise.rho, noise.width), total, charge, bits)
        charge.step(noisy.account(noise))
        return right(SinhNormal(16 * noise.rho, noise.width), total, None, bits)

    monkeypatch.setattr(noisy, "released", released)
    assert not noisy.run(1, width=40.0).checks[name]
