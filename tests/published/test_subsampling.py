"""Published values and theorems of subsampling, checked to all their digits."""

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.privacy_loss.core.base import dominating_pair


def delta(plan: hs.Mechanism, epsilon: float) -> hs.Certified:
    found = hs.delta(plan, epsilon, tolerance=1e-10)
    assert isinstance(found, hs.Certified)
    return found


@pytest.mark.parametrize("order", [2, 8])
def test_the_pair_costs_less_than_the_general_bound(order: int) -> None:
    """Wang, Balle and Kasiviswanathan 2019, theorem 9, for the Gaussian and integer orders."""
    rate, mu = 0.01, 1.0
    pair = dominating_pair(hs.FixedSizeSubsampled(hs.Gaussian(1.0), 10, 1000)).removing
    assert pair is not None

    def curve(at: float) -> float:
        return 0.5 * at * mu * mu

    least = min(4.0 * math.expm1(curve(2)), 2.0 * math.exp(curve(2)))
    total = rate**2 * math.comb(order, 2) * least
    total += sum(
        rate**j * math.comb(order, j) * 2.0 * math.exp((j - 1) * curve(j))
        for j in range(3, order + 1)
    )
    known = pair.cgf_bounds(order - 1.0)
    assert known.midpoint + known.radius < 0.6 * math.log1p(total)


def test_sampling_with_replacement_has_the_rate_and_the_profile_of_its_theorem() -> None:
    """Balle, Barthe and Gaboardi 2018, theorem 10: n = 1000, m = 10, base GDP(0.5), eps = 1."""
    gamma = -math.expm1(10 * math.log1p(-1e-3))
    assert gamma == pytest.approx(0.00995511979025179012, rel=1e-14)
    epsilon = math.log1p(gamma * math.expm1(1.0))
    assert epsilon == pytest.approx(0.0169610462140018167, rel=1e-14)
    found = hs.delta(hs.mechanisms.WithReplacementSubsampled(hs.Gaussian(2.0), 10, 1000), epsilon)
    assert found.lower < 7.33886400959e-5 <= found.upper
    assert found.upper == pytest.approx(7.33886400959e-5, rel=1e-3)


def test_the_same_noise_and_batches_cost_ten_times_as_much_without_poisson_sampling() -> None:
    """Lebeda et al. 2024: epsilon about 1 under Poisson sampling, above 10 at a fixed size."""
    plan: dict[str, Any] = {
        "examples": 100_000,
        "batch_size": 100,
        "steps": 10_000,
        "noise_multiplier": 0.7,
    }
    poisson = hs.epsilon(hs.DPSGD(**plan), 1e-6)
    fixed = hs.epsilon(hs.DPSGD(**plan, sampling="fixed-size", adjacency="add-remove"), 1e-6)
    assert isinstance(poisson, hs.Certified)
    assert isinstance(fixed, hs.Certified)
    assert 0.5 < poisson.upper < 2.5
    assert fixed.lower > 10.0
