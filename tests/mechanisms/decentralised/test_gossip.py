"""Gossip averaging: what it takes, what it refuses, and what it says of itself."""

import copy
import pickle
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.mechanisms import GossipAveraging, Graph
from hockeystick.mechanisms.decentralised.gossip import gossip_matrix

CYCLE = Graph.cycle(9)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"noise_multiplier": float("nan")}, "noise_multiplier"),
        ({"graph": "cycle"}, "graph"),
        ({"graph": Graph.cycle(10_001)}, "graph"),
        ({"rounds": -1}, "rounds"),
        ({"rounds": 1.5}, "rounds"),
        ({"party": 9}, "party"),
        ({"party": 0}, "party"),
        ({"party": True}, "party"),
        ({"party": None}, "party"),
        ({"observers": []}, "observers"),
        ({"observers": [9]}, "observers"),
        ({"observers": [0, 0]}, "observers"),
        ({"observers": range(9)}, "observers"),
        ({"observers": "0"}, "observers"),
        ({"weights": "uniform"}, "weights"),
    ],
    ids=repr,
)
def test_what_is_wrong_is_named(settings: dict[str, Any], name: str) -> None:
    usual = {"noise_multiplier": 1.0, "graph": CYCLE, "rounds": 2, "party": 2, "observers": [0]}
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        GossipAveraging(**{**usual, **settings})


def test_a_mechanism_is_a_value_and_short_in_print() -> None:
    plan = GossipAveraging(0.5, Graph.random_out(99, 9, seed=1), 3, 7, [5, 1], "max-degree")
    for other in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert other == plan
        assert hash(other) == hash(plan)
    assert len(repr(plan)) < 250
    assert str(plan) == (
        "gossip averaging (noise multiplier 0.5, 9 chosen by each of 99 parties, seed 1, "
        "max-degree weights, 3 rounds, party 7, 2 observers)"
    )
    assert plan.adjacency is hs.Adjacency.REPLACE_ONE
    assert any("Only the parties 1, 5 put together" in one for one in plan.assumptions)


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
