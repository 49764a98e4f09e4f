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


def test_the_coins_that_attain_a_divergence_cost_as_much() -> None:
    # Of one order 2 with divergence 1/2, some coin costs delta at this epsilon, almost.
    epsilon, tau = 1.0, 0.5
    worst = 0.0
    for p in np.geomspace(1e-3, 0.999, 600):
        low, high = 1e-12 * p, p
        for _ in range(80):
            q = 0.5 * (low + high)
            low, high = (q, high) if divergence(float(p), q, 2.0) > tau else (low, q)
        if divergence(high, float(p), 2.0) <= tau:
            worst = max(worst, delta_of_runs(float(p), high, 1, epsilon))
    upper = float(hs.delta(hs.RenyiDP({2: tau}), epsilon).upper)
    assert worst <= upper <= worst * 1.001


@pytest.mark.parametrize(
    "plan", [hs.RenyiDP({2: 0.5}), hs.RenyiDP({2: 0.5, 4: 1, 8: 2.5}), hs.RenyiDP({1.001: 0.2})]
)
def test_an_answer_is_what_the_conversion_says(plan: hs.RenyiDP) -> None:
    for delta in (1e-10, 1e-5, 0.05):
        converted = hs.convert(plan, hs.ApproxDP, delta=delta).epsilon
        assert hs.epsilon(plan, delta).upper == pytest.approx(converted, rel=1e-12)
    converted = hs.convert(plan, hs.ApproxDP, epsilon=0.7).delta
    assert hs.delta(plan, 0.7).upper == pytest.approx(converted, rel=1e-12)
