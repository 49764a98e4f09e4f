"""What Renyi divergences say of f: printed values, and the divergences themselves as the oracle."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs.functions.renyi import RenyiProfile, RenyiTradeOff
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiCurve, RenyiLine, RenyiPoints

RATES = [1e-12, 1e-5, 0.01, 0.05, 0.2, 0.4, 0.7, 0.99, 1 - 1e-9]
CURVES: list[RenyiCurve] = [
    RenyiPoints([(2, 0.5)]),
    RenyiPoints([(4, 1), (1.5, 0.6)]),
    RenyiPoints([(1.1, 1e-3)]),
    RenyiPoints([(30, 12)]),
]


def divergence(a: Any, x: Any, y: Any) -> Any:
    """Return D_a of (1 - y, y) from (x, 1 - x)."""
    return mp.log((1 - y) ** a * x ** (1 - a) + y**a * (1 - x) ** (1 - a)) / (a - 1)


@pytest.mark.parametrize(
    ("order", "size", "rate", "value"),
    [(2, 0.5, 0.1, 0.658370294949044948315063), (4, 1, 0.05, 0.7773506488335668365106915)],
)
def test_the_printed_values_come_out(order: float, size: float, rate: float, value: float) -> None:
    f = RenyiTradeOff(RenyiPoints([(order, size)]))
    lower, upper = f.bounds(rate)
    assert lower <= value <= upper
    assert upper - lower <= 1e-12 * value


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_the_ends_lie_on_either_side_of_where_the_larger_divergence_is_reached(
    curve: RenyiPoints,
) -> None:
    f = RenyiTradeOff(curve)
    lower, upper = f.bounds(RATES)
    power_lower, power_upper = f.power_bounds(RATES)

    def over(x: Any, y: Any) -> bool:
        return y <= 0 or any(
            max(divergence(mp.mpf(a), x, y), divergence(mp.mpf(a), y, x)) > size
            for a, size in curve.divergences
        )

    with mp.workdps(60):
        for k, rate in enumerate(RATES):
            x = mp.mpf(rate)
            assert over(x, mp.mpf(lower[k]))
            assert over(x, 1 - mp.mpf(power_upper[k]))
            assert not over(x, min(mp.mpf(upper[k]), 1 - x))
            assert not over(x, min(1 - mp.mpf(power_lower[k]), 1 - x))
            assert upper[k] - lower[k] <= 1e-6 * upper[k]
            assert power_upper[k] - power_lower[k] <= 1e-6 * power_upper[k]


@pytest.mark.parametrize("divergences", [{2: 0.5}, {1.5: 0.6, 4: 1}, {1.1: 1e-3, 30: 12}], ids=str)
def test_the_profile_holds_the_best_conversion(divergences: dict[float, float]) -> None:
    epsilons = [0.0, 0.3, 1.0, 2.0]
    found = RenyiProfile(RenyiPoints(divergences.items())).at(np.array(epsilons))
    for k, epsilon in enumerate(epsilons):
        best = hs.convert(hs.RenyiDP(divergences), hs.ApproxDP, epsilon=epsilon).delta
        assert found.lower[k] <= best <= found.upper[k] * (1 + 1e-12)


@pytest.mark.parametrize("curve", [*CURVES, RenyiLine(0.3), RenyiLine(0.3, 4)], ids=str)
def test_it_is_symmetric_falls_and_is_dual_to_its_profile(curve: RenyiCurve) -> None:
    f = RenyiTradeOff(curve)
    assert f.inverse() is f
    assert f.is_symmetric
    alpha = np.linspace(0, 1, 201)
    values = f(alpha)
    assert (np.diff(values) <= 1e-12).all()
    assert f(0.0) == 1.0
    assert f(1.0) == 0.0
    inner = values[1:-1]
    assert f(inner) == pytest.approx(alpha[1:-1], rel=1e-6, abs=1e-9)
    epsilons = np.array([0.0, 0.05, 0.3, 1.0, 3.0])
    deltas = RenyiProfile(curve).at(epsilons)
    net = np.exp(np.linspace(-40, 0, 4000))
    for epsilon, upper in zip(epsilons, deltas.upper, strict=True):
        reached = float(np.max(1 - f(net) - math.exp(epsilon) * net))
        assert reached <= upper * (1 + 1e-9) + 1e-15
        if len(curve.orders) == 1:
            assert upper <= reached * (1 + 1e-3) + 1e-15
    assert (deltas.lower <= deltas.estimate).all()
    assert (deltas.estimate <= deltas.upper).all()


@pytest.mark.parametrize("curve", [RenyiPoints([(2, 0.0)]), RenyiLine(0.0)], ids=str)
def test_no_divergence_is_no_loss(curve: RenyiCurve) -> None:
    f = RenyiTradeOff(curve)
    assert f([0.0, 0.25, 1.0]) == pytest.approx([1.0, 0.75, 0.0], rel=1e-14)
    assert f.delta(0.0).upper == 0.0


def test_points_that_convexity_implies_are_dropped() -> None:
    curve = RenyiPoints([(2, 0.5), (3, 2.0), (4, 0.9), (4, 5.0)])
    assert curve.divergences == ((2.0, 0.5), (4.0, 0.9))
    assert RenyiPoints([(2, 3.0), (5, 0.5)]).divergences == ((5.0, 0.5),)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: RenyiPoints([]), "divergences must be at least one pair"),
        (lambda: RenyiPoints([(1, 1)]), "order must be a finite number > 1"),
        (lambda: RenyiPoints([(2, math.inf)]), "divergence must be a finite number >= 0"),
        (lambda: RenyiLine(-1), "rho must be a finite number >= 0"),
        (lambda: RenyiLine(1, 1), "omega must be a number > 1 or inf"),
    ],
)
def test_wrong_curves_are_named(make: Any, told: str) -> None:
    with pytest.raises(hs.errors.ParameterError) as refusal:
        make()
    assert told in str(refusal.value)
