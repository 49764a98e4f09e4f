"""Parallel composition, groups and metric privacy."""

import dataclasses
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.notions import MetricDP, metric_composition, parallel

CASES = [
    ([hs.PureDP(0.5), hs.PureDP(1.0), hs.PureDP(0.1)], hs.PureDP(1.0), hs.PureDP(1.5)),
    (
        [hs.ApproxDP(1.0, 1e-6), hs.ApproxDP(0.5, 1e-5)],
        hs.ApproxDP(1.0, 1e-5),
        hs.ApproxDP(1.5, 1.1e-5),
    ),
    ([hs.GDP(3.0), hs.GDP(4.0), hs.GDP(1.0)], hs.GDP(4.0), hs.GDP(5.0)),
    ([hs.ZCDP(0.25), hs.ZCDP(0.5)], hs.ZCDP(0.5), hs.ZCDP(0.75)),
    ([hs.TCDP(0.25, 10), hs.TCDP(0.5, 20)], hs.TCDP(0.5, 10), hs.TCDP(0.75, 10)),
    (
        [hs.RenyiDP({2: 0.5, 4: 1.0}), hs.RenyiDP({2: 0.25, 4: 2.0, 8: 3.0})],
        hs.RenyiDP({2: 0.5, 4: 2.0}),
        hs.RenyiDP({2: 0.75, 4: 3.0}),
    ),
]


def numbers(notion: hs.notions.Notion) -> Any:
    fields = [getattr(notion, one.name) for one in dataclasses.fields(notion)]
    return np.hstack([np.ravel(np.array(one, dtype=float)) for one in fields if one is not None])


@pytest.mark.parametrize(("parts", "worst", "two"), CASES)
def test_one_part_changes_or_two_where_a_record_is_replaced(
    parts: list[hs.notions.Notion], worst: hs.notions.Notion, two: hs.notions.Notion
) -> None:
    assert parallel(parts) == worst
    assert parallel(parts, "zero-out") == worst
    replaced = numbers(parallel(parts, "replace-one"))
    assert (numbers(two) <= replaced).all()
    assert np.allclose(replaced, numbers(two), rtol=1e-15, atol=0.0)


def test_trade_off_functions_are_enveloped_or_multiplied() -> None:
    g, wide, laplace = hs.tradeoffs.G(1.0), hs.tradeoffs.G(0.5), hs.tradeoffs.LaplaceTradeOff(1.0)
    rates = np.linspace(0.0, 1.0, 11)
    worst = parallel([hs.FDP(one) for one in (g, laplace, wide)]).tradeoff
    least = np.min([one.bounds(rates)[1] for one in (g, laplace, wide)], axis=0)
    assert (worst(rates) <= least).all()
    assert (worst.bounds(rates)[1] >= least - 0.02).all()
    moved = parallel([hs.FDP(g), hs.FDP(wide)], "replace-one").tradeoff
    assert moved == g @ wide


@pytest.mark.parametrize("parts", [[], [hs.PureDP(1), hs.GDP(1)], [1.0], 3, hs.PureDP(1), "x"])
def test_what_is_no_list_of_one_notion_is_refused(parts: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="parts must be guarantees of one class"):
        parallel(parts)


def test_divergences_need_an_order_in_common() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="no order"):
        parallel([hs.RenyiDP({2: 1}), hs.RenyiDP({3: 1})])


def _iterated(alpha: float, epsilon: float, delta: float, size: int) -> float:
    """The most power of a test at a false positive rate, over so many neighbours."""
    for _ in range(size):
        above = (1.0 - delta - alpha) * math.exp(-epsilon)
        alpha = min(delta + math.exp(epsilon) * alpha, 1.0 - max(above, 0.0))
    return alpha


