"""The descriptions of integer noise: discrete Laplace, discrete Gaussian and Skellam."""

import math
from typing import Any

import numpy as np
import pytest

from hockeystick.errors import ParameterError
from hockeystick.mechanisms import DiscreteGaussian, DiscreteLaplace, Skellam

each_kind = pytest.mark.parametrize(
    ("kind", "name"),
    [(DiscreteLaplace, "scale"), (DiscreteGaussian, "sigma"), (Skellam, "variance")],
)


@each_kind
@pytest.mark.parametrize("value", [0, 1e-300, 1.1, math.inf, np.float32(2), np.int64(3)])
def test_the_noise_is_kept_as_a_float_and_the_sensitivity_as_an_int(
    kind: Any, name: str, value: Any
) -> None:
    mechanism = kind(value, sensitivity=np.int64(3))
    assert type(getattr(mechanism, name)) is float
    assert getattr(mechanism, name) == value
    assert type(mechanism.sensitivity) is int
    assert mechanism.sensitivity == 3
    assert kind(value).sensitivity == 1


@each_kind
@pytest.mark.parametrize("value", [-1, math.nan, -math.inf, True, "1.1", None, 1j])
def test_any_other_noise_is_refused_by_name(kind: Any, name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be a number >= 0 or inf; got "):
        kind(value)


@each_kind
@pytest.mark.parametrize("value", [0, -1, 1.5, math.nan, math.inf, True, "1", None])
def test_any_sensitivity_but_a_positive_integer_is_refused(
    kind: Any, name: str, value: Any
) -> None:
    del name
    with pytest.raises(ParameterError, match=r"^sensitivity must be an integer from 1 to 10\^15"):
        kind(1.0, value)


@each_kind
def test_the_noise_fits_every_adjacency_and_says_what_it_rests_on(kind: Any, name: str) -> None:
    mechanism = kind(2.5, sensitivity=4)
    assert mechanism.adjacency is None
    (sentence,) = mechanism.assumptions
    assert f"({name} 2.5)" in sentence
    assert "at most 4 between" in sentence


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        (DiscreteLaplace(5), "discrete Laplace (scale 5)"),
        (DiscreteGaussian(1 / 3, 2), "discrete Gaussian (sigma 0.333333, sensitivity 2)"),
        (Skellam(100, 1), "Skellam (variance 100)"),
    ],
)
def test_the_text_gives_the_noise_and_a_sensitivity_beyond_1(mechanism: Any, text: str) -> None:
    assert str(mechanism) == text
