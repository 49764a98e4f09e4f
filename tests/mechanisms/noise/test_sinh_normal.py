"""Sinh-normal noise: its description."""

import math
from typing import Any

import pytest

from hockeystick.errors import ParameterError
from hockeystick.mechanisms import SinhNormal


def test_parameters_are_kept_as_floats() -> None:
    mechanism = SinhNormal(1, 2)
    assert (mechanism.rho, mechanism.width) == (1.0, 2.0)
    assert mechanism == SinhNormal(1.0, 2.0)
    assert hash(mechanism) == hash(SinhNormal(1.0, 2.0))
    assert mechanism.adjacency is None
    assert "rho 1, width 2" in mechanism.assumptions[0]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 40), "rho"),
        ((-0.1, 40), "rho"),
        ((math.nan, 40), "rho"),
        (("0.1", 40), "rho"),
        ((0.1, 0), "width"),
        ((0.1, -40), "width"),
        ((0.1, math.inf), "width"),
        ((0.1, math.nan), "width"),
        ((0.01, math.nextafter(10.0, 0.0)), "width"),
        ((math.nextafter(0.01, 0.0), 10), "width"),
        ((1e-300, 1e149), "width"),
    ],
)
def test_what_is_outside_its_domain_is_refused_by_name(arguments: Any, name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        SinhNormal(*arguments)
    assert caught.value.name == name


@pytest.mark.parametrize(("rho", "width"), [(0.01, 10.0), (4.0, 0.5), (1e-300, 1e150)])
def test_the_ends_of_the_condition_are_allowed(rho: float, width: float) -> None:
    assert SinhNormal(rho, width).width == width


def test_without_noise_any_width_is_allowed() -> None:
    assert SinhNormal(math.inf, 1e-3).rho == math.inf


def test_the_text_gives_rho_and_the_width() -> None:
    assert str(SinhNormal(0.1, 40)) == "sinh-normal (rho 0.1, width 40)"


def test_for_a_group_the_noise_is_as_many_times_smaller() -> None:
    group = SinhNormal(0.1, 40.0).for_group(3)
    # The variance is 1/(2 rho) of a square, and the width a length.
    assert (group.rho, group.width) == pytest.approx((0.9, 40.0 / 3.0), rel=1e-15)
