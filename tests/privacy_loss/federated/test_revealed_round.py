"""Several runs behind one coin that is seen: moments by mpmath, and where they are exact."""

import math
from fractions import Fraction

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss import GaussianLoss, ObservedMixtureLoss, dominating_pair
from hockeystick.privacy_loss.federated import RevealedRoundLoss

STEP = hs.PoissonSubsampled(hs.Gaussian(2.0), 0.1)
PLAN = hs.federated.RevealedRound(STEP**20, Fraction(1, 10))


def sampled_moment(order: int, noise: float, rate: str) -> mpf:
    """E_P[e^(c L)] of one removing run, c = order - 1: a binomial sum."""
    q, mu = mp.mpf(rate), 1 / mp.mpf(noise)
    terms = (
        mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp((k * k - k) * mu * mu / 2)
        for k in range(order + 1)
    )
    return mp.fsum(terms)


def loss_of(plan: hs.federated.RevealedRound) -> RevealedRoundLoss:
    loss = dominating_pair(plan).removing
    assert isinstance(loss, RevealedRoundLoss)
    return loss


@pytest.mark.parametrize("order", [2, 40])
def test_the_bound_is_the_moment_of_a_coin_and_all_runs_rounded_up(order: int) -> None:
    loss = loss_of(PLAN)
    with mp.workdps(40):
        inner = sampled_moment(order, 2.0, "0.1") ** 20
        truth = mp.log(1 + (inner - 1) / 10)
    assert truth <= loss.bound(order - 1.0) <= float(truth) * (1 + 1e-12)
    assert loss.cgf_estimate(order - 1.0).value == pytest.approx(float(truth), rel=1e-9)


def test_beyond_what_floats_can_raise_the_bound_is_the_exponent_and_the_logarithm_of_the_rate() -> (
    None
):
    loss = loss_of(
        hs.federated.RevealedRound(hs.PoissonSubsampled(hs.Gaussian(0.5), 0.1) ** 4, 1e-300)
    )
    with mp.workdps(40):
        inner = sampled_moment(60, 0.5, "0.1") ** 4
        truth = mp.log(1 + (inner - 1) * mp.mpf("1e-300"))
    assert truth <= loss.bound(59.0) <= float(truth) * (1 + 1e-12)
    assert loss.cgf_estimate(59.0).value == pytest.approx(float(truth), rel=1e-9)


def test_gaussians_are_one_gaussian_and_exact() -> None:
    four = dominating_pair(hs.federated.RevealedRound(hs.Gaussian(4.0) ** 4, Fraction(1, 10)))
    assert four == dominating_pair(hs.mechanisms.RevealedSample(hs.Gaussian(2.0), Fraction(1, 10)))
    assert isinstance(four.removing, ObservedMixtureLoss)
    assert four.removing.closed_form_profile is not None
    mixed = dominating_pair(
        hs.federated.RevealedRound(hs.Gaussian(3.0) @ hs.Gaussian(1.5) ** 3, 0.5)
    ).removing
    assert isinstance(mixed, ObservedMixtureLoss)
    assert mixed.closed_form_profile is not None
    (inside,) = (loss for _, loss in mixed.components if loss is not None)
    assert isinstance(inside, GaussianLoss)
    with mp.workdps(40):
        truth = 1 / mp.sqrt(mp.mpf(1) / 9 + 3 / mp.mpf("2.25"))
        noise = Fraction(inside.noise_multiplier)
        assert abs(mp.mpf(noise.numerator) / noise.denominator / truth - 1) < 1e-30


@pytest.mark.parametrize("one", [hs.federated.RevealedRound, hs.mechanisms.RevealedSample])
def test_a_share_that_no_float_is_shows_all_at_a_delta_below_it(one: type) -> None:
    third = Fraction(1, 3)
    shown = one(hs.Gaussian(0.0), third)
    below, above = 1 / 3, math.nextafter(1 / 3, 1.0)
    assert Fraction(below) < third < Fraction(above)
    assert hs.epsilon(shown, below).lower == math.inf
    assert hs.epsilon(shown, above).upper == 0.0
    found = hs.delta(shown, 1.0)
    assert Fraction(found.lower) <= third <= Fraction(found.upper)
    decimal = one(hs.Gaussian(0.0), Fraction(3, 10))
    assert hs.epsilon(decimal, 0.3).upper == hs.epsilon(one(hs.Gaussian(0.0), 0.3), 0.3).upper == 0
