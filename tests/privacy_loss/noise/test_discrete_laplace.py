"""The loss of discrete Laplace noise."""

import hockeystick as hs
from hockeystick.privacy_loss import (
    DiscreteLaplaceLoss,
    RandomizedResponsePairLoss,
    dominating_pair,
)


def test_where_the_reciprocal_is_a_decimal_many_runs_have_the_closed_form() -> None:
    assert dominating_pair(hs.DiscreteLaplace(2.5)).removing == RandomizedResponsePairLoss(0.4)
    assert dominating_pair(hs.DiscreteLaplace(3.0)).removing == DiscreteLaplaceLoss(3.0, 1)
    noise = hs.epsilon(hs.DiscreteLaplace(2.5) ** 50, delta=1e-6)
    coins = hs.epsilon(hs.RandomizedResponse(0.4) ** 50, delta=1e-6)
    assert noise.accountant == "closed-form"
    assert (noise.lower, noise.upper) == (coins.lower, coins.upper)


def test_the_largest_loss_is_the_sensitivity_over_the_scale() -> None:
    for scale, shift in ((3.0, 7), (0.1, 3), (1e6, 2)):
        found = DiscreteLaplaceLoss(scale, shift).supremum
        assert shift / scale <= found <= shift / scale * (1 + 2.0**-50)
    assert hs.delta(hs.DiscreteLaplace(3, 2), epsilon=0.667).upper == 0.0
