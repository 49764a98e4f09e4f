"""GOPA, gossip, noisy iterations and token walks against fractions, mpmath and simulation."""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, cast

import pytest

import hockeystick as hs
from hockeystick import mechanisms as m
from hockeystick.mechanisms import GOPA, GossipAveraging, Graph
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import CellLoss, DominatedLoss, GaussianLoss, dominating_pair
from hockeystick.privacy_loss.decentralised import _Walk, exposure
from tests.numerics.test_row_span import truth

NOBODY: frozenset[int] = frozenset()


def resistance(graph: Graph, colluders: Iterable[int], ratio: Any) -> Any:
    """Return the largest diagonal entry of the inverse, by mpmath's elimination."""
    gone = set(colluders)
    honest = [party for party in range(graph.parties) if party not in gone]
    places = {party: place for place, party in enumerate(honest)}
    matrix = mp.eye(len(honest))
    for first, second in graph.pairs.tolist():
        if first in places and second in places:
            a, b = places[first], places[second]
            matrix[a, a] += ratio
            matrix[b, b] += ratio
            matrix[a, b] -= ratio
            matrix[b, a] -= ratio
    inverse = matrix**-1
    return max(inverse[place, place] for place in range(len(honest)))


def mus(plan: hs.Mechanism) -> tuple[float, float]:
    """Return mu of the Gaussian mechanisms below and above."""
    loss = dominating_pair(plan).removing
    pair = (loss.attained, loss.dominating) if isinstance(loss, DominatedLoss) else (loss, loss)
    low, high = (0.0 if one is None else cast(GaussianLoss, one).mu for one in pair)
    return low, high


@pytest.mark.parametrize("ratio", [1e-300, 1e-12, 0.3, 17.0, 1e12, 1e18, 1e300])
@pytest.mark.parametrize(
    ("graph", "colluders"),
    [
        (Graph.path(6), NOBODY),
        (Graph(6, [(0, 1), (1, 2), (1, 3), (3, 4), (2, 4)]), frozenset({1})),
        (Graph(5, [(0, 1), (2, 3), (3, 4), (2, 4)]), NOBODY),
    ],
)
def test_the_ends_hold_for_any_ratio(graph: Graph, colluders: frozenset[int], ratio: float) -> None:
    found = exposure(graph, colluders, Fraction(ratio))
    with mp.workdps(700):
        exact = resistance(graph, colluders, mp.mpf(ratio))
        assert mp.mpf(found.least.numerator) / found.least.denominator <= exact
        assert exact <= mp.mpf(found.most.numerator) / found.most.denominator
    assert found.most <= found.least * (1 + Fraction(1, 10**9))


def test_the_complete_graph_has_a_closed_form() -> None:
    low, high = mus(GOPA(0.4, 2.0, Graph.complete(100)))
    assert low == high == pytest.approx(0.254900000776464618932461414462, rel=1e-15)
    fewer = mus(GOPA(0.4, 2.0, Graph.complete(120), colluders=range(0, 120, 6)))
    assert fewer == (low, high)


def test_parties_without_honest_neighbours_have_their_own_noise_alone() -> None:
    star = Graph(5, [(0, 1), (0, 2), (0, 3), (0, 4)])
    assert mus(GOPA(2.0, 50.0, star, colluders=[0])) == (0.5, 0.5)
    assert mus(GOPA(2.0, 50.0, Graph(3))) == (0.5, 0.5)
    assert mus(GOPA(2.0, 0.0, star)) == (0.5, 0.5)


def test_infinite_pairwise_noise_leaves_the_sums_of_the_parts() -> None:
    graph = Graph(7, [(0, 1), (1, 2), (3, 4), (4, 5), (5, 6)])
    low, high = mus(GOPA(0.5, math.inf, graph))
    assert low == high == pytest.approx(2 / math.sqrt(3), rel=1e-15)
    near = mus(GOPA(0.5, 1e5, graph))
    assert low <= near[1]
    assert near[0] == pytest.approx(low, rel=1e-9)
    assert mus(GOPA(0.5, math.inf, Graph.complete(5), [1]))[0] == 1.0


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


@pytest.mark.parametrize("weights", ["metropolis", "max-degree"])
@pytest.mark.parametrize(
    ("graph", "observers", "rounds", "party"),
    [
        (Graph.path(6), {2}, 3, 5),
        (Graph.path(8), {0}, 7, 7),
        (CUBE, {0}, 1, 7),
        (CUBE, {0}, 3, 3),
        (CUBE, {0, 3}, 2, 5),
        (THREE, {0}, 4, 3),
        (FOREST, {0}, 5, 2),
        (WHEEL, {0}, 2, 5),
        (Graph.complete(5), {1, 2}, 2, 4),
        (Graph.random_out(12, 2, seed=3), {5}, 2, 1),
    ],
)
def test_the_truth_is_between_the_losses_in_fractions(
    graph: Graph, observers: set[int], rounds: int, party: int, weights: str
) -> None:
    exact = truth(messages(graph, rounds, observers, weights), party)
    plan = GossipAveraging(3.0, graph, rounds, party, observers, weights)
    loss = dominating_pair(plan).removing
    if exact == 0:
        assert loss is None
        return
    above: Any = getattr(loss, "dominating", loss)
    below: Any = getattr(loss, "attained", None)
    assert above.noise_multiplier**2 * exact <= 9 <= below.noise_multiplier**2 * exact
    assert below.noise_multiplier <= above.noise_multiplier * (1 + Fraction(1, 10**25))


def test_what_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from hockeystick.numerics import row_span

    monkeypatch.setattr(row_span, "_MOST_WORK", 100)
    plan: Any = GossipAveraging(1.0, Graph.random_out(40, 3, seed=77), 5, 1, [0])
    with pytest.raises(hs.errors.UnsupportedError, match="takes too long to eliminate exactly"):
        hs.epsilon(plan, 1e-5)


