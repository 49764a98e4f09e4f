"""The descriptions of integer noise: discrete Laplace, discrete Gaussian and Skellam."""

from typing import Any

import pytest

from hockeystick.mechanisms import DiscreteGaussian, DiscreteLaplace, Skellam

each_kind = pytest.mark.parametrize(
    ("kind", "name"),
    [(DiscreteLaplace, "scale"), (DiscreteGaussian, "sigma"), (Skellam, "variance")],
)


@each_kind
def test_the_noise_fits_every_adjacency_and_says_what_it_rests_on(kind: Any, name: str) -> None:
    mechanism = kind(2.5, sensitivity=4)
    assert mechanism.adjacency is None
    (sentence,) = mechanism.assumptions
    assert f"({name} 2.5)" in sentence
    assert "at most 4 between" in sentence
