"""Tree aggregation's description."""

import math
from typing import Any

import pytest

import hockeystick as hs


@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 7, 8, 100, 1000, 1023, 1024])
def test_a_leaf_is_in_as_many_whole_nodes_as_the_height_says(leaves: int) -> None:
    nodes = [
        [(level, leaf >> level) for level in range(20) if ((leaf >> level) + 1) << level <= leaves]
        for leaf in range(leaves)
    ]
    assert (
        max(map(len, nodes)) == len(nodes[0]) == hs.mechanisms.TreeAggregation(1.0, leaves).height
    )
    assert hs.mechanisms.TreeAggregation(1.0, leaves).height == math.ceil(math.log2(leaves + 1))


def test_the_text_gives_the_noise_and_the_leaves() -> None:
    tree = hs.mechanisms.TreeAggregation(10, leaves=1000)
    assert str(tree) == "tree aggregation (noise multiplier 10, 1000 leaves)"
    assert tree.adjacency is None
    assert any("at most 1,000 leaves" in text for text in tree.assumptions)


@pytest.mark.parametrize("value", [-1, 0.5, math.nan, math.inf, "3", None, True])
def test_the_leaves_are_a_whole_number(value: Any) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        hs.mechanisms.TreeAggregation(1.0, value)
    assert caught.value.name == "leaves"
