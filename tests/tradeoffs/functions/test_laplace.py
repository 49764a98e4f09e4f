"""The Laplace trade-off function against tests by a threshold, in many digits."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs.functions.laplace import LaplaceProfile, LaplaceTradeOff

RATES = np.array([1e-280, 1e-12, 0.01, 0.18, 0.19, 0.3, 0.5, 0.51, 0.9, 1 - 1e-12])
SCALES = [1e-3, 0.1, 1.0, 7.3, 1e4]


def threshold(scale: float, alpha: float) -> Any:
    """Return the miss rate of the test "output above t", t by the quantile function."""
    mu, a = 1 / mp.mpf(scale), mp.mpf(alpha)
    t = -mp.log(2 * a) if 2 * a <= 1 else mp.log(2 * (1 - a))
    x = t - mu
    return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2


@pytest.mark.parametrize("scale", SCALES)
def test_it_holds_the_threshold_test_in_both_tails(scale: float) -> None:
    f = LaplaceTradeOff(scale)
    lower, upper = f.bounds(RATES)
    power = f.power(RATES)
    with mp.workdps(800):
        for k, alpha in enumerate(RATES):
            truth = threshold(scale, alpha)
            assert lower[k] <= truth <= upper[k]
            assert 1 - truth <= power[k]
            if 1 / scale < 700:
                assert upper[k] - lower[k] <= 1e-12 * truth
                assert power[k] <= (1 - truth) * (1 + mp.mpf("1e-12"))


@pytest.mark.parametrize("scale", SCALES)
def test_near_one_nothing_is_lost(scale: float) -> None:
    rest = np.array([1e-290, 1e-20, 0.4, 0.5, 0.7])
    ends = LaplaceTradeOff(scale).type_ii_of_complement(rest)
    with mp.workdps(800):
        for k, one in enumerate(rest):
            truth = mp.exp(-1 / mp.mpf(scale)) * mp.mpf(one)
            if one > 0.5:
                truth = threshold(scale, mp.mpf(1) - mp.mpf(one))
            assert ends.lower[k] <= truth <= ends.upper[k]


def test_the_profile_has_the_known_value() -> None:
    values = LaplaceProfile(1.0).at(np.array([0.5, 1.0, 2.0]))
    with mp.workdps(40):
        truth = mp.mpf("0.2211992169285951317548297")
        assert values.lower[0] <= truth * (1 + mp.mpf("1e-24"))
        assert values.upper[0] >= truth * (1 - mp.mpf("1e-24"))
    assert values.upper[0] == pytest.approx(0.2211992169285951317548297, rel=1e-14)
    assert values.upper[1] <= 1e-15
    assert values.upper[2] == 0.0


@pytest.mark.parametrize("scale", SCALES)
def test_the_profile_holds_the_truth(scale: float) -> None:
    epsilon = np.array([0.0, 0.3 / scale, 0.999999 / scale, 1.0 / scale, 1.5 / scale])
    values = LaplaceProfile(scale).at(epsilon)
    with mp.workdps(40):
        for k, one in enumerate(epsilon):
            truth = max(-mp.expm1((mp.mpf(one) - 1 / mp.mpf(scale)) / 2), mp.mpf(0))
            assert values.lower[k] <= truth <= values.upper[k]
            assert values.upper[k] - values.lower[k] <= 4e-15 * (1.0 + 1.0 / scale)


def test_infinite_noise_tells_nothing() -> None:
    f = LaplaceTradeOff(math.inf)
    assert np.allclose(f(RATES), 1.0 - RATES, rtol=1e-10)
    assert f.forward.at(np.zeros(1)).upper[0] == 0.0


@pytest.mark.parametrize("scale", [0, -1, float("nan"), "1", None])
def test_only_positive_scales_will_do(scale: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="scale must be a number > 0"):
        LaplaceTradeOff(scale)
