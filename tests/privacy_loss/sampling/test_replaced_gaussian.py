"""The Poisson-subsampled Gaussian under replace-one: its masses, and that no pair costs more."""

import math
from typing import Any

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.sampling.replaced_gaussian import ReplacedGaussianLoss

CASES = [(0.01, 1.0), (0.5, 0.5), (1e-6, 0.7), (0.9, 20.0), (0.2, 0.15)]
each = pytest.mark.parametrize(("rate", "noise"), CASES)


def output(loss: Any, rate: float, mu: Any) -> Any:
    """Return the output at which the loss is l, by a root of the ratio of densities."""
    low, high = mp.mpf(-200), mp.mpf(200)

    def excess(x: Any) -> Any:
        up, down = (
            mp.log((1 - rate) + rate * mp.exp(side * mu * x - mu * mu / 2)) for side in (1, -1)
        )
        return up - down - loss

    for _ in range(260):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return low


def tail(x: Any) -> Any:
    """Return ``P[N(0,1) > x]``."""
    return mp.erfc(x / mp.sqrt(2)) / 2


@each
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.1, 1.0, 4.0])
def test_the_profile_is_the_difference_of_the_tails(
    rate: float, noise: float, epsilon: float
) -> None:
    loss = ReplacedGaussianLoss(rate, noise)
    with mp.workdps(50):
        p, mu = mp.mpf(repr(rate)), 1 / mp.mpf(repr(noise))
        x = output(mp.mpf(epsilon), p, mu)
        first = (1 - p) * tail(x) + p * tail(x - mu)
        second = (1 - p) * tail(x) + p * tail(x + mu)
        exact = first - mp.exp(mp.mpf(epsilon)) * second
        assert loss.delta(mp.mpf(epsilon)) == pytest.approx(float(exact), rel=1e-13, abs=1e-40)
        masses = loss.cells(np.array([epsilon, math.inf]))
        above = mp.exp(masses.log_p[0]) - mp.exp(mp.mpf(epsilon)) * mp.exp(masses.log_q[0])
        slack = mp.exp(masses.log_p[0]) * 4 * masses.error[0]
        assert abs(above - exact) <= slack