STEPS: dict[str, Any] = {"step_size": 0.5, "smoothness": 2.0}


def test_a_record_is_covered_by_its_own_and_all_later_steps() -> None:
    low, high = mus(m.NoisyIterations(10.0, 1000, 901, **STEPS))
    assert high == pytest.approx(2 / (10 * math.sqrt(100)), rel=1e-15)
    assert low == pytest.approx(2 / (10 * math.sqrt(1000)), rel=1e-15)
    assert mus(m.NoisyIterations(10.0, 1000, **STEPS))[1] == pytest.approx(0.2, rel=1e-15)


def test_a_record_that_is_zeroed_moves_half_as_far() -> None:
    replaced = m.NoisyIterations(10.0, 50, 7, **STEPS)
    zeroed = m.NoisyIterations(5.0, 50, 7, **STEPS, adjacency="zero-out")
    assert mus(replaced) == mus(zeroed)


def test_the_first_record_is_exact() -> None:
    assert mus(m.NoisyIterations(5.0, 4, 1, **STEPS)) == (0.2, 0.2)
    found = hs.epsilon(m.NoisyIterations(5.0, 4, 1, **STEPS), 1e-6)
    same = hs.epsilon(hs.Gaussian(5.0), 1e-6)
    assert (found.lower, found.upper) == (same.lower, same.upper)


@pytest.mark.parametrize("shrink", [0.0, 0.5, 1.0])
def test_no_quadratic_losses_after_the_record_cost_more_than_the_bound(shrink: float) -> None:
    # After the record's step w <- shrink w + N(0, 1): signal and earlier noise shrink together.
    for later in range(1, 8):
        signal, variance = 1.0, 1.0
        for _ in range(later):
            signal, variance = shrink * signal, shrink**2 * variance + 1.0
        bound = mus(m.NoisyIterations(2.0, later + 1, 1, **STEPS))[1]
        assert signal / math.sqrt(variance) <= bound * (1 + 1e-12)
    assert signal / math.sqrt(variance) > 0.99 * bound or shrink < 1.0


@pytest.mark.parametrize("distance", [1, 3, 9])
def test_on_the_ring_the_distance_decides(distance: int) -> None:
    low, high = mus(m.TokenWalk(4.0, 10, "ring", distance=distance, **STEPS))
    assert high == pytest.approx(0.5 / math.sqrt(distance), rel=1e-15)
    assert low == pytest.approx(0.5 / 3.0, rel=1e-15)


@pytest.mark.parametrize(("parties", "observers"), [(2, 1), (10, 1), (7, 3), (100, 1)])
def test_the_chances_of_a_walk_are_those_of_its_steps(parties: int, observers: int) -> None:
    walk = _Walk(parties, observers)
    seen, shown = observers / parties, (observers + 1) / parties
    for steps in (0, 1, 2, 5, 20):
        assert float(walk.observed_tail(steps)) == pytest.approx((1 - shown) ** steps, abs=1e-15)
        # a steps up to the contribution, and then more than ``steps - a`` before an observer.
        truth = (1 - shown) ** steps + sum(
            shown * (1 - shown) ** (a - 1) * (1 - seen) ** (steps - a + 1)
            for a in range(1, steps + 1)
        )
        assert float(walk.between_observers_tail(steps)) == pytest.approx(truth, abs=1e-14)


@pytest.mark.parametrize(("parties", "observers"), [(2, 1), (100, 1), (30, 10)])
@pytest.mark.parametrize("order", [2, 20])
def test_the_mixture_is_a_little_above_the_series(parties: int, observers: int, order: int) -> None:
    loss = dominating_pair(m.TokenWalk(10.0, parties, observers=observers, **STEPS)).removing
    assert isinstance(loss, DominatedLoss)
    found = loss.cgf_bounds(order - 1.0)
    below = cast(CellLoss, loss.attained).cgf_bounds(order - 1.0)
    with mp.workdps(30):
        rate, scale = mp.mpf(observers + 1) / parties, mp.mpf(2 * order * (order - 1)) / 100
        steps = range(1, int(60 / rate) + 1)
        terms = (rate * (1 - rate) ** (k - 1) * mp.expm1(scale / k) for k in steps)
        exact = float(mp.log1p(mp.fsum(terms)))
    assert exact <= (found.midpoint + found.radius) * (1 + 1e-9)
    assert found.midpoint <= exact * 1.25
    assert below.midpoint - below.radius < exact


def papers_bound(graph: Graph, rounds: int, observer: int, party: int) -> Fraction:
    """Return ``sum_t sum_w (W^t)_uw^2 / |(W^t)_w|^2``, which is said to bound ``|P e_u|^2``."""
    rows = messages(graph, rounds, {observer}, own=False)
    return sum((Fraction(row[party] ** 2, sum(x * x for x in row)) for row in rows), Fraction(0))


def test_on_a_path_the_far_end_is_solved_for_and_the_papers_bound_fails() -> None:
    path = Graph.path(8)
    bound = papers_bound(path, 7, 0, 7)
    assert float(bound) == pytest.approx(8.544014490648578e-06, rel=1e-12)
    assert truth(messages(path, 7, {0}), 7) == 1
    assert mus(GossipAveraging(1.0, path, 7, 7, [0])) == (1.0, 1.0)
    # Also for who does not use its own value: after enough rounds it is solved for as well.
    assert truth(messages(path, 8, {0}, own=False), 7) == 1
    assert papers_bound(path, 8, 0, 7) < Fraction(1, 4000)
    assert mus(GossipAveraging(1.0, path, 6, 7, [0])) == (0.0, 0.0)
