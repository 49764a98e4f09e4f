"""Guarantees that state Renyi divergences at some orders, against pairs that satisfy them."""

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs


def divergence(p: float, q: float, order: float) -> float:
    """Return the Renyi divergence of two coins."""
    sides = ((p, q), (1 - p, 1 - q))
    return math.log(math.fsum(a**order * b ** (1 - order) for a, b in sides)) / (order - 1)


def delta_of_runs(p: float, q: float, runs: int, epsilon: float) -> float:
    """Return the hockey-stick divergence of some runs of two coins, by enumeration."""
    total = 0.0
    for sides in itertools.product(((p, q), (1 - p, 1 - q)), repeat=runs):
        one, other = math.prod(a for a, _ in sides), math.prod(b for _, b in sides)
        total += max(one - math.exp(epsilon) * other, 0.0)
    return total


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_no_pair_of_coins_within_the_divergences_costs_more(runs: int) -> None:
    rng = np.random.default_rng(runs)
    for _ in range(3):
        p, q = np.sort(rng.uniform(0.01, 0.99, 2))
        p = float(p) * 10.0 ** -rng.integers(0, 5)
        orders = (1.5, 2.0, 6.0)[: int(rng.integers(1, 4))]
        stated = {
            order: max(divergence(p, float(q), order), divergence(float(q), p, order))
            for order in orders
        }
        plan = hs.RenyiDP(stated) ** runs
        for epsilon in (0.0, 0.3, 2.0):
            truth = max(
                delta_of_runs(p, float(q), runs, epsilon), delta_of_runs(float(q), p, runs, epsilon)
            )
            assert hs.delta(plan, epsilon).upper >= truth * (1 - 1e-12)
            if 0.0 < truth < 1.0:
                assert hs.epsilon(plan, truth).upper >= epsilon * (1 - 1e-9)
