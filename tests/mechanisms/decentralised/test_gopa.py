"""Graphs and GOPA: what they take, what they refuse, and what they say of themselves."""

from typing import Any

import numpy as np
import pytest

import hockeystick as hs

PATH = hs.mechanisms.Graph.path(5)


def test_graphs_are_equal_if_their_edges_are() -> None:
    assert hs.mechanisms.Graph(5, [(3, 4), (1, 0), (2, 1), (3, 2)]) == PATH
    assert (
        hs.mechanisms.Graph(5, np.array([[0, 1], [1, 2], [2, 3], [3, 4]], dtype=np.int32)) == PATH
    )
    assert hash(hs.mechanisms.Graph(5, [(3, 4), (1, 0), (2, 1), (3, 2)])) == hash(PATH)
    assert hs.mechanisms.Graph(5, [(3, 4), (1, 0), (2, 1)]) != PATH
    assert hs.mechanisms.Graph(6, [(3, 4), (1, 0), (2, 1), (3, 2)]) != PATH


def test_all_edges_are_the_complete_graph() -> None:
    assert (
        hs.mechanisms.Graph(3, [(0, 1), (1, 2), (0, 2)])
        == hs.mechanisms.Graph.complete(3)
        == hs.mechanisms.Graph.cycle(3)
    )
    assert (
        hs.mechanisms.Graph(1)
        == hs.mechanisms.Graph.complete(1)
        == hs.mechanisms.Graph.cycle(1)
        == hs.mechanisms.Graph.path(1)
    )
    assert (
        hs.mechanisms.Graph.cycle(2)
        == hs.mechanisms.Graph.path(2)
        == hs.mechanisms.Graph.complete(2)
    )
    assert hs.mechanisms.Graph.complete(4).pairs.tolist() == [
        [0, 1],
        [0, 2],
        [0, 3],
        [1, 2],
        [1, 3],
        [2, 3],
    ]


def test_a_cycle_is_a_path_that_is_closed() -> None:
    closed = {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)}
    assert {(int(a), int(b)) for a, b in hs.mechanisms.Graph.cycle(5).pairs} == closed
    assert hs.mechanisms.Graph.cycle(5).size == 5


def test_in_a_random_graph_each_party_has_chosen_so_many() -> None:
    graph = hs.mechanisms.Graph.random_out(200, 7, seed=3)
    assert (
        graph
        == hs.mechanisms.Graph.random_out(200, 7, seed=3)
        != hs.mechanisms.Graph.random_out(200, 7, seed=4)
    )
    assert np.bincount(graph.pairs.ravel(), minlength=200).min() >= 7
    # Two choose each other with probability (7/199)^2: about 25 of 1400 edges are saved.
    assert 1330 < graph.size < 1400
    assert hs.mechanisms.Graph.random_out(9, 0, seed=3) == hs.mechanisms.Graph(9)


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 0)],
        [(0, 5)],
        [(-1, 2)],
        [(0, 1), (1, 0)],
        [(0, 1, 2)],
        [(0, 1.0)],
        [(True, 2)],
        [0, 1],
        "01",
        3,
        np.array([[0.0, 1.0]]),
        np.array([0, 1]),
        [(0, 10**30)],
    ],
    ids=repr,
)
def test_what_are_no_edges_is_refused(edges: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="edges must be pairs of different parties"):
        hs.mechanisms.Graph(5, edges)