@pytest.mark.parametrize(
    ("epsilon", "delta", "size"), [(1.0, 1e-4, 4), (0.3, 0.05, 3), (0.5, 0.2, 4), (0.0, 0.1, 3)]
)
def test_a_group_has_the_power_iterated_and_a_chain_of_neighbours_attains_it(
    epsilon: float, delta: float, size: int
) -> None:
    grown = hs.ApproxDP(epsilon, delta).for_group(size)
    # P_j on thousands of cells of [0, 1], of which the first stands for the point 0.
    cuts = np.linspace(0.0, 1.0, 4001)
    above = [np.array([_iterated(cut, epsilon, delta, j) for cut in cuts]) for j in range(size + 1)]
    laws = [np.diff(one, prepend=0.0) for one in above]
    for near, next_one in pairwise(laws):
        for p, q in ((near, next_one), (next_one, near)):
            assert np.maximum(q - math.exp(epsilon) * p, 0.0).sum() <= delta + 1e-9
    for at in (0.1, epsilon, 2.0 * epsilon, size * epsilon):
        attained = np.maximum(laws[-1] - math.exp(at) * laws[0], 0.0).sum()
        found = hs.delta(grown, at)
        assert found.lower - 5e-4 <= attained <= found.upper + 1e-12


def test_no_group_is_answered_by_none() -> None:
    for plan in (
        hs.RandomizedResponse(1.0),
        hs.RenyiDP({2.0: 0.5}),
        hs.PureDP(1.0) @ hs.RandomizedResponse(1.0),
        hs.TCDP(0.1, 1.5),
        hs.DiscreteLaplace(1.0, sensitivity=10**15),
    ):
        with pytest.raises(hs.errors.NoGroupFormError, match="groups of 2"):
            plan.for_group(2)
    with pytest.raises(hs.errors.NoGroupFormError, match=r"\.group\(51\) has a bound: 5\.1"):
        hs.PureDP(0.1).for_group(51)
    assert hs.RandomizedResponse(1.0).for_group(1) == hs.RandomizedResponse(1.0)
    f = hs.tradeoffs.GaussianTradeOff
    assert hs.FDP(f(0.5)).for_group(2) == hs.FDP(f(1.0))


def test_within_a_radius_it_is_pure_dp_rounded_up() -> None:
    for epsilon, radius in ((0.1, 3.0), (0.7, 0.3), (1 / 3, 1e-3)):
        found = MetricDP(epsilon).within(radius)
        exact = Fraction(repr(epsilon)) * Fraction(repr(radius))
        assert exact <= Fraction(found.epsilon) <= exact * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize(
    ("epsilon", "radius", "answer"),
    [(0, 5, 0.0), (0, math.inf, 0.0), (math.inf, 0, 0.0), (math.inf, 1, math.inf), (2, 0, 0.0)],
)
def test_the_ends_of_the_domains(epsilon: float, radius: float, answer: float) -> None:
    assert MetricDP(epsilon).within(radius) == hs.PureDP(answer)


def test_releases_about_the_same_inputs_add_their_epsilons() -> None:
    both = MetricDP(0.5).compose(MetricDP(0.25))
    assert both == MetricDP(0.75)
    assert both.compose(MetricDP(math.inf)) == MetricDP(math.inf)
    rounded = MetricDP(0.1).compose(MetricDP(0.2))
    assert Fraction(rounded.epsilon) >= Fraction(3, 10)
    assert MetricDP(0.5, "hamming").group(3) == MetricDP(1.5, "hamming")
    with pytest.raises(hs.errors.IncompatibleError, match="euclidean and the hamming"):
        both.compose(MetricDP(1, "hamming"))


def test_releases_at_distances_of_their_own_add_epsilon_times_distance() -> None:
    releases = [(MetricDP(0.5), 3), (MetricDP(0.25, "hamming"), 2), (MetricDP(7), 0)]
    assert metric_composition(releases) == hs.PureDP(2.0)
    assert metric_composition([(MetricDP(math.inf), 0)]) == hs.PureDP(0.0)
    far = [(MetricDP(1), math.inf)]
    assert metric_composition(far) == hs.PureDP(math.inf)


@pytest.mark.parametrize("accountant", ["auto", "rdp", "prv", "gdp"])
def test_without_a_radius_it_is_refused_with_the_way_out(accountant: str) -> None:
    for plan in (MetricDP(0.5), MetricDP(0.5) ** 3, MetricDP(0.5) @ hs.Gaussian(2)):
        with pytest.raises(hs.errors.UnsupportedError, match=r"\.within\(radius\)"):
            hs.epsilon(plan, 1e-5, accountant=accountant)
