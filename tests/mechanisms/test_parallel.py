"""Parallel: what it takes, what it says, what it refuses."""

from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError


@pytest.mark.parametrize("parts", [(), 3, None, (hs.Gaussian(1), 2), "ab"])
def test_parts_that_are_no_mechanisms_are_refused(parts: Any) -> None:
    with pytest.raises(ParameterError, match=r"^parts"):
        hs.Parallel(parts)


@pytest.mark.parametrize("split", ["", None, 3])
def test_a_split_without_a_name_is_refused(split: Any) -> None:
    with pytest.raises(ParameterError, match=r"^split must be a name"):
        hs.Parallel((hs.Gaussian(1),), split)


def test_parts_under_different_adjacencies_are_refused() -> None:
    one = hs.PoissonSubsampled(hs.Gaussian(1), 0.1)
    other = hs.PoissonSubsampled(hs.Gaussian(1), 0.1, "zero-out")
    with pytest.raises(IncompatibleError, match=r"a split must be described under one .*zero-out"):
        hs.Parallel((one, other))


def test_the_adjacency_is_that_of_the_parts() -> None:
    sampled = hs.FixedSizeSubsampled(hs.Gaussian(1), 3, 10)
    assert hs.Parallel((hs.Gaussian(1), sampled)).adjacency is hs.Adjacency.REPLACE_ONE
    assert hs.Parallel((hs.Gaussian(1), hs.Laplace(1))).adjacency is None
