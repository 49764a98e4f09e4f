"""Renyi divergences of sampled Gaussians, both ways, next to sums and integrals by mpmath."""

import itertools
import math
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import SampledGaussianLoss

RATES: Final = (1e-6, 1e-3, 0.05, 0.5, 0.99)


def by_binomial_sum(noise: float, rate: float, order: int) -> Any:
    """``ln sum of binom(a, k) (1-q)^(a-k) q^k e^((k^2-k) / (2 s^2))``: K for removing."""
    s, q = mp.mpf(repr(noise)), mp.mpf(repr(rate))
    terms, chance = [], (1 - q) ** order
    for k in range(order + 1):
        terms.append(chance * mp.exp((k * k - k) / (2 * s * s)))
        chance *= q / (1 - q) * (order - k) / (k + 1)
    return mp.log(mp.fsum(terms))


def ends(noise: float, rate: float, order: float, removing: bool) -> tuple[float, float]:
    """The proven ends of K."""
    found = SampledGaussianLoss(rate, noise, removing).cgf_bounds(order - 1.0)
    return found.midpoint - found.radius, found.midpoint + found.radius


@pytest.mark.parametrize("noise", [0.001, 0.02, 0.05])
def test_noise_out_of_reach_of_a_quadrature_still_has_close_ends(noise: float) -> None:
    with mp.workdps(40):
        for rate, order in itertools.product((*RATES, 1.0 - 2.0**-53), (2, 5, 40)):
            low, high = ends(noise, rate, order, removing=True)
            assert low <= by_binomial_sum(noise, rate, order) <= high
            assert high - low <= 1e-8 * high


@pytest.mark.parametrize("order", [1.2, 2, 64])
def test_rates_next_to_0_have_ends_too(order: float) -> None:
    # E[r^w] is between its norms, which are the same here: what is not sampled is e^-700 of it.
    with mp.workdps(40):
        power = mp.mpf(order)
        norm = power * (mp.log(mp.mpf("1e-305")) + (power - 1) * 10_000 / 2)
        low, high = ends(0.01, 1e-305, order, removing=True)
        slack = mp.mpf(10) ** -30
        assert low - slack <= max(norm, 0)
        assert norm - slack <= high < math.inf


@pytest.mark.parametrize(("noise", "order"), [(1e-300, 2.0), (1e-150, 1e10), (0.1, 1e300)])
def test_what_no_float_can_hold_is_infinite_and_never_nan(noise: float, order: float) -> None:
    assert SampledGaussianLoss(0.05, noise, True).cgf_bounds(order - 1.0).midpoint == math.inf
    with pytest.raises(hs.errors.IncompatibleError, match="infinite, or nothing is known"):
        hs.convert(hs.PoissonSubsampled(hs.Gaussian(noise), 0.05), hs.RenyiDP, orders=[order])


def test_divergences_of_little_noise_are_those_of_the_sum() -> None:
    sampled = hs.PoissonSubsampled(hs.Gaussian(0.1), rate=0.05)
    ((_, found),) = hs.convert(sampled, hs.RenyiDP, orders=[25]).divergences
    with mp.workdps(40):
        truth = float(by_binomial_sum(0.1, 0.05, 25) / 24)
    assert truth <= found <= truth * (1 + 1e-12)
    assert math.isclose(found, 1246.879445548, rel_tol=1e-12)
