"""Profiles known at some epsilons only."""

import math

import numpy as np
import pytest

from hockeystick.tradeoffs import GaussianProfile, IntervalProfile, ProfileTradeOff, TableProfile


def tabled(mu: float, knots: "np.typing.NDArray[np.float64]") -> TableProfile:
    """Return the table of a Gaussian profile."""
    values = GaussianProfile(mu).at(knots)
    return TableProfile(knots, values.lower, values.upper, math.inf, 0.0)


@pytest.mark.parametrize("mu", [0.05, 1.0, 6.0, 60.0])
@pytest.mark.parametrize("count", [1, 2, 3, 20, 200])
def test_the_profile_lies_within_its_table(mu: float, count: int) -> None:
    knots = (40.0 * mu + mu * mu) * np.linspace(0.0, 1.0, count) ** 2 if count > 1 else np.zeros(1)
    table, exact = tabled(mu, knots), GaussianProfile(mu)
    points = np.r_[knots, np.linspace(0.0, 1.2 * knots[-1] + 0.1, 1001)]
    found, truth = table.at(points), exact.at(points)
    assert (found.lower <= truth.upper).all()
    assert (truth.lower <= found.upper).all()
    assert (found.lower >= 0.0).all()
    assert (found.slope <= 0.0).all()


def test_a_finer_table_is_narrower() -> None:
    widths = []
    for count in (20, 80, 320):
        table = tabled(1.0, 6.0 * np.linspace(0.0, 1.0, count))
        found = table.at(np.linspace(0.1, 4.0, 777))
        widths.append(float((found.upper / found.lower).max() - 1.0))
    assert widths[0] > 10.0 * widths[1] > 100.0 * widths[2]
    assert widths[2] < 1e-2


def test_beyond_the_largest_loss_nothing_is_left_and_before_it_at_least_the_least() -> None:
    table = TableProfile(np.array([0.0, 1.0]), np.array([0.3, 0.2]), np.array([0.4, 0.3]), 3.0, 0.1)
    found = table.at(np.array([0.5, 1.0, 2.0, 3.0, 4.0]))
    assert found.lower == pytest.approx([0.2, 0.2, 0.1, 0.0, 0.0])
    assert found.upper[2:].tolist() == pytest.approx([0.3, 0.0, 0.0])
    assert table.infinity_mass_lower == 0.1


def test_the_trade_off_function_of_a_table_holds_that_of_its_profile() -> None:
    table = tabled(1.0, 40.0 * np.linspace(0.0, 1.0, 200) ** 2)
    wide = ProfileTradeOff((table, table))
    close = ProfileTradeOff((GaussianProfile(1.0), GaussianProfile(1.0)))
    alpha = np.r_[0.0, np.geomspace(1e-9, 1.0, 99)]
    for one, other in (
        (wide.bounds(alpha), close.bounds(alpha)),
        (wide.power_bounds(alpha), close.power_bounds(alpha)),
    ):
        assert (one[0] <= other[1]).all()
        assert (other[0] <= one[1]).all()
    lower, upper = wide.bounds(alpha)
    assert (upper - lower <= 0.02).all()


def test_parameters_known_within_ends_widen_both() -> None:
    wide = IntervalProfile(GaussianProfile(0.9), GaussianProfile(1.1))
    found = wide.at(np.array([0.5]))
    assert found.lower == GaussianProfile(0.9).at(np.array([0.5])).lower
    assert found.upper == GaussianProfile(1.1).at(np.array([0.5])).upper
    assert wide.infinity_mass_lower == 0.0
    assert wide.supremum == math.inf
