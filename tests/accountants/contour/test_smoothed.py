"""A little Gaussian noise more: an upper end, and by extrapolation a lower one."""

import math

import pytest

from hockeystick.accountants.contour._smoothed import smoothed_delta, smoothed_epsilon
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import LaplaceLoss, RandomizedResponsePairLoss


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
