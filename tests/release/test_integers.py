"""Discrete noise on integers: that of the samplers, charged for the entries that may differ."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

import hockeystick as hs
from hockeystick.mechanisms import Skellam
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import discrete_gaussian, geometric, samplers, skellam
from tests.release.bits import none_left, seeded

ALL = [
    (discrete_gaussian, hs.DiscreteGaussian, samplers.discrete_gaussian, "sigma"),
    (geometric, hs.DiscreteLaplace, samplers.discrete_laplace, "scale"),
    (skellam, Skellam, samplers.skellam, "variance"),
]
every = pytest.mark.parametrize(("release", "kind", "sampler", "name"), ALL)


@every
@pytest.mark.parametrize("parameter", [0.5, 7.25, 100.0])
def test_noise_of_the_samplers_is_added(
    release: Any, kind: Any, sampler: Any, name: Any, parameter: Any
) -> None:
    value = np.arange(6).reshape(2, 3) * 10
    found = release(kind(parameter), value, bits=seeded(3))
    noise = sampler(parameter, 6, bits=seeded(3))
    assert found.dtype == np.int64
    assert found.tolist() == (value + noise.reshape(2, 3)).tolist()


@every
def test_a_float_below_the_decimal_that_it_prints_as_is_taken_as_that(
    release: Any, kind: Any, sampler: Any, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def noted(scale: Any, size: Any, **_: Any) -> Any:
        asked.append(scale)
        return np.zeros(size, np.int64)

    monkeypatch.setattr(f"hockeystick.release.samplers.{sampler.__name__}", noted)
    release(kind(0.3), 5)
    release(kind(0.1), 5)
    assert asked == [math.nextafter(0.3, 1.0), 0.1]


@pytest.mark.parametrize(
    ("release", "mechanism", "probability"),
    [
        (geometric, hs.DiscreteLaplace(3.0, sensitivity=2), lambda k: mp.exp(-abs(k) / mp.mpf(3))),
        (discrete_gaussian, hs.DiscreteGaussian(3.0), lambda k: mp.exp(-mp.mpf(k * k) / 18)),
        (skellam, Skellam(9.0), lambda k: special.ive(k, 9.0)),
    ],
)
def test_frequencies_are_those_of_the_mechanism(
    release: Any, mechanism: Any, probability: Any, chi_square: Any
) -> None:
    total = mp.fsum(probability(k) for k in range(-100, 101))
    drawn = release(mechanism, np.full(200_000, 40), bits=seeded(8)) - 40
    assert chi_square(drawn, lambda k: float(probability(k) / total)) > 1e-6


@every
def test_without_noise_the_integers_come_out(
    release: Any, kind: Any, sampler: Any, name: Any
) -> None:
    small, none = np.array([200], np.uint8), np.zeros((0, 2), np.int32)
    for value in (3, [1, 2], [[2**62, -(2**62)]], small, none):
        found = release(kind(0.0), value, bits=none_left)
        assert found.dtype == np.int64
        assert found.tolist() == np.asarray(value).tolist()
