"""The worst order of the outcomes of one run, against every order and against explicit ones."""

import math
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from hockeystick.accountants.selection.counts import Generating, generating
from hockeystick.accountants.selection.orders import Ranked
from hockeystick.accountants.selection.pairs import FinitePair
from hockeystick.mechanisms.selection.tuning import (
    Binomial,
    Poisson,
    RunCount,
    TruncatedNegativeBinomial,
)
from hockeystick.numerics.multiprecision import mp

COUNTS: tuple[RunCount, ...] = (
    TruncatedNegativeBinomial(1.0, 0.1),
    TruncatedNegativeBinomial(0.0, 0.05),
    TruncatedNegativeBinomial(-0.5, 0.3),
    TruncatedNegativeBinomial(2.5, 0.2),
    Poisson(10.0),
    Poisson(0.5),
    Binomial(1, 0.3),
    Binomial(2, 0.9),
    Binomial(12, 0.8),
)
each_count = pytest.mark.parametrize("count", COUNTS, ids=str)


def known(count: RunCount) -> Generating:
    """The generating function, which these all have."""
    found = generating(count)
    assert found is not None
    return found


@cache
def masses(count: RunCount) -> Any:
    """P[K = k] for k = 0, 1, .., as far as they matter, by the definition."""
    if isinstance(count, Poisson):
        logs = [-count.mean + k * math.log(count.mean) - math.lgamma(k + 1) for k in range(120)]
        return np.exp(logs)
    if isinstance(count, Binomial):
        n, p = count.trials, count.probability
        return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
    assert isinstance(count, TruncatedNegativeBinomial)
    eta, gamma = count.eta, count.gamma
    first = (1 - gamma) * eta / (gamma**-eta - 1) if eta else (1 - gamma) / -math.log(gamma)
    ratios = [(1 - gamma) * (k + eta) / (k + 1) for k in range(1, 900)]
    return first * np.r_[0.0, 1.0, np.cumprod(ratios)]


def phi(count: RunCount, x: Any) -> Any:
    """E[x^K]."""
    return np.power.outer(np.asarray(x), np.arange(masses(count).size)) @ masses(count)


def divergence(count: RunCount, p: Any, q: Any, growth: float) -> float:
    """H of the best of K draws, outcomes from the worst to the best."""
    best = [np.diff(phi(count, np.r_[0.0, np.cumsum(one)])) for one in (p, q)]
    return float(np.maximum(best[0] - growth * best[1], 0.0).sum())


def random_pair(seed: int, size: int) -> tuple[Any, Any]:
    """Two distributions, by ascending ratio."""
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(size, rng.uniform(0.3, 4.0))) + 1e-6 for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    order = np.argsort(p / q)
    return p[order], q[order]


def finite(p: Any, q: Any) -> FinitePair:
    """The pair of these outcomes."""
    below = tuple(np.r_[0.0, np.cumsum(one)] for one in (p, q))
    above = tuple(np.r_[0.0, np.cumsum(one[::-1])][::-1] for one in (p, q))
    return FinitePair(p, q, (below[0], below[1]), (above[0], above[1]), 1e-14)


@each_count
@pytest.mark.parametrize("seed", range(4))
def test_no_order_of_a_few_outcomes_costs_more_than_the_upper_end(
    count: RunCount, seed: int
) -> None:
    p, q = random_pair(seed, 5)
    ranked = Ranked(finite(p, q).split(1.0 / known(count).steepness, 0.3), known(count))
    for growth in (1.0, 1.7, 5.0, 20.0):
        worst = max(
            divergence(count, p[list(order)], q[list(order)], growth)
            for order in permutations(range(5))
        )
        assert worst <= ranked.upper(growth) * (1 + 1e-12)


@each_count
@pytest.mark.parametrize("seed", range(3))
def test_an_explicit_order_costs_the_lower_end(count: RunCount, seed: int) -> None:
    p, q = random_pair(100 + seed, 4)
    pieces = 5
    p, q = (np.repeat(one / pieces, pieces) for one in (p, q))
    ranked = Ranked(finite(p, q), known(count))
    for growth in (1.5, 4.0):
        order = best_merge(count, p, q, growth)
        attained = divergence(count, p[order], q[order], growth)
        assert ranked.lower(growth) <= attained * (1 + 1e-10) + 1e-13
        assert attained <= ranked.upper(growth) * (1 + 1e-10) + 1e-13
        # What cuts add is of the second order in the size of the pieces.
        fine = Ranked(finite(p, q).split(1.0 / known(count).steepness, 0.05), known(count))
        assert fine.lower(growth) >= attained * (1 - 1e-9) - 1e-12


