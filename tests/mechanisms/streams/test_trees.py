"""Trees and cyclic samples, against every pattern of participation."""

import math

import pytest

from hockeystick.mechanisms import CyclicPoisson, Encoder, TreeAggregation
from hockeystick.mechanisms.streams import sensitivity
from hockeystick.mechanisms.streams.sensitivity import Pattern
from tests.mechanisms.streams.test_matrix_factorization import patterns


@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 7, 8, 100, 1000, 1023, 1024])
def test_a_leaf_is_in_as_many_whole_nodes_as_the_height_says(leaves: int) -> None:
    nodes = [
        [(level, leaf >> level) for level in range(20) if ((leaf >> level) + 1) << level <= leaves]
        for leaf in range(leaves)
    ]
    height = TreeAggregation(1.0, leaves).height
    assert max(map(len, nodes)) == len(nodes[0]) == height == math.ceil(math.log2(leaves + 1))


def by_hand(rounds: int, participations: int, separation: int) -> int:
    """Return the largest sum of the squared counts in whole nodes over all patterns."""
    nodes = [
        range(start, start + size)
        for size in (1, 2, 4, 8, 16)
        for start in range(0, rounds - size + 1, size)
    ]
    return max(
        sum(sum(place in node for place in places) ** 2 for node in nodes)
        for places in patterns(rounds, participations, separation)
    )


@pytest.mark.parametrize("separation", range(1, 7))
def test_small_trees_are_exact_against_every_pattern(separation: int) -> None:
    for rounds in (1, 2, 5, 7, 8, 11, 13):
        for participations in (1, 2, 3, 4):
            truth = by_hand(rounds, participations, separation)
            found = Encoder.tree(rounds, participations=participations, separation=separation)
            assert found.least_square == found.square == truth
            for unit in (1, 2, 4)[: separation.bit_length()]:
                apart = separation // unit, -(-separation // unit)
                ends = [sensitivity._by_halves(rounds, participations, one, unit) for one in apart]
                assert ends[1] <= truth <= ends[0]
            assert sensitivity._by_levels(rounds, Pattern(participations, separation)) >= truth


def test_zeros_at_the_end_are_no_diagonals() -> None:
    plan = CyclicPoisson(2.0, (1.0, 0.0, 0.5, 0.0, 0.0), rounds=20, cycle=3, rate=0.1)
    assert plan.bands == 3
    assert CyclicPoisson(2.0, (1.0, 0.5, 0.25), rounds=2, cycle=2, rate=0.1).bands == 2
