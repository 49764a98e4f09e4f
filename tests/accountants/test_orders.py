"""The orders at which K is read: where their conditions are met, in few evaluations."""

import math

import pytest

from hockeystick.accountants import orders
from hockeystick.accountants.contour._sampled_gaussians import first_order
from hockeystick.privacy_loss import SampledGaussianLoss
from hockeystick.privacy_loss.core.base import CGFEstimate
from hockeystick.privacy_loss.core.terms import total

# Rates, noise multipliers and counts: hits that decide, many hits, one run, another direction.
PLANS = [
    (1e-4, 1.0, 5000, True),
    (0.01, 1.0, 1000, True),
    (0.3, 4.0, 1, True),
    (1e-3, 2.0, 10_000, False),
]
STARTS = [0.01, 4.5, 1e4]
Terms = list[tuple[SampledGaussianLoss, int]]


def terms_of(plan: tuple[float, float, int, bool]) -> Terms:
    rate, noise, count, removing = plan
    return [(SampledGaussianLoss(rate, noise, removing), count)]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("start", STARTS)
def test_rough_orders_are_about_the_best(
    plan: tuple[float, float, int, bool], start: float
) -> None:
    terms = terms_of(plan)
    best = orders.optimal_order(terms, -20.0)
    assert orders.rough_optimal_order(terms, -20.0, start) == pytest.approx(best, rel=2e-3)
    for epsilon in (0.1, 2.0):
        best = orders.optimal_order_at(terms, epsilon)
        assert orders.rough_optimal_order_at(terms, epsilon, start) == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 2.0])
def test_the_saddle_minimises_the_integrand(
    plan: tuple[float, float, int, bool], start: float, epsilon: float
) -> None:
    terms = terms_of(plan)
    c = orders.saddle(terms, epsilon, start)

    def slope(x: float) -> float:
        return total(terms, x).first_derivative - epsilon - 1.0 / x - 1.0 / (1.0 + x)

    assert slope(0.998 * c) < 0.0 < slope(1.002 * c)


def test_a_search_from_a_good_start_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(terms: Terms, c: float) -> CGFEstimate:
        asked.append(c)
        return total(terms, c)

    monkeypatch.setattr(orders, "total", counted)
    terms = terms_of(PLANS[0])
    c = orders.rough_optimal_order(terms, -20.0, first_order(terms, -20.0))
    assert len(asked) <= 6
    # From there K is about exponential in the order, and the condition a wall.
    assert c == pytest.approx(-2.0 * math.log(1e-4), rel=0.1)
    asked.clear()
    orders.saddle(terms, 0.1, 1.01 * orders.saddle(terms, 0.1))
    assert len(asked) <= 12
