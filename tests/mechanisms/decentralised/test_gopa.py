"""Graphs and GOPA: what they take, what they refuse, and what they say of themselves."""

import copy
import pickle
from typing import Any, cast

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


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: hs.mechanisms.Graph(0), "parties"),
        (lambda: hs.mechanisms.Graph.complete(2.5), "parties"),
        (lambda: hs.mechanisms.Graph.cycle(-1), "parties"),
        (lambda: hs.mechanisms.Graph.path(cast(Any, "3")), "parties"),
        (lambda: hs.mechanisms.Graph.path(10**7), "parties"),
        (lambda: hs.mechanisms.Graph.random_out(5, 5, seed=1), "chosen"),
        (lambda: hs.mechanisms.Graph.random_out(5, -1, seed=1), "chosen"),
        (lambda: hs.mechanisms.Graph.random_out(10**6, 10**5, seed=1), "chosen"),
        (lambda: hs.mechanisms.Graph.random_out(5, 2, seed=-1), "seed"),
        (lambda: hs.mechanisms.Graph.complete(10**6).pairs, "parties"),
        (lambda: hs.mechanisms.GOPA(-1.0, 1.0, PATH), "noise_multiplier"),
        (lambda: hs.mechanisms.GOPA(1.0, float("nan"), PATH), "pairwise_multiplier"),
        (lambda: hs.mechanisms.GOPA(1.0, 1.0, cast(Any, "cycle")), "graph"),
        (lambda: hs.mechanisms.GOPA(1.0, 1.0, PATH, colluders=[5]), "colluders"),
        (lambda: hs.mechanisms.GOPA(1.0, 1.0, PATH, colluders=[1, 1]), "colluders"),
        (lambda: hs.mechanisms.GOPA(1.0, 1.0, PATH, colluders=[1.0]), "colluders"),  # type: ignore[list-item]
        (lambda: hs.mechanisms.GOPA(1.0, 1.0, PATH, colluders=cast(Any, "1")), "colluders"),
        (lambda: hs.mechanisms.GOPA(1.0, 1.0, PATH, colluders=range(5)), "colluders"),
    ],
)
def test_what_is_wrong_is_named(make: Any, name: str) -> None:
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        make()


def test_a_mechanism_is_a_value_and_short_in_print() -> None:
    plan = hs.mechanisms.GOPA(
        0.4, 2.0, hs.mechanisms.Graph.random_out(100, 9, seed=1), colluders=[3, 1]
    )
    for other in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert other == plan
        assert hash(other) == hash(plan)
    assert len(repr(plan)) < 250
    assert str(plan) == (
        "GOPA (noise multiplier 0.4, pairwise 2, 9 chosen by each of 100 parties, seed 1, "
        "2 colluders)"
    )
    assert plan.adjacency is hs.Adjacency.REPLACE_ONE
    assert any("At most the 2 parties named collude" in one for one in plan.assumptions)
