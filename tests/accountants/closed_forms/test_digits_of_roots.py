"""Answers of many digits where mu is a square root."""

import math
from fractions import Fraction

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp

# Where mu is irrational: each with its square.
IRRATIONAL = (
    (hs.mechanisms.TreeAggregation(10.0, leaves=6), Fraction(3, 100)),
    (hs.mechanisms.JointGaussian((8.0, 6.0)), Fraction(1, 64) + Fraction(1, 36)),
    (hs.mechanisms.NoisyIterations(10.0, 7, 1, step_size=0.1, smoothness=1), Fraction(4, 700)),
    (hs.mechanisms.GOPA(2.5, math.inf, hs.mechanisms.Graph.complete(3)), Fraction(4, 75)),
    (hs.mechanisms.LastIterate(3.0, 7, examples=9, step_size=0.1, smoothness=1), Fraction(28, 9)),
)


@pytest.mark.parametrize(("plan", "square"), IRRATIONAL, ids=str)
@pytest.mark.parametrize("digits", [50, 300])
def test_digits_of_a_gaussian_whose_mu_is_a_root_hold(
    plan: hs.Mechanism, square: Fraction, digits: int
) -> None:
    found = hs.epsilon(plan, 1e-6, digits=digits)
    with mp.workdps(digits + 30):
        mu = mp.sqrt(mp.mpf(square.numerator) / square.denominator)
        for end, sign in ((found.lower, 1), (found.upper, -1)):
            eps = mp.mpf(end)
            delta = mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)
            assert sign * (delta - mp.mpf(10) ** -6) >= 0
