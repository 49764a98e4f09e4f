"""Upper confidence bounds by chance: above integrals in most of many draws, and close to them."""

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants import monte_carlo_delta
from hockeystick.mechanisms import BallsInBins


# By quadrature over the two bins, in the worse order.
@pytest.mark.parametrize(
    ("coefficients", "epsilon", "truth"),
    [
        ((1.0,), 0.0, 0.279818756668602),
        ((1.0,), 1.0, 0.0464479363816171),
        ((1.0,), 3.0, 6.24336167571227e-05),
        ((1.0, 0.6), 0.0, 0.37852170891996),
        ((1.0, 0.6), 1.0, 0.123029944463676),
        ((1.0, 0.6), 3.0, 0.00141470777583085),
    ],
)
def test_a_bound_is_closely_above_the_integral(
    coefficients: tuple[float, ...], epsilon: float, truth: float
) -> None:
    plan = BallsInBins(1.5, coefficients, 4, bins=2)
    found = monte_carlo_delta(plan, epsilon, samples=200_000, confidence=0.999, seed=1).value
    assert truth <= found <= 1.05 * truth


def test_more_confidence_asks_for_more() -> None:
    plan = BallsInBins(1.5, (1.0, 0.6), 4, bins=2)
    levels = (0.1, 0.5, 0.9, 0.999)
    found = [monte_carlo_delta(plan, 1.0, samples=999, confidence=c, seed=1).value for c in levels]
    assert found[0] < found[1] < found[2] < found[3]


@pytest.mark.parametrize(
    ("name", "plan", "options"),
    [
        ("plan", hs.Gaussian(1.0), {}),
        ("plan", BallsInBins(0.0, (1.0,), 4, 2), {}),
        ("plan", BallsInBins(1.0, (0.0,), 4, 2), {}),
        ("plan", BallsInBins(1.0, (1.0,), 4, 2001), {}),
        ("epsilon", BallsInBins(1.0, (1.0,), 4, 2), {"epsilon": math.inf}),
        ("samples", BallsInBins(1.0, (1.0,), 4, 2), {"samples": 1}),
        ("confidence", BallsInBins(1.0, (1.0,), 4, 2), {"confidence": 1.0}),
        ("seed", BallsInBins(1.0, (1.0,), 4, 2), {"seed": -1}),
    ],
)
def test_a_value_outside_its_domain_is_refused_by_name(
    name: str, plan: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        monte_carlo_delta(plan, **{"epsilon": 1.0, **options})
    assert caught.value.name == name
