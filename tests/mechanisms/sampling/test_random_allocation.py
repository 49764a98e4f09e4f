"""Random allocation: its description."""

import pytest

import hockeystick as hs
from hockeystick.mechanisms import RandomAllocation

INNER = hs.Gaussian(1.0)


def test_other_noise_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(
        hs.errors.IncompatibleError, match=r"Gaussian noise only.*PoissonSubsampled"
    ):
        RandomAllocation(hs.Laplace(1.0), 10)


def test_a_sampled_gaussian_is_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="Gaussian noise only"):
        RandomAllocation(hs.PoissonSubsampled(INNER, 0.1), 10)


def test_replace_one_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="use add-remove or zero-out"):
        RandomAllocation(INNER, 10, adjacency="replace-one")
