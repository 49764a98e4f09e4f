"""Discrete noise on integers: that of the samplers, charged for the entries that may differ."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import Skellam
from hockeystick.release import discrete_gaussian, geometric, samplers, skellam
from tests.release.bits import none_left, seeded

ALL = [
    (discrete_gaussian, hs.DiscreteGaussian, samplers.discrete_gaussian),
    (geometric, hs.DiscreteLaplace, samplers.discrete_laplace),
    (skellam, Skellam, samplers.skellam),
]
every = pytest.mark.parametrize(("release", "kind", "sampler"), ALL)


@every
def test_noise_of_the_samplers_is_added(release: Any, kind: Any, sampler: Any) -> None:
    parameter, value = 7.25, np.arange(6).reshape(2, 3) * 10
    found = release(kind(parameter), value, bits=seeded(3))
    noise = sampler(parameter, 6, bits=seeded(3))
    assert found.dtype == np.int64
    assert found.tolist() == (value + noise.reshape(2, 3)).tolist()


@every
def test_a_float_below_the_decimal_that_it_prints_as_is_taken_as_that(
    release: Any, kind: Any, sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def noted(scale: Any, size: Any, **_: Any) -> Any:
        asked.append(scale)
        return np.zeros(size, np.int64)

    monkeypatch.setattr(f"hockeystick.release.samplers.{sampler.__name__}", noted)
    release(kind(0.3), 5)
    release(kind(0.1), 5)
    assert asked == [math.nextafter(0.3, 1.0), 0.1]


@every
def test_without_noise_the_integers_come_out(release: Any, kind: Any, sampler: Any) -> None:
    small, none = np.array([200], np.uint8), np.zeros((0, 2), np.int32)
    for value in (3, [1, 2], [[2**62, -(2**62)]], small, none):
        found = release(kind(0.0), value, bits=none_left)
        assert found.dtype == np.int64
        assert found.tolist() == np.asarray(value).tolist()
