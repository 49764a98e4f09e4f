"""Graphs, gossip matrices and walks: what they are made of."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms import Graph
from hockeystick.mechanisms.decentralised.gossip import gossip_matrix
from hockeystick.numerics.multiprecision import mp

PATH = Graph.path(5)


def test_graphs_are_equal_if_their_edges_are() -> None:
    assert Graph(5, [(3, 4), (1, 0), (2, 1), (3, 2)]) == PATH
    assert Graph(5, np.array([[0, 1], [1, 2], [2, 3], [3, 4]], dtype=np.int32)) == PATH
    assert hash(Graph(5, [(3, 4), (1, 0), (2, 1), (3, 2)])) == hash(PATH)
    assert Graph(5, [(3, 4), (1, 0), (2, 1)]) != PATH
    assert Graph(6, [(3, 4), (1, 0), (2, 1), (3, 2)]) != PATH


def test_all_edges_are_the_complete_graph() -> None:
    assert Graph(3, [(0, 1), (1, 2), (0, 2)]) == Graph.complete(3) == Graph.cycle(3)
    assert Graph(1) == Graph.complete(1) == Graph.cycle(1) == Graph.path(1)
    assert Graph.cycle(2) == Graph.path(2) == Graph.complete(2)
    assert Graph.complete(4).pairs.tolist() == [[a, b] for a in range(4) for b in range(a + 1, 4)]


@pytest.mark.parametrize(
    "edges",
    [
        *([(0, 0)], [(0, 5)], [(-1, 2)], [(0, 1), (1, 0)], [(0, 1, 2)], [(0, 1.0)], [(True, 2)]),
        *([0, 1], "01", 3, np.array([[0.0, 1.0]]), np.array([0, 1]), [(0, 10**30)]),
    ],
    ids=repr,
)
def test_what_are_no_edges_is_refused(edges: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="edges must be pairs of different parties"):
        Graph(5, edges)


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


STEPS: dict[str, Any] = {"step_size": 0.1, "smoothness": 20.0}
WALK = hs.mechanisms.TokenWalk(10.0, 100, **STEPS)
RUN = hs.mechanisms.NoisyIterations(10.0, 1000, **STEPS)


def test_the_records_place_decides_how_many_steps_cover_it() -> None:
    assert RUN.covering == 1
    assert hs.mechanisms.NoisyIterations(10.0, 1000, 1, **STEPS).covering == 1000
    assert hs.mechanisms.NoisyIterations(10.0, 1000, 1000, **STEPS).covering == 1
    assert hs.mechanisms.NoisyIterations(10.0, 0, **STEPS).covering == 0


@pytest.mark.parametrize(("steps", "visits"), [(1000, 12), (1000, 40), (50, 0), (10_000, 130)])
def test_the_excess_bounds_the_binomial_tail_and_is_near(steps: int, visits: int) -> None:
    with mp.workdps(40):
        term = mp.binomial(steps, visits + 1) * mp.mpf(99) ** (steps - visits - 1)
        truth = mp.zero
        for hits in range(visits + 1, min(steps, visits + 300) + 1):
            truth += term
            term *= mp.mpf(steps - hits) / (hits + 1) / 99
        truth /= mp.mpf(100) ** steps
        assert truth <= WALK.excess(steps, visits) <= 2.2 * truth


def test_the_excess_at_its_ends() -> None:
    assert WALK.excess(10, 10) == 0.0
    assert WALK.excess(1000, 10) <= 1.0
    assert WALK.excess(1000, 2) == 1.0
