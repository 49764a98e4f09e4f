"""C_p(G_mu) against known values and its own definition in many digits."""

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff

RATES = np.array([1e-280, 1e-12, 1e-4, 0.1, 0.3, 0.5, 0.7, 0.9, 0.9999, 1 - 1e-12])


@pytest.mark.parametrize("mu", [0.01, 1.0, 4.0])
def test_rate_one_is_the_gaussian_and_rate_zero_the_identity(mu: float) -> None:
    alpha = RATES[1:]
    lower, upper = SampledGaussianTradeOff(mu, 1.0).bounds(alpha)
    low, high = hs.tradeoffs.GaussianTradeOff(mu).bounds(alpha)
    assert (lower <= high).all()
    assert (low <= upper).all()
    assert np.allclose(lower, low, rtol=1e-9)
    for nothing in (SampledGaussianTradeOff(mu, 0.0), SampledGaussianTradeOff(0.0, 0.3)):
        assert np.allclose(nothing(alpha), 1.0 - alpha, rtol=1e-12)
        assert np.allclose(nothing.power(alpha), alpha, rtol=1e-12)
        assert nothing.forward.at(np.zeros(1)).upper[0] == 0.0


@pytest.mark.parametrize("mu", [0.0, 1e-300, 1e-3, 30.0, 300.0, 1e6])
@pytest.mark.parametrize("rate", [0.0, 1e-300, 0.1, 0.5, 1.0])
def test_no_parameter_breaks_it(mu: float, rate: float) -> None:
    f = SampledGaussianTradeOff(mu, rate)
    alpha = np.r_[0.0, 5e-324, 1e-300, np.linspace(0.0, 1.0, 101), 1 - 1e-16, 1.0]
    alpha.sort()
    lower, upper = f.bounds(alpha)
    power = f._power(alpha)
    for part in (lower, upper, *power):
        assert np.isfinite(part).all()
    assert (0.0 <= lower).all()
    assert (lower <= upper).all()
    assert (power.lower <= power.upper).all()
    assert (lower <= (1.0 - power.lower) * (1 + 1e-15)).all()
    assert (f(alpha) <= upper).all()
    assert (lower[1:] <= upper[:-1]).all()


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.2), (0.3, 1e-6), (10.0, 0.01)])
def test_next_to_one_the_relative_digits_stay(mu: float, rate: float) -> None:
    f = SampledGaussianTradeOff(mu, rate)
    rest = np.array([1e-40, 1e-3])
    lower, upper = f.type_ii_of_complement(rest)[:2]
    assert (upper - lower <= 1e-9 * lower).all()
    with mp.workdps(100):
        p, m = mp.mpf(rate), mp.mpf(mu)
        for k in range(len(rest)):
            # 1 - f_p at each end lies on either side of the rest.
            for end, side in ((lower[k], 1), (upper[k], -1)):
                goal = mp.log(mp.mpf(end))
                x = mp.findroot(
                    lambda x, goal=goal: mp.log(mp.ncdf(x)) - goal, -mp.sqrt(-2 * goal), tol=1e-90
                )
                hit = p * mp.ncdf(x + m) + (1 - p) * mp.mpf(end)
                assert side * (mp.mpf(rest[k]) - hit) >= 0
