"""Mironov's conversion on TensorFlow Privacy's grid of orders."""

import math
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.conversions.published.of_their_time import tensorflow_privacy_epsilon
from hockeystick.numerics.multiprecision import mp


def test_sampled_gaussians_by_binomial_sums() -> None:
    found = tensorflow_privacy_epsilon(hs.PoissonSubsampled(hs.Gaussian(6.0), 0.01) ** 10_000, 1e-5)
    with mp.workdps(40):
        q, square = mp.mpf("0.01"), mp.mpf(36)

        def epsilon(order: int) -> Any:
            moment = mp.fsum(
                mp.binomial(order, k)
                * (1 - q) ** (order - k)
                * q**k
                * mp.exp((k * k - k) / (2 * square))
                for k in range(order + 1)
            )
            return (10_000 * mp.log(moment) + mp.log(mp.mpf(10) ** 5)) / (order - 1)

        truth = min(epsilon(order) for order in range(5, 64))
    assert truth <= found.upper <= float(truth) * (1 + 1e-12)


def test_the_ends_and_a_delta_that_is_none() -> None:
    assert tensorflow_privacy_epsilon(hs.Gaussian(1.0) ** 0, 1e-5).upper == 0.0
    # Only orders up to 1.1 are known to be finite, and the grid begins at 1.25.
    assert tensorflow_privacy_epsilon(hs.TCDP(0.1, 1.1), 1e-5).upper == math.inf
    with pytest.raises(hs.errors.ParameterError, match=r"^delta"):
        tensorflow_privacy_epsilon(hs.Gaussian(1.0), 0.0)


DELTA: Final = 1e-5


def upper(plan: hs.Mechanism, accountant: str) -> float:
    answer = hs.epsilon(plan, DELTA, accountant=accountant)
    assert isinstance(answer, hs.Certified)
    return answer.upper


def test_100_epochs_of_abadi_et_al_cost_what_they_print() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(4.0), 0.01) ** 10_000
    found = upper(plan, "moments")
    assert f"{found:.2f}" == "1.26"
    assert found == pytest.approx(1.2585747412528, rel=1e-12)
    assert found > upper(plan, "rdp") > upper(plan, "contour")
