"""The description of a selection of partitions."""

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import ParameterError

PartitionSelection = hs.mechanisms.PartitionSelection


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("noise", {"noise": hs.Exponential(1.0)}),
        ("noise", {"noise": hs.Gaussian(2.0) ** 2}),
        ("noise", {"noise": hs.DiscreteGaussian(2.0, sensitivity=2)}),
        ("noise", {"noise": hs.DiscreteLaplace(2.0, sensitivity=3)}),
        ("noise", {"noise": 2.0}),
        ("threshold", {"threshold": -1}),
        ("threshold", {"threshold": math.inf}),
        ("threshold", {"threshold": "5"}),
        ("partitions", {"partitions": 0}),
        ("partitions", {"partitions": 1.5}),
        ("adjacency", {"adjacency": "replace"}),
    ],
)
def test_parameters_are_refused_by_name(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as caught:
        PartitionSelection(**{"noise": hs.Gaussian(3.0), "threshold": 9, **given})
    assert caught.value.name == name


def test_the_assumptions_name_the_numbers() -> None:
    said = PartitionSelection(hs.Laplace(2.5), 31.5, 7, "replace-one")
    text = " ".join(said.assumptions)
    assert "at most 7 partitions" in text
    assert "Laplace (scale 2.5), is compared with 31.5" in text
    assert "A partition that no user has is never released." in text
    assert said.adjacency is hs.Adjacency.REPLACE_ONE
    assert str(said).endswith(
        "(threshold 31.5, 7 partitions for each user, Laplace (scale 2.5), replace-one)"
    )
