"""Multivariate Laplace noise on vectors: on a grid, for the distance that rounding may add."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import BudgetExhausted, ParameterError
from hockeystick.release import multivariate_laplace
from hockeystick.release.samplers import rounded_multivariate_laplace
from tests.release.bits import none_left, seeded

STEP = 2.0**-20  # the grid of few numbers with sensitivity 1
NOISE = hs.mechanisms.MultivariateLaplace(1.5, dimension=5)


def test_what_comes_out_is_the_rounded_value_plus_rounded_noise_of_the_right_scale() -> None:
    """Five numbers, each rounded by half a step, are moved by at most ceil(sqrt(5)) = 3 steps."""
    value = np.array([3.25, -1.0, math.pi, 1e6 / 3, 0.0])
    for seed in range(5):
        found = multivariate_laplace(NOISE, value, 1, bits=seeded(seed))
        drawn = rounded_multivariate_laplace(1.5 * (2**20 + 3), 5, bits=seeded(seed))
        steps = [round(Fraction(one) / Fraction(STEP)) for one in value.tolist()]
        assert (found / STEP).tolist() == [a + b for a, b in zip(steps, drawn, strict=True)]


def test_noise_grows_with_the_sensitivity() -> None:
    small, large = (
        multivariate_laplace(NOISE, np.zeros(5), size, bits=seeded(1)) for size in (1.0, 8.0)
    )
    assert large == pytest.approx(small * 8, rel=1e-9)


def test_it_is_charged_before_the_noise_is_drawn() -> None:
    account = hs.Accountant()
    multivariate_laplace(NOISE, np.zeros(5), 1, charge=account)
    assert account.plan == NOISE
    full = hs.calibration.Filter(hs.PureDP(0.1))
    with pytest.raises(BudgetExhausted):
        multivariate_laplace(NOISE, np.zeros(5), 1, charge=full, bits=none_left)


def test_without_noise_it_is_the_vector_itself() -> None:
    silent = hs.mechanisms.MultivariateLaplace(0.0, dimension=2)
    assert multivariate_laplace(silent, [0.1, 0.2], 1, bits=none_left).tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    ("mechanism", "value", "sensitivity", "told"),
    [
        (NOISE, np.zeros(4), 1.0, "value must be a vector of 5 numbers"),
        (NOISE, np.zeros((5, 1)), 1.0, "value"),
        (NOISE, [math.nan] * 5, 1.0, "value"),
        (NOISE, np.zeros(5), 0.0, "sensitivity"),
        (hs.mechanisms.MultivariateLaplace(math.inf, 5), np.zeros(5), 1.0, "scale must be finite"),
        (hs.Laplace(1.0), np.zeros(5), 1.0, "mechanism"),
    ],
)
def test_bad_arguments_are_told_and_nothing_is_charged(
    mechanism: Any, value: Any, sensitivity: Any, told: str
) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError, match=told):
        multivariate_laplace(mechanism, value, sensitivity, charge=account, bits=none_left)
    assert hs.epsilon(account.plan, 1e-6).upper == 0
