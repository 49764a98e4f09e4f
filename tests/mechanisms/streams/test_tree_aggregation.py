"""Tree aggregation's description."""

import math

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
