"""Renyi divergences from profiles against closed forms."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs import GaussianProfile, ProfileTradeOff
from hockeystick.tradeoffs.functions.laplace import LaplaceTradeOff
from hockeystick.tradeoffs.functions.piecewise import IDENTITY, ApproxTradeOff, discrete_tradeoff
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
from hockeystick.tradeoffs.operations.renyi_integral import by_integral, renyi_divergence


def assert_holds(ends: Any, truth: Any, width: float = 1e-6) -> None:
    """Assert that ends hold the truth within a relative width."""
    assert ends.lower <= truth <= ends.upper
    assert ends.upper - ends.lower <= width * truth


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 8.0])
def test_a_gaussian_s_profile_has_its_divergence(mu: float, order: float) -> None:
    f = ProfileTradeOff((GaussianProfile(mu), GaussianProfile(mu)))
    truth = mp.mpf(order) * mp.mpf(mu) ** 2 / 2
    assert_holds(renyi_divergence(f, order), truth)
    assert_holds(renyi_divergence(hs.tradeoffs.GaussianTradeOff(mu), order), truth, 1e-14)


@pytest.mark.parametrize(
    ("epsilon", "order", "value"),
    [(1.0, 2.0, "0.6191236299285928233997885"), (0.5, 10.0, "0.428690386467274833491612")],
)
def test_laplace_has_the_known_values(epsilon: float, order: float, value: str) -> None:
    assert_holds(renyi_divergence(LaplaceTradeOff(1.0 / epsilon), order), mp.mpf(value))


@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("order", [1.001, 3.0, 40.0, 1000.0])
def test_laplace_has_mironov_s_closed_form(scale: float, order: float) -> None:
    with mp.workdps(40):
        a, e = mp.mpf(order), 1 / mp.mpf(scale)
        inside = a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)
        assert_holds(renyi_divergence(LaplaceTradeOff(scale), order), mp.log(inside) / (a - 1))


@pytest.mark.parametrize(
    ("mu", "rate", "order", "value"),
    [
        (1.0, 0.01, 2.0, "2.806392913427391081e-4"),
        (1.0, 0.01, 8.0, "1.25882771219992459e-3"),
        (0.25, 0.01, 8.0, "3.0822617622888758e-5"),
    ],
)
def test_the_sampled_gaussian_has_the_known_values(
    mu: float, rate: float, order: float, value: str
) -> None:
    assert_holds(renyi_divergence(SampledGaussianTradeOff(mu, rate), order), mp.mpf(value))


@pytest.mark.parametrize(("epsilon", "order"), [(1.0, 2.0), (0.5, 8.0), (30.0, 1.5)])
def test_a_pure_budget_has_that_of_randomized_response(epsilon: float, order: float) -> None:
    with mp.workdps(40):
        e, a = mp.mpf(epsilon), mp.mpf(order)
        truth = e - mp.log((1 + mp.exp(-e)) / (1 + mp.exp(-(2 * a - 1) * e))) / (a - 1)
        assert_holds(renyi_divergence(ApproxTradeOff(epsilon, 0.0), order), truth)


@pytest.mark.parametrize("seed", range(4))
def test_discrete_outcomes_have_the_sum_of_the_worse_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    a = 3.5
    with mp.workdps(40):
        pairs = list(zip(map(mp.mpf, p), map(mp.mpf, q), strict=True))
        sums = [
            mp.fsum(x**a * y ** (1 - a) for x, y in pairs),
            mp.fsum(y**a * x ** (1 - a) for x, y in pairs),
        ]
        ways = [mp.log(one) / (a - 1) for one in sums]
    assert_holds(renyi_divergence(discrete_tradeoff(p, q), a), max(ways))


@pytest.mark.parametrize("f", [ApproxTradeOff(1.0, 1e-9), discrete_tradeoff([0, 1], [0.1, 0.9])])
def test_it_is_infinite_where_delta_stays(f: hs.tradeoffs.TradeOff) -> None:
    assert renyi_divergence(f, 2.0) == (math.inf, math.inf)


def test_no_loss_is_no_divergence() -> None:
    assert by_integral(IDENTITY, 3.0) == (0.0, 0.0)


def test_beyond_floats_the_ends_stay_ends() -> None:
    f = ProfileTradeOff((GaussianProfile(1.0), GaussianProfile(1.0)))
    ends = renyi_divergence(f, 500.0)
    assert ends.lower <= 250.0 <= ends.upper


@pytest.mark.parametrize("order", [1, 0.5, float("inf"), float("nan"), "2"])
def test_only_orders_above_one_will_do(order: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="order must be"):
        renyi_divergence(IDENTITY, order)
