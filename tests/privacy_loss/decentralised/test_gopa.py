"""GOPA against mpmath: the covariance's inverse, and bounds that hold for any potentials."""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import DominatedLoss, GaussianLoss, dominating_pair
from hockeystick.privacy_loss.decentralised.effective_resistance import exposure

NOBODY: frozenset[int] = frozenset()


def truth(graph: hs.mechanisms.Graph, colluders: Iterable[int], ratio: Any) -> Any:
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


def ends(plan: hs.mechanisms.GOPA) -> tuple[float, float]:
    """Return the proven ends of mu."""
    loss = dominating_pair(plan).removing
    if isinstance(loss, DominatedLoss):
        return cast(GaussianLoss, loss.attained_case).mu, cast(GaussianLoss, loss.dominating).mu
    return cast(GaussianLoss, loss).mu, cast(GaussianLoss, loss).mu


@st.composite
def networks(draw: st.DrawFn) -> tuple[hs.mechanisms.Graph, frozenset[int]]:
    """Graphs of up to nine parties, connected or not, and who colludes."""
    size = draw(st.integers(1, 9))
    pairs = [(a, b) for a in range(size) for b in range(a)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    colluders = draw(st.sets(st.integers(0, size - 1), max_size=size - 1))
    return hs.mechanisms.Graph(size, edges), frozenset(colluders)


@given(networks(), st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**6))
def test_the_truth_is_between_the_ends(
    network: tuple[hs.mechanisms.Graph, frozenset[int]], ratio: Fraction
) -> None:
    found = exposure(*network, ratio)
    with mp.workdps(50):
        exact = truth(*network, mp.mpf(ratio.numerator) / ratio.denominator)
        slack = exact * mp.mpf(10) ** -40
        assert mp.mpf(found.least.numerator) / found.least.denominator <= exact + slack
        assert exact - slack <= mp.mpf(found.most.numerator) / found.most.denominator
    assert found.most <= found.least * (1 + Fraction(1, 10**11))


@pytest.mark.parametrize("ratio", [1e-300, 1e-12, 1e12, 1e18, 1e300])
def test_the_ends_hold_for_any_ratio(ratio: float) -> None:
    graph = hs.mechanisms.Graph.path(6)
    found = exposure(graph, NOBODY, Fraction(ratio))
    with mp.workdps(700):
        exact = truth(graph, NOBODY, mp.mpf(ratio))
        assert mp.mpf(found.least.numerator) / found.least.denominator <= exact
        assert exact <= mp.mpf(found.most.numerator) / found.most.denominator
    assert found.most <= found.least * (1 + Fraction(1, 10**9))


def test_the_complete_graph_has_a_closed_form() -> None:
    low, high = ends(hs.mechanisms.GOPA(0.4, 2.0, hs.mechanisms.Graph.complete(100)))
    assert low == high == pytest.approx(0.254900000776464618932461414462, rel=1e-15)
    fewer = ends(
        hs.mechanisms.GOPA(0.4, 2.0, hs.mechanisms.Graph.complete(120), colluders=range(0, 120, 6))
    )
    assert fewer == (low, high)
    with mp.workdps(30):
        exact = truth(hs.mechanisms.Graph.complete(7), (2,), mp.mpf(25))
        assert ends(hs.mechanisms.GOPA(1.0, 5.0, hs.mechanisms.Graph.complete(7), [2]))[
            0
        ] == pytest.approx(float(mp.sqrt(exact)), rel=1e-15)


def test_parties_without_honest_neighbours_have_their_own_noise_alone() -> None:
    star = hs.mechanisms.Graph(5, [(0, 1), (0, 2), (0, 3), (0, 4)])
    assert ends(hs.mechanisms.GOPA(2.0, 50.0, star, colluders=[0])) == (0.5, 0.5)
    assert ends(hs.mechanisms.GOPA(2.0, 50.0, hs.mechanisms.Graph(3))) == (0.5, 0.5)
    assert ends(hs.mechanisms.GOPA(2.0, 0.0, star)) == (0.5, 0.5)


def test_infinite_pairwise_noise_leaves_the_sums_of_the_parts() -> None:
    graph = hs.mechanisms.Graph(7, [(0, 1), (1, 2), (3, 4), (4, 5), (5, 6)])
    low, high = ends(hs.mechanisms.GOPA(0.5, math.inf, graph))
    assert low == high == pytest.approx(2 / math.sqrt(3), rel=1e-15)
    near = ends(hs.mechanisms.GOPA(0.5, 1e5, graph))
    assert low <= near[1]
    assert near[0] == pytest.approx(low, rel=1e-9)
    assert ends(hs.mechanisms.GOPA(0.5, math.inf, hs.mechanisms.Graph.complete(5), [1]))[0] == 1.0
