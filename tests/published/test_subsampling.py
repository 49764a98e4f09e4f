"""Published values and theorems of subsampling, checked to all their digits."""

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.core.registry import dominating_pair


def delta(plan: hs.Mechanism, epsilon: float) -> hs.Certified:
    """Return delta of a plan, proven."""
    found = hs.delta(plan, epsilon, tolerance=1e-10)
    assert isinstance(found, hs.Certified)
    return found


@pytest.mark.parametrize(
    ("rate", "mu", "order", "value"),
    [
        (0.01, 1.0, 2.0, 2.806392913427391081e-4),
        (0.01, 1.0, 8.0, 1.25882771219992459e-3),
        (0.01, 0.25, 8.0, 3.0822617628887583e-5),
    ],
)
def test_samples_of_a_fixed_size_have_the_divergences_of_their_pair(
    rate: float, mu: float, order: float, value: float
) -> None:
    """The integral over both halves of the loss, for replaced examples."""
    plan = hs.FixedSizeSubsampled(hs.Gaussian(1.0 / mu), round(rate * 1000), 1000)
    loss = dominating_pair(plan).removing
    assert loss is not None
    found = loss.cgf_bounds(order - 1.0)
    assert abs(found.midpoint - (order - 1.0) * value) <= found.radius + 1e-12 * value
    assert found.radius <= 1e-5 * found.midpoint


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


def test_a_fixed_size_under_add_remove_is_poisson_with_twice_the_sensitivity() -> None:
    """Zhu, Dong and Wang 2022, theorem 11: another example takes the missing one's place."""
    fixed = hs.FixedSizeSubsampled(hs.Gaussian(0.55), 256, 60_000, "add-remove")
    poisson = hs.PoissonSubsampled(
        hs.Gaussian(0.55),
        hs.DPSGD(examples=60_000, batch_size=256, steps=1, noise_multiplier=1.1).sampling_rate,
    )
    assert hs.epsilon(fixed**100, 1e-5).upper == pytest.approx(
        hs.epsilon(poisson**100, 1e-5).upper, rel=1e-12
    )


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


@pytest.mark.parametrize("sampled", ["poisson", "fixed"])
def test_generic_guarantees_are_amplified_as_published(sampled: str) -> None:
    """Balle, Barthe and Gaboardi 2018, theorems 8 and 9: gamma = 0.01, eps = 1, delta = 0."""
    plan = (
        hs.PoissonSubsampled(hs.PureDP(1.0), 0.01)
        if sampled == "poisson"
        else hs.FixedSizeSubsampled(hs.PureDP(1.0), 10, 1000)
    )
    value = mp.mpf("0.0170368632361765497863852527635")
    found = delta(plan, 0.0170368632361765)
    assert found.upper <= 1e-15
    epsilon = hs.epsilon(plan, 1e-12)
    assert isinstance(epsilon, hs.Certified)
    assert epsilon.lower <= value <= epsilon.upper * (1 + 1e-9)
