"""The window holds all but as much of the sum as was asked for."""

import math

import numpy as np
import pytest

from hockeystick.accountants.prv._discretise import TiltedMasses
from hockeystick.accountants.prv._window import _coarsen, window


def rough(points: int, seed: int) -> TiltedMasses:
    """Return rough masses with gaps."""
    rng = np.random.default_rng(seed)
    weight = rng.random(points) ** 8 * (rng.random(points) < 0.7)
    weight[points // 2] += 1.0
    return TiltedMasses(0.1, -points // 3, weight / weight.sum(), 0.0, 0.0, np.zeros(0), 0.0, 0.0)


@pytest.mark.parametrize("points", [1, 2, 3, 255, 256, 257, 1000, 4097])
def test_knots_keep_the_mass_and_the_mean_and_widen(points: int) -> None:
    one, step = rough(points, points), 0.01
    at, weight = _coarsen(one, step, 256)
    own = one.offset + step * (one.first + np.arange(points))
    assert weight.sum() == pytest.approx(1.0, rel=1e-13)
    assert (weight * at).sum() == pytest.approx((one.weight * own).sum(), rel=1e-12, abs=1e-14)
    for s in (-8.0, -1.0, 2.0, 10.0):
        assert (weight * np.exp(s * at)).sum() >= (one.weight * np.exp(s * own)).sum() * (1 - 1e-13)


@pytest.mark.parametrize("count", [1, 4, 40])
@pytest.mark.parametrize("log_outside", [-2.0, -12.0])
def test_no_more_than_asked_lies_outside(count: int, log_outside: float) -> None:
    one, other, step = rough(90, 1), rough(1500, 2), 0.01
    found = window([(one, count), (other, 2)], step, log_outside)
    total = np.ones(1)
    for weights, times in ((one, count), (other, 2)):
        for _ in range(times):
            total = np.convolve(total, weights.weight)
    first = count * one.first + 2 * other.first
    at = (count + 2) * 0.1 + step * (first + np.arange(total.size))
    outside = total[(at < found.low - 1e-9) | (at > found.high + 1e-9)].sum()
    assert outside <= found.outside * (1 + 1e-9) + 1e-15
    assert found.outside <= 2.0 * math.exp(log_outside) * (1.0 + 1e-5)


def test_a_window_is_no_wider_than_the_sum() -> None:
    one = rough(90, 1)
    found = window([(one, 2)], 0.01, -60.0)
    kept = np.flatnonzero(one.weight)
    assert found.low == pytest.approx(2 * (0.1 + 0.01 * (one.first + kept[0])))
    assert found.high == pytest.approx(2 * (0.1 + 0.01 * (one.first + kept[-1])))
    assert found.outside == 0.0