def best_merge(count: RunCount, p: Any, q: Any, growth: float) -> list[int]:
    """The best merge of ranks around a threshold, by trying each step from the whole inward."""
    n = p.size
    below = [np.r_[0.0, np.cumsum(one)] for one in (p, q)]
    u, v = (phi(count, np.maximum(one - one[:, np.newaxis], 0.0)) for one in below)
    levels = u - growth * v
    value: dict[tuple[int, int], tuple[float, str]] = {(0, n): (0.0, "")}
    for width in range(n - 1, -1, -1):
        for left in range(n - width + 1):
            right = left + width
            ways = []
            if left:
                ways.append((value[left - 1, right][0], "below"))
            if right < n:
                rise = levels[left, right + 1] - levels[left, right]
                ways.append((value[left, right + 1][0] + rise, "above"))
            value[left, right] = max(ways)
    left = right = max(range(n), key=lambda t: value[t, t][0])
    order = []
    while (left, right) != (0, n):
        if value[left, right][1] == "below":
            left -= 1
            order.append(left)
        else:
            order.append(right)
            right += 1
    return order


@each_count
def test_the_increments_and_derivatives_are_those_of_the_definition(count: RunCount) -> None:
    function = known(count)
    w = np.array([0.0, 1e-6, 0.03, 0.4, 0.9])
    with mp.workdps(50):
        if isinstance(count, Poisson):
            m = mp.mpf(count.mean)

            def exact(x: Any) -> Any:
                return mp.exp(m * (x - 1))
        elif isinstance(count, Binomial):
            chance = mp.mpf(count.probability)

            def exact(x: Any) -> Any:
                return (1 - chance + chance * x) ** count.trials
        else:
            assert isinstance(count, TruncatedNegativeBinomial)
            eta, gamma = mp.mpf(count.eta), mp.mpf(count.gamma)

            def exact(x: Any) -> Any:
                z = 1 - (1 - gamma) * x
                if eta == 0:
                    return mp.log(z) / mp.log(gamma)
                return (z**-eta - 1) / (gamma**-eta - 1)

        for k, at in enumerate(w.tolist()):
            place = 1 - mp.mpf(at)
            gain = exact(place) - exact(place - mp.mpf(1e-7))
            assert function.gain(w, np.full(5, 1e-7))[k] == pytest.approx(float(gain), rel=1e-12)
            moved = exact(place - mp.mpf(at) * 1e-9) - exact(place - mp.mpf(at) * 1e-9 - 1e-7)
            assert abs(moved / gain - 1) <= 1e-9 * function.condition
            slopes = [mp.diff(exact, place, order) for order in (1, 2, 3)]
            top = mp.diff(exact, mp.one, 1)
            assert function.log_slope(w)[k] == pytest.approx(
                float(mp.log(slopes[0] / top)), abs=1e-12
            )
            assert function.curvature(w)[k] == pytest.approx(float(slopes[1]), rel=1e-11)
            assert function.third(w)[k] == pytest.approx(float(slopes[2]), rel=1e-11)
        assert function.mean >= float(top)
        assert function.mean == pytest.approx(float(top), rel=1e-11)


def test_the_largest_loss_of_tuned_responses_has_the_smallest_ratios_above() -> None:
    # The other response, ranked best, has z = gamma + (1-gamma) w at shares 1/(1+e) and e/(1+e).
    e = math.e
    pair = finite(np.array([1 / (1 + e), e / (1 + e)]), np.array([e / (1 + e), 1 / (1 + e)]))
    least, most = (0.1 + 0.9 * share for share in (1 / (1 + e), e / (1 + e)))
    expected = 1.0 + 2.0 * math.log(most / least)
    found = Ranked(pair, known(TruncatedNegativeBinomial(1.0, 0.1)))
    assert found.supremum == pytest.approx(expected, rel=1e-9)
    assert found.supremum >= expected
    assert found.upper(math.exp(expected) * (1 + 1e-6)) == 0.0
