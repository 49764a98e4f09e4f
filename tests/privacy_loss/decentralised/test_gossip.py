"""Gossip averaging against the joint Gaussian view, computed in fractions from every message."""

import math
from fractions import Fraction
from typing import Any, cast

import pytest

import hockeystick as hs
from hockeystick.mechanisms import GossipAveraging, Graph
from hockeystick.mechanisms.decentralised.gossip import observed_span
from hockeystick.privacy_loss import DominatedLoss, GaussianLoss, dominating_pair
from tests.numerics.test_row_span import orthogonal, truth

Matrix = list[list[int]]
CUBE = Graph(8, [(a, a ^ bit) for a in range(8) for bit in (1, 2, 4) if a < a ^ bit])
HUB = Graph(6, [(0, 1), (1, 2), (1, 3), (1, 4), (1, 5)])
THREE = Graph(5, [(0, 1), (1, 2), (1, 3), (1, 4)])
FOREST = Graph(7, [(0, 1), (1, 2), (1, 3), (4, 5)])
WHEEL = Graph(7, [(0, k) for k in range(1, 7)] + [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (1, 6)])


def powers(graph: Graph, weights: str, rounds: int) -> list[Matrix]:
    """Return the powers of the gossip matrix, times those of its denominator."""
    degrees = [0] * graph.parties
    for party in graph.pairs.ravel().tolist():
        degrees[party] += 1
    matrix = [[Fraction(0)] * graph.parties for _ in degrees]
    for a, b in graph.pairs.tolist():
        most = max(degrees) if weights == "max-degree" else max(degrees[a], degrees[b])
        matrix[a][b] = matrix[b][a] = Fraction(1, 1 + most)
    for party, row in enumerate(matrix):
        row[party] = Fraction(1) - sum(row)
    common = math.lcm(*(entry.denominator for row in matrix for entry in row))
    whole = [[int(entry * common) for entry in row] for row in matrix]
    found = [[[int(a == b) for b in range(graph.parties)] for a in range(graph.parties)]]
    for _ in range(1, rounds):
        found.append(
            [
                [sum(row[k] * whole[k][b] for k in range(graph.parties)) for b in range(len(row))]
                for row in found[-1]
            ]
        )
    return found


def messages(
    graph: Graph, rounds: int, observers: set[int], weights: str = "metropolis", own: bool = True
) -> Matrix:
    """Return what observers see, as rows that multiply ``y^0``, and their own if they know it."""
    linked = {b for a, b in graph.pairs.tolist() if a in observers}
    linked |= {a for a, b in graph.pairs.tolist() if b in observers}
    seen = [step[w] for step in powers(graph, weights, rounds) for w in sorted(linked)]
    unit = [[int(c == b) for b in range(graph.parties)] for c in sorted(observers)]
    return seen + unit if own else seen


def papers_bound(graph: Graph, rounds: int, observer: int, party: int) -> Fraction:
    """Return ``sum_t sum_w (W^t)_uw^2 / |(W^t)_w|^2``, which is said to bound ``|P e_u|^2``."""
    rows = messages(graph, rounds, {observer}, own=False)
    return sum((Fraction(row[party] ** 2, sum(x * x for x in row)) for row in rows), Fraction(0))


def squared_ends(plan: GossipAveraging) -> tuple[float, float]:
    """Return the proven ends of mu."""
    loss = dominating_pair(plan).removing
    if loss is None:
        return 0.0, 0.0
    if isinstance(loss, DominatedLoss):
        return cast(GaussianLoss, loss.attained_case).mu, cast(GaussianLoss, loss.dominating).mu
    return cast(GaussianLoss, loss).mu, cast(GaussianLoss, loss).mu


@pytest.mark.parametrize("weights", ["metropolis", "max-degree"])
@pytest.mark.parametrize(
    ("graph", "observers"),
    [
        (Graph.path(6), {2}),
        (Graph.cycle(7), {0}),
        (CUBE, {0}),
        (CUBE, {0, 3}),
        (HUB, {0}),
        (FOREST, {0}),
        (WHEEL, {2}),
        (Graph.complete(5), {1, 2}),
        (Graph.random_out(12, 2, seed=3), {5}),
    ],
)
def test_the_span_is_that_of_every_message(graph: Graph, observers: set[int], weights: str) -> None:
    for rounds in (1, 2, 3, 5):
        rows = messages(graph, rounds, observers, weights)
        span = observed_span(graph, weights, rounds, frozenset(observers))
        assert span is not None
        assert span.rank == len(orthogonal(rows))
        for party in set(range(graph.parties)) - observers:
            least, most = span.squared_projection(party)
            assert least <= truth(rows, party) <= most <= least + Fraction(1, 10**25)
            plan = GossipAveraging(4.0, graph, rounds, party, observers, weights)
            low, high = squared_ends(plan)
            exact = math.sqrt(truth(rows, party)) / 4
            assert low == pytest.approx(exact, rel=1e-14)
            assert low <= high == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize(
    ("graph", "rounds", "party"), [(CUBE, 1, 7), (CUBE, 3, 3), (THREE, 4, 3), (WHEEL, 2, 5)]
)
def test_the_truth_is_between_the_losses_in_fractions(
    graph: Graph, rounds: int, party: int
) -> None:
    exact = truth(messages(graph, rounds, {0}), party)
    loss = dominating_pair(GossipAveraging(3.0, graph, rounds, party, [0])).removing
    if exact == 0:
        assert loss is None
        return
    above: Any = getattr(loss, "dominating", loss)
    below: Any = getattr(loss, "attained_case", loss)
    assert above.noise_multiplier**2 * exact <= 9 <= below.noise_multiplier**2 * exact
    assert below.noise_multiplier <= above.noise_multiplier * (1 + Fraction(1, 10**25))


def test_on_a_path_the_far_end_is_solved_for_and_the_papers_bound_fails() -> None:
    path = Graph.path(8)
    bound = papers_bound(path, 7, 0, 7)
    assert float(bound) == pytest.approx(8.544014490648578e-06, rel=1e-12)
    assert truth(messages(path, 7, {0}), 7) == 1
    assert squared_ends(GossipAveraging(1.0, path, 7, 7, [0])) == (1.0, 1.0)
    # Also for who does not use its own value: after enough rounds it is solved for as well.
    assert truth(messages(path, 8, {0}, own=False), 7) == 1
    assert papers_bound(path, 8, 0, 7) < Fraction(1, 4000)
    assert squared_ends(GossipAveraging(1.0, path, 6, 7, [0])) == (0.0, 0.0)


def test_what_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from hockeystick.numerics import row_span

    monkeypatch.setattr(row_span, "_MOST_WORK", 100)
    plan: Any = GossipAveraging(1.0, Graph.random_out(40, 3, seed=77), 5, 1, [0])
    with pytest.raises(hs.errors.UnsupportedError, match="takes too long to eliminate exactly"):
        hs.epsilon(plan, 1e-5)
