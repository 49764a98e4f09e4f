"""Discrete noise on integers: that of the samplers, charged for the entries that may differ."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

import hockeystick as hs
from hockeystick.errors import ParameterError
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
def test_all_entries_that_may_differ_are_charged(
    release: Any, kind: Any, sampler: Any, name: Any
) -> None:
    account = hs.Accountant()
    release(kind(5.0), [1, 2, 3], entries=2, charge=account)
    release(kind(6.0), 1, charge=account)
    assert account.plan == kind(5.0) ** 2 @ kind(6.0)


@every
def test_without_noise_the_integers_come_out(
    release: Any, kind: Any, sampler: Any, name: Any
) -> None:
    small, none = np.array([200], np.uint8), np.zeros((0, 2), np.int32)
    for value in (3, [1, 2], [[2**62, -(2**62)]], small, none):
        found = release(kind(0.0), value, bits=none_left)
        assert found.dtype == np.int64
        assert found.tolist() == np.asarray(value).tolist()


@every
def test_a_refused_charge_draws_nothing(release: Any, kind: Any, sampler: Any, name: Any) -> None:
    spending = hs.calibration.Filter(hs.ZCDP(1e-6))
    # a filter of rho knows nothing of Skellam noise, and refuses it in other words
    with pytest.raises((hs.errors.BudgetExhausted, hs.errors.IncompatibleError)):
        release(kind(2.0), 1, charge=spending, bits=none_left)
    assert len(spending) == 0


@every
@pytest.mark.parametrize(
    ("wrong", "arguments"),
    [
        ("value", {"value": 1.5}),
        ("value", {"value": 3.0}),
        ("value", {"value": [1, float("nan")]}),
        ("value", {"value": True}),
        ("value", {"value": 2**62 + 1}),
        ("value", {"value": [-(2**62) - 1]}),
        ("value", {"value": np.uint64(2**63)}),
        ("value", {"value": [[1], [2, 3]]}),
        ("value", {"value": None}),
        ("entries", {"entries": 0}),
        ("entries", {"entries": 1.5}),
        ("mechanism", {"mechanism": hs.Gaussian(1)}),
        ("charge", {"charge": 7}),
    ],
)
def test_bad_arguments_are_named(
    release: Any, kind: Any, sampler: Any, name: Any, wrong: Any, arguments: Any
) -> None:
    account = hs.Accountant()
    given = {"mechanism": kind(2.0), "value": 1, "charge": account, "bits": none_left, **arguments}
    mechanism, value = given.pop("mechanism"), given.pop("value")
    with pytest.raises(ParameterError, match=f"^{wrong} must be"):
        release(mechanism, value, **given)
    assert len(account) == 0


@every
@pytest.mark.parametrize("parameter", [math.inf, 2.0**45])
def test_noise_that_cannot_be_drawn_is_refused_before_the_charge(
    release: Any, kind: Any, sampler: Any, name: Any, parameter: Any
) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        release(kind(parameter), 1, charge=account, bits=none_left)
    assert len(account) == 0
