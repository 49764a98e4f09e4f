"""Mechanisms of noise: their descriptions, their edges, and second moments."""

import math

import pytest

import hockeystick as hs
from hockeystick.mechanisms import SinhNormal, Staircase


def test_noise_in_units_of_the_radius_itself_costs_its_square_more() -> None:
    # Equation 1.9 of the thesis has R in the place of R^2: at R = 10 a tenth of the noise.
    meant, added = (hs.mechanisms.PrivateCovariance(noise, 30) for noise in (5.0, 0.5))
    assert hs.epsilon(meant, 1e-6).upper < 1
    assert hs.epsilon(added, 1e-6).lower > 10


def test_for_a_group_the_noise_is_as_many_times_smaller() -> None:
    group = SinhNormal(0.1, 40.0).for_group(3)
    # The variance is 1/(2 rho) of a square, and the width a length.
    assert (group.rho, group.width) == pytest.approx((0.9, 40.0 / 3.0), rel=1e-15)


@pytest.mark.parametrize("gamma", [None, 0.3, 0.5, 0.75, 1.0])
def test_epsilon_0_costs_nothing_and_it_is_never_more_than_epsilon(gamma: float | None) -> None:
    assert hs.delta(Staircase(0.0, gamma), 0.0).upper == 0.0
    assert hs.delta(Staircase(0.8, gamma), 0.8).upper < 1e-16
    assert hs.delta(Staircase(0.8, gamma), 0.801).upper == 0.0
    assert hs.delta(Staircase(0.8, gamma), 0.79).lower > 0.0
    assert hs.convert(Staircase(0.8, gamma), hs.PureDP).epsilon == pytest.approx(0.8)


# Uniform noise between -gamma and gamma: the outputs of two neighbours overlap by 2 gamma - 1.
@pytest.mark.parametrize(
    ("gamma", "shown"), [(None, 1.0), (0.3, 1.0), (0.5, 1.0), (0.625, 0.8), (1.0, 0.5)]
)
def test_with_epsilon_infinite_the_noise_is_uniform(gamma: float | None, shown: float) -> None:
    found = hs.delta(Staircase(math.inf, gamma), 3.0)
    assert found.lower <= shown <= found.upper
    assert found.relative_width < 1e-12
    twice = hs.delta(Staircase(math.inf, gamma) ** 2, 3.0)
    assert twice.lower <= 1 - (1 - shown) ** 2 <= twice.upper
