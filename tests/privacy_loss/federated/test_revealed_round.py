"""Several runs behind one coin that is seen: moments by mpmath, and where they are exact."""

import math
from fractions import Fraction

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import GaussianLoss, ObservedMixtureLoss, dominating_pair
from hockeystick.privacy_loss.federated import RevealedRoundLoss
from tests.precision.twins import sampled_gaussian_cumulant


@pytest.mark.parametrize(
    ("noise", "steps", "rate", "order"),
    # The last is beyond what floats can raise: the exponent and the logarithm of the rate.
    [(2.0, 20, 0.1, 2), (2.0, 20, 0.1, 40), (0.5, 4, 1e-300, 60)],
)
def test_the_bound_is_the_moment_of_a_coin_and_all_runs_rounded_up(
    noise: float, steps: int, rate: float, order: int
) -> None:
    run = hs.PoissonSubsampled(hs.Gaussian(noise), 0.1) ** steps
    loss = dominating_pair(hs.federated.RevealedRound(run, rate)).removing
    assert isinstance(loss, RevealedRoundLoss)
    with mp.workdps(40):
        inner = steps * sampled_gaussian_cumulant(0.1, noise, order)
        truth = mp.log1p(mp.expm1(inner) * mp.mpf(repr(rate)))
    assert truth <= loss.bound(order - 1.0) <= float(truth) * (1 + 1e-12)
    assert loss.cgf_estimate(order - 1.0).value == pytest.approx(float(truth), rel=1e-9)


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
