"""Poisson subsampling's description, and the adjacencies that it refuses."""

from typing import Any

import pytest

from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import (
    DPSGD,
    FixedSizeSubsampled,
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSubsampled,
    RevealedSample,
    TruncatedPoissonSubsampled,
)


def test_add_remove_is_the_default_and_the_text_of_an_adjacency_is_accepted() -> None:
    assert PoissonSubsampled(Gaussian(1), 0.1).adjacency is Adjacency.ADD_REMOVE
    assert PoissonSubsampled(Gaussian(1), 0.1, "zero-out").adjacency is Adjacency.ZERO_OUT


@pytest.mark.parametrize("adjacency", [Adjacency.REPLACE_ONE, "replace-one"])
def test_replace_one_is_for_gaussians_and_else_refused_with_the_way_out(adjacency: Any) -> None:
    assert PoissonSubsampled(Gaussian(1), 0.1, adjacency).adjacency is Adjacency.REPLACE_ONE
    with pytest.raises(IncompatibleError) as caught:
        PoissonSubsampled(Laplace(1), 0.1, adjacency)
    assert str(caught.value) == (
        "under replace-one, Poisson sampling is analysed for the Gaussian mechanism, not for "
        "Laplace (scale 1); use add-remove or zero-out"
    )


def test_an_inner_mechanism_of_another_adjacency_is_refused() -> None:
    inner = PoissonSubsampled(Gaussian(1), 0.1, "zero-out")
    with pytest.raises(IncompatibleError, match="is described under zero-out and cannot be acc"):
        PoissonSubsampled(inner, 0.1)
    with pytest.raises(IncompatibleError, match="is described under replace-one"):
        PoissonSubsampled(
            DPSGD(rate=1, steps=1, noise_multiplier=1, adjacency="replace-one"), 0.1, "zero-out"
        )
    assert PoissonSubsampled(inner, 0.2, "zero-out").inner == inner


@pytest.mark.parametrize(
    "inner",
    [
        FixedSizeSubsampled(Gaussian(1), 3, 10, "add-remove"),
        TruncatedPoissonSubsampled(Gaussian(1), 0.1, 3, 10),
        TruncatedPoissonSubsampled(
            FixedSizeSubsampled(Gaussian(1), 3, 10, "add-remove"), 0.1, 3, 9
        ),
    ],
    ids=str,
)
def test_a_batch_out_of_a_stated_number_is_not_drawn_from_a_random_sample(inner: Mechanism) -> None:
    # Out of fewer than 10 examples each would be drawn more often than is accounted for.
    with pytest.raises(IncompatibleError, match="described for a stated number of examples"):
        PoissonSubsampled(inner, 0.1, inner.adjacency or "add-remove")
    with pytest.raises(IncompatibleError, match="described for a stated number of examples"):
        RevealedSample(inner, 0.1)
