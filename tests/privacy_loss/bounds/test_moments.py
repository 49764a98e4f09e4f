"""The cumulants of losses and their enclosures, against raw moments by quadrature in 30 digits."""

from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

import pytest

from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss import (
    GaussianLoss,
    NoiselessLoss,
    PrivacyLoss,
    RandomizedResponsePairLoss,
    SampledGaussianLoss,
)
from hockeystick.privacy_loss.bounds.cumulants import FourCumulants
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss

Truth: TypeAlias = tuple[list[mpf], mpf]

LOSSES: Final[tuple[PrivacyLoss, ...]] = (
    SampledGaussianLoss(0.01, 1.0, removing=True),
    SampledGaussianLoss(1e-6, 1.0, removing=False),
    SampledGaussianLoss(0.3, 0.4, removing=True),
    SampledGaussianLoss(0.99, 8.0, removing=False),
    FixedSizeGaussianLoss(0.01, 1.0),
    FixedSizeGaussianLoss(1e-6, 0.5),
    FixedSizeGaussianLoss(0.6, 4.0),
    RandomizedResponsePairLoss(0.1),
    RandomizedResponsePairLoss(3.0),
    GaussianLoss(0.7),
)
SIDES: Final = ("under_p", "under_q")

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)
each_side = pytest.mark.parametrize("side", SIDES)


@cache
def truth(loss: PrivacyLoss, side: str) -> Truth:
    """Return the first four cumulants and the third absolute central moment."""
    with mp.workdps(30):
        expected = expectation(loss, side == "under_p")
        m1, m2, m3, m4 = (expected(lambda x, k=k: x**k) for k in (1, 2, 3, 4))
        k2 = m2 - m1**2
        k3 = m3 - 3 * m1 * m2 + 2 * m1**3
        k4 = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4 - 3 * k2**2
        return [m1, k2, k3, k4], expected(lambda x: abs(x - m1) ** 3)


def expectation(loss: PrivacyLoss, by_p: bool) -> Callable[[Callable[..., mpf]], mpf]:
    """Return the expectation of functions of the loss under one of its distributions."""
    if isinstance(loss, RandomizedResponsePairLoss):
        eps = mpf(repr(loss.epsilon))
        likely = 1 / (1 + mp.exp(-eps if by_p else eps))
        return lambda g: likely * g(eps) + (1 - likely) * g(-eps)
    assert isinstance(loss, GaussianLoss | SampledGaussianLoss | FixedSizeGaussianLoss)
    mu = 1 / mpf(repr(loss.noise_multiplier))
    if isinstance(loss, GaussianLoss):
        mean = mu * mu / 2 if by_p else -mu * mu / 2
        return lambda g: integral(lambda u: mp.npdf(u) * g(mean + mu * u), -15, 15, [-mean / mu])
    p = mpf(repr(loss.rate))

    @cache
    def at(u: mpf) -> tuple[mpf, mpf, mpf]:
        ratio = 1 + p * mp.expm1(mu * u - mu * mu / 2)
        return mp.npdf(u), ratio, mp.log(ratio)

    if isinstance(loss, SampledGaussianLoss):
        sign = 1 if loss.removing else -1
        mixed = loss.removing == by_p

        def one(g: Callable[..., mpf], u: mpf) -> mpf:
            density, ratio, log = at(u)
            return density * (ratio if mixed else 1) * g(sign * log)

        return lambda g: integral(lambda u: one(g, u), -13, 13 + 4 * mu, [mu / 2])
    atom = (1 - p) * mp.erf(mu / mp.sqrt(8))
    sign = 1 if by_p else -1

    def both(g: Callable[..., mpf], u: mpf) -> mpf:
        density, ratio, log = at(u)
        return density * (ratio * g(sign * log) + g(-sign * log))

    return lambda g: atom * g(mpf(0)) + integral(lambda u: both(g, u), mu / 2, 13 + 4 * mu, [])


