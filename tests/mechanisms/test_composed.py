"""Compositions, repetitions and splits: what is flattened, multiplied and refused."""

from collections import Counter
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import DPSGD, MECHANISMS, Composed, Gaussian, PoissonSubsampled

A, B, C = Gaussian(1), Gaussian(2), PoissonSubsampled(Gaussian(3), 0.1)
ZERO_OUT = PoissonSubsampled(Gaussian(3), 0.1, "zero-out")
REPLACE_ONE = DPSGD(rate=1, steps=1, noise_multiplier=1, adjacency="replace-one")


def test_composition_is_associative_because_it_is_flattened() -> None:
    assert (A @ B) @ C == A @ (B @ C) == Composed((A, B, C))
    assert ((A @ B) @ (B @ C)).parts == (A, B, B, C)


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [
        (A @ B, None),
        (A @ C, Adjacency.ADD_REMOVE),
        (C @ A, Adjacency.ADD_REMOVE),
        (A @ ZERO_OUT**2, Adjacency.ZERO_OUT),
        (REPLACE_ONE @ A, Adjacency.REPLACE_ONE),
        (A**2, None),
        (C**0, Adjacency.ADD_REMOVE),
    ],
    ids=str,
)
def test_the_adjacency_is_the_one_that_the_parts_name(mechanism: Any, adjacency: Any) -> None:
    assert mechanism.adjacency is adjacency


@pytest.mark.parametrize("other", [ZERO_OUT, ZERO_OUT**2, REPLACE_ONE, A @ ZERO_OUT], ids=str)
def test_parts_of_two_adjacencies_are_refused_and_named(other: Any) -> None:
    with pytest.raises(IncompatibleError) as caught:
        C @ A @ other
    message = str(caught.value)
    assert message.startswith("the parts of a composition must be described under one adjacency")
    assert f"add-remove: {C}; {other.adjacency}: " in message


def test_a_product_of_counts_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^count must be .*; got 1000000000000000000$"):
        (A**10**9) ** 10**9


def test_every_mechanism_is_listed_once_in_its_family() -> None:
    lines = hs.mechanisms.index().splitlines()
    named = Counter(line.strip().partition(":")[0] for line in lines if line.startswith("  "))
    assert named == Counter(list(MECHANISMS))
    assert lines.index("Training") < lines.index("Federated training")
    training = lines[lines.index("Training") :]
    assert any(line.startswith("  DPSGD: ") for line in training[: training.index("")])
