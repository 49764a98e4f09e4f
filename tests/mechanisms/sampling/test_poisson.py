"""Poisson subsampling's description, and the adjacencies that it refuses."""

import math
from typing import Any

import numpy as np
import pytest

from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
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


@pytest.mark.parametrize("rate", [0, 5e-324, 0.5, np.float64(0.25), 1])
def test_the_rate_is_kept_as_a_python_float(rate: Any) -> None:
    mechanism = PoissonSubsampled(Gaussian(1), rate)
    assert type(mechanism.rate) is float
    assert mechanism.rate == rate


@pytest.mark.parametrize("rate", [-0.1, math.nextafter(1, 2), math.nan, "0.1", True, None, 1j])
def test_any_other_rate_is_refused(rate: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        PoissonSubsampled(Gaussian(1), rate)
    told, _, _ = str(caught.value).partition(" (write ")
    assert told == f"rate must be a number from 0 to 1; got {rate!r}"


@pytest.mark.parametrize("inner", [1.1, None, "Gaussian", Gaussian])
def test_what_is_sampled_must_be_a_mechanism(inner: Any) -> None:
    with pytest.raises(
        ParameterError,
        match=r"^inner must be a mechanism(; got | \(that is a class: call it, Gaussian)",
    ):
        PoissonSubsampled(inner, 0.1)


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


def test_an_unknown_adjacency_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^adjacency must be one of 'add-remove', "):
        PoissonSubsampled(Gaussian(1), 0.1, "neighbours")


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


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        (
            PoissonSubsampled(Gaussian(1.1), 256 / 60_000),
            "Poisson-subsampled Gaussian (noise multiplier 1.1, rate 0.00426667)",
        ),
        (
            PoissonSubsampled(Gaussian(2), 1e-6, "zero-out"),
            "Poisson-subsampled Gaussian (noise multiplier 2, rate 1e-06, zero-out)",
        ),
        (
            PoissonSubsampled(Gaussian(1) @ Gaussian(2), 0.5),
            "Poisson-subsampled [Gaussian (noise multiplier 1) and Gaussian (noise multiplier 2)] "
            "(rate 0.5)",
        ),
        (
            PoissonSubsampled(Gaussian(1) ** 3, 0.5),
            "Poisson-subsampled [Gaussian (noise multiplier 1) x 3] (rate 0.5)",
        ),
        (
            PoissonSubsampled(PoissonSubsampled(Gaussian(1), 0.5), 0.25),
            "Poisson-subsampled Poisson-subsampled Gaussian "
            "(noise multiplier 1, rate 0.5, rate 0.25)",
        ),
    ],
)
def test_the_text_gives_the_inner_mechanism_and_the_sampling(mechanism: Any, text: Any) -> None:
    assert str(mechanism) == text
