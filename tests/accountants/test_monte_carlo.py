"""Upper confidence bounds by chance: above integrals in most of many draws, and close to them."""

import pytest

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
