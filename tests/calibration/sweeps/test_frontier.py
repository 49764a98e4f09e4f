import math
from typing import Any

import pytest

import hockeystick as hs

BASE = hs.DPSGD(noise_multiplier=1, examples=6000, batch_size=60, epochs=1)
TARGET = hs.ApproxDP(epsilon=3, delta=1e-5)


def test_each_plan_of_a_frontier_meets_the_budget_and_hardly_less_noise_does() -> None:
    points = hs.calibration.frontier(BASE, TARGET, epochs=[5, 20], batch_sizes=[120, 600])
    places = [(one.batch_size, one.epochs) for one in points]
    assert places == [(120, 5), (120, 20), (600, 5), (600, 20)]
    for one in points:
        assert one.plan is not None
        assert one.noise_multiplier is not None
        expected = hs.DPSGD(
            noise_multiplier=one.noise_multiplier,
            examples=6000,
            batch_size=one.batch_size,
            epochs=one.epochs,
        )
        assert one.plan == expected
        assert one.achieved == hs.epsilon(expected, 1e-5).upper <= 3
        less: Any = {"noise_multiplier": one.noise_multiplier * (1 - 1e-6)}
        worse = hs.DPSGD(**less, examples=6000, batch_size=one.batch_size, epochs=one.epochs)
        assert hs.epsilon(worse, 1e-5).lower > 3
        assert one.noise_on_mean == one.noise_multiplier / one.batch_size
        assert one.steps == math.ceil(one.epochs * 6000 / one.batch_size)
        assert one.reason == ""


def test_what_is_no_plan_has_its_reason() -> None:
    first, second = hs.calibration.frontier(BASE, TARGET, epochs=[5], batch_sizes=[7000, 60])
    assert (first.plan, first.noise_multiplier, first.noise_on_mean) == (None, None, None)
    assert (first.achieved, first.steps) == (None, None)
    assert "batch_size" in first.reason
    assert second.plan is not None


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(hs.errors.ParameterError, match="plan must be a DPSGD"):
        hs.calibration.frontier(hs.Gaussian(1), TARGET, epochs=[1], batch_sizes=[1])  # type: ignore[arg-type]  # what is refused
    with pytest.raises(
        hs.errors.ParameterError, match="epochs must be a sequence of at least one value"
    ):
        hs.calibration.frontier(BASE, TARGET, epochs=[], batch_sizes=[1])
