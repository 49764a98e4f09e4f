"""The worst order of the outcomes of one run, against every order and against explicit ones."""

import math
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from hockeystick.accountants.selection.orders import Generating, Ranked, generating
from hockeystick.accountants.selection.pairs import FinitePair
from hockeystick.mechanisms.selection.tuning import (
    Binomial,
    Poisson,
    RunCount,
    TruncatedNegativeBinomial,
)

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
    return np.power.outer(np.asarray(x), np.arange(masses(count).size)) @ masses(count)


def divergence(count: RunCount, p: Any, q: Any, growth: float) -> float:
    """H of the best of K draws, outcomes from the worst to the best."""
    best = [np.diff(phi(count, np.r_[0.0, np.cumsum(one)])) for one in (p, q)]
    return float(np.maximum(best[0] - growth * best[1], 0.0).sum())


def random_pair(seed: int, size: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(size, rng.uniform(0.3, 4.0))) + 1e-6 for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    order = np.argsort(p / q)
    return p[order], q[order]


def finite(p: Any, q: Any) -> FinitePair:
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
