"""A little Gaussian noise more: an upper end, and by extrapolation a lower one."""

import math

import pytest

import hockeystick as hs
from hockeystick.accountants.contour._smoothed import smoothed_delta, smoothed_epsilon
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import LaplaceLoss, RandomizedResponsePairLoss

SAMPLED = hs.PoissonSubsampled(hs.DiscreteGaussian(2.0), 0.1)
PLANS = {
    "Laplace": hs.Laplace(2.0) ** 40,
    "discrete Gaussian": hs.DiscreteGaussian(2.0) ** 20,
    "Skellam": hs.mechanisms.Skellam(10.0) ** 30,
    "sampled discrete Gaussian": SAMPLED**60,
    "ternary response": hs.RandomizedResponse(1.0, 3) ** 50,
    "a mixture": SAMPLED**60 @ hs.Laplace(5.0) ** 7,
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_losses_that_do_not_fall_along_a_line_are_certified_as_narrow_as_asked(
    plan: hs.Mechanism, delta: float
) -> None:
    fine = hs.epsilon(plan, delta, accountant="contour", tolerance=1e-8)
    assert isinstance(fine, hs.Certified)
    assert fine.relative_width <= 1e-8
    lattice = hs.epsilon(plan, delta, accountant="prv", tolerance=1e-3)
    assert isinstance(lattice, hs.Certified)
    assert lattice.lower <= fine.upper
    assert fine.lower <= lattice.upper
    back = hs.delta(plan, fine.estimate, accountant="contour", tolerance=1e-6)
    assert isinstance(back, hs.Certified)
    assert back.relative_width <= 1e-6
    assert back.lower <= delta * (1 + 1e-5)
    assert delta * (1 - 1e-5) <= back.upper


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("epsilon", [0.3, 1.1, 2.9])
def test_the_ends_hold_the_binomial_sums(epsilon: float, tolerance: float) -> None:
    loss, runs = RandomizedResponsePairLoss(0.5), 12
    with mp.workdps(30):
        share = 1 / (1 + mp.exp(mp.mpf("-0.5")))
        exact = mp.fsum(
            mp.binomial(runs, k)
            * share**k
            * (1 - share) ** (runs - k)
            * max(-mp.expm1(epsilon - mp.mpf("0.5") * (2 * k - runs)), mp.zero)
            for k in range(runs + 1)
        )
    found = smoothed_delta(((loss, runs),), epsilon, tolerance)
    assert found is not None
    assert found.lower <= exact <= found.upper
    back = smoothed_epsilon(((loss, runs),), float(exact), tolerance)
    assert back is not None
    assert back.lower <= epsilon * (1 + 1e-12)
    assert epsilon * (1 - 1e-12) <= back.upper


def test_one_run_holds_its_closed_form() -> None:
    loss = LaplaceLoss(1.0)
    for epsilon in (0.1, 0.5, 0.9):
        found = smoothed_delta(((loss, 1),), epsilon, 1e-4)
        assert found is not None
        assert found.lower <= -math.expm1(0.5 * (epsilon - 1.0)) <= found.upper
        assert found.relative_width <= 1e-3