def integral(f: Callable[[mpf], mpf], low: mpf, high: mpf, corners: list[mpf]) -> mpf:
    """Return an integral over panels of length about 2."""
    whole = [mpf(k) for k in range(int(mp.floor(low)), int(mp.ceil(high)) + 1, 2)]
    inner = [x for x in sorted(whole + corners) if low < x < high]
    return mp.quad(f, [low, *inner, high])


@each_loss
@each_side
def test_the_cumulants_are_those_of_quadrature_without_cancellation(
    loss: PrivacyLoss, side: str
) -> None:
    found: FourCumulants = getattr(loss.cumulants(), side)
    mean, variance, third, fourth = truth(loss, side)[0]
    assert found.mean == pytest.approx(float(mean), rel=1e-12)
    assert found.variance == pytest.approx(float(variance), rel=1e-12)
    # Relative to a power of the deviation, which is their natural size.
    square = float(variance)
    assert found.third == pytest.approx(float(third), rel=1e-11, abs=1e-12 * square**1.5)
    assert found.fourth == pytest.approx(float(fourth), rel=1e-11, abs=1e-12 * square**2)


@each_loss
@each_side
def test_the_enclosures_hold_the_truth_and_are_narrow(loss: PrivacyLoss, side: str) -> None:
    found = getattr(loss.moment_bounds(), side)
    (mean, variance, _, _), absolute = truth(loss, side)
    assert found.mean_lower <= mean <= found.mean_upper
    assert found.variance_lower <= variance <= found.variance_upper
    assert found.mean_upper - found.mean_lower <= 2e-3 * abs(mean)
    assert found.variance_upper - found.variance_lower <= 2e-3 * variance
    if isinstance(loss, GaussianLoss):
        assert found.third_upper == 0.0
    else:
        assert absolute <= found.third_upper <= 1.002 * absolute


@pytest.mark.parametrize("scale", [1.0 - 2e-16, 1.0 + 4e-16])
def test_the_enclosures_hold_for_the_neighbouring_readings_of_the_parameters(scale: float) -> None:
    nearby = SampledGaussianLoss(0.01 * scale, 1.0 / scale, removing=True).cumulants()
    bounds = SampledGaussianLoss(0.01, 1.0, removing=True).moment_bounds()
    assert nearby is not None
    assert bounds is not None
    near, found = nearby.under_p, bounds.under_p
    assert found.mean_lower <= near.mean <= found.mean_upper
    assert found.variance_lower <= near.variance <= found.variance_upper


@pytest.mark.parametrize("noise", [0.04, 0.05, 0.2, 900.0])
@pytest.mark.parametrize("rate", [1e-10, 1e-4, 0.5, 1 - 1e-6])
@pytest.mark.parametrize("removing", [True, False])
def test_the_enclosures_hold_the_cumulants_at_the_edge_of_reach(
    rate: float, noise: float, removing: bool
) -> None:
    loss = SampledGaussianLoss(rate, noise, removing)
    for side in SIDES:
        law, found = getattr(loss.cumulants(), side), getattr(loss.moment_bounds(), side)
        assert found.mean_lower <= law.mean <= found.mean_upper
        assert found.variance_lower <= law.variance <= found.variance_upper
        assert abs(law.third) <= found.third_upper


@pytest.mark.parametrize(
    "loss",
    [
        NoiselessLoss(0.1, removing=True),
        RandomizedResponsePairLoss(1.0, 1e-6),
        SampledGaussianLoss(1e-12, 1.0, removing=True),
        SampledGaussianLoss(0.1, 1e-3, removing=True),
        FixedSizeGaussianLoss(0.1, 1e-3),
    ],
    ids=str,
)
def test_what_is_not_known_or_out_of_reach_is_refused(loss: PrivacyLoss) -> None:
    assert loss.cumulants() is None
    assert loss.moment_bounds() is None


@pytest.mark.parametrize("epsilon", [1e-100, 1e-160, 700.0, 745.0])
def test_a_third_moment_below_every_float_is_not_taken_for_0(epsilon: float) -> None:
    assert RandomizedResponsePairLoss(epsilon).moment_bounds() is None
