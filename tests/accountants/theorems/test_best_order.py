"""The order that accountant "rdp" converts at."""

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import best_order

GAUSSIAN = hs.Gaussian(1.0)


def _epsilon_at(order: float, divergence: float, delta: float) -> float:
    """Return epsilon by proposition 12 of Canonne, Kamath and Steinke at one order."""
    log_ratio = math.log(delta) + math.log(order) - (order - 1) * math.log1p(-1 / order)
    return divergence - log_ratio / (order - 1)


@pytest.mark.parametrize(
    ("sigma", "runs", "delta"), [(1.0, 1, 1e-6), (4.0, 9, 1e-9), (1.0, 1, 0.1)]
)
def test_epsilon_is_that_of_the_best_order_and_others_give_more(
    sigma: float, runs: int, delta: float
) -> None:
    plan = hs.Gaussian(sigma) ** runs
    order = best_order(plan, delta)
    at, *others = (
        _epsilon_at(one, one * runs / (2 * sigma**2), delta)
        for one in (order, 1 + (order - 1) * 1.05, 1 + (order - 1) * 0.95)
    )
    assert hs.epsilon(plan, delta, accountant="rdp").upper == pytest.approx(at, rel=1e-9)
    assert at < min(others)


def test_where_delta_is_tiny_the_largest_loss_counts() -> None:
    assert best_order(hs.PureDP(0.1), 1e-300) == math.inf


@pytest.mark.parametrize(
    ("plan", "delta"),
    [(GAUSSIAN**0, 1e-6), (GAUSSIAN, 0.0), (GAUSSIAN, 1.0), (hs.Gaussian(0), 0.1)],
)
def test_where_no_order_decides_it_is_infinite(plan: hs.Mechanism, delta: float) -> None:
    assert best_order(plan, delta) == math.inf


def test_wrong_input_is_named() -> None:
    with pytest.raises(hs.errors.ParameterError, match="delta must be"):
        best_order(GAUSSIAN, 2)


def divergence(p: float, q: float, order: float) -> float:
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
