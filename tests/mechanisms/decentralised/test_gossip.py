"""Gossip averaging: what it takes, what it refuses, and what it says of itself."""

import pytest

import hockeystick as hs
from hockeystick.mechanisms import GossipAveraging, Graph
from hockeystick.mechanisms.decentralised.gossip import gossip_matrix


@pytest.mark.parametrize("weights", ["metropolis", "max-degree"])
def test_a_gossip_matrix_is_symmetric_and_its_rows_add_up(weights: str) -> None:
    graph = Graph.random_out(15, 3, seed=2)
    found = gossip_matrix(graph, weights)
    for party, (others, entries) in enumerate(zip(found.neighbours, found.entries, strict=True)):
        assert found.own[party] > 0
        assert found.own[party] + sum(entries) == found.denominator
        for other, entry in zip(others, entries, strict=True):
            back = found.neighbours[other].index(party)
            assert found.entries[other][back] == entry > 0


def test_a_graph_without_edges_averages_nothing() -> None:
    found = gossip_matrix(Graph(3), "max-degree")
    assert found.own == (1, 1, 1)
    plan = GossipAveraging(1.0, Graph(3), 5, 1, [0])
    assert hs.epsilon(plan, 1e-5).upper == 0.0
