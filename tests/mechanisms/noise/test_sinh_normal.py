"""Sinh-normal noise: its description."""

import math

import pytest

from hockeystick.mechanisms import SinhNormal


@pytest.mark.parametrize(("rho", "width"), [(0.01, 10.0), (4.0, 0.5), (1e-300, 1e150)])
def test_the_ends_of_the_condition_are_allowed(rho: float, width: float) -> None:
    assert SinhNormal(rho, width).width == width


def test_without_noise_any_width_is_allowed() -> None:
    assert SinhNormal(math.inf, 1e-3).rho == math.inf


def test_for_a_group_the_noise_is_as_many_times_smaller() -> None:
    group = SinhNormal(0.1, 40.0).for_group(3)
    # The variance is 1/(2 rho) of a square, and the width a length.
    assert (group.rho, group.width) == pytest.approx((0.9, 40.0 / 3.0), rel=1e-15)
