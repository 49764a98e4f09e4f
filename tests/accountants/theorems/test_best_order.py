"""The order that accountant "rdp" converts at."""

import math

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


def test_epsilon_of_samples_is_that_of_the_divergence_of_the_order() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(0.8), rate=0.05) ** 50
    order = best_order(plan, 1e-5)
    [(known, divergence)] = hs.convert(plan, hs.RenyiDP, orders=[order]).divergences
    assert known == order
    worse = hs.epsilon(plan, 1e-5, accountant="rdp").upper
    assert worse == pytest.approx(_epsilon_at(order, divergence, 1e-5), rel=1e-9)


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
