"""Multivariate Laplace noise as a description."""

import math
from typing import Any

import pytest

import hockeystick as hs


def test_it_says_what_it_is() -> None:
    noise = hs.mechanisms.MultivariateLaplace(scale=0.25, dimension=7)
    assert str(noise) == "multivariate Laplace (scale 0.25, dimension 7)"
    assert "0.25 times the query's L2 sensitivity" in noise.assumptions[0]
    assert noise.adjacency is None


@pytest.mark.parametrize(
    ("scale", "dimension", "name"),
    [
        (-1.0, 2, "scale"),
        (math.nan, 2, "scale"),
        (None, 2, "scale"),
        (1.0, 0, "dimension"),
        (1.0, 2.5, "dimension"),
        (1.0, math.inf, "dimension"),
        (1.0, True, "dimension"),
    ],
)
def test_wrong_values_are_named(scale: Any, dimension: Any, name: str) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        hs.mechanisms.MultivariateLaplace(scale, dimension)
    assert caught.value.name == name
