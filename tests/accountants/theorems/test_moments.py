"""The moments accountant against its published formulas, with moments by another route."""

import math
from collections.abc import Callable
from math import comb

import pytest

import hockeystick as hs
from hockeystick.accountants.rdp import log_moment_upper
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.privacy_loss import ConcentratedLoss

Moment = Callable[[int], mpf]


def of_sampled(rate: float, noise: float, runs: int) -> Moment:
    """Removing: the sum over how many of the k + 1 ratios are those of the sampled record."""

    def moment(k: int) -> mpf:
        q, mu = mp.mpf(repr(rate)), 1 / mp.mpf(repr(noise))
        terms = (
            comb(k + 1, j) * (1 - q) ** (k + 1 - j) * q**j * mp.exp(j * (j - 1) * mu**2 / 2)
            for j in range(k + 2)
        )
        return runs * mp.log(mp.fsum(terms))

    return moment


def of_gaussian(noise: float, runs: int) -> Moment:
    return lambda k: runs * mp.mpf(k) * (k + 1) / (2 * mp.mpf(repr(noise)) ** 2)


def of_response(epsilon: float, runs: int) -> Moment:
    """K of randomized response, from its two outcomes."""

    def moment(k: int) -> mpf:
        e = mp.mpf(repr(epsilon))
        return runs * mp.log((mp.exp((k + 1) * e) + mp.exp(-k * e)) / (1 + mp.exp(e)))

    return moment


STEP = hs.PoissonSubsampled(hs.Gaussian(1.1), 0.01)
PLANS: list[tuple[hs.Mechanism, Moment]] = [
    (STEP**1000, of_sampled(0.01, 1.1, 1000)),
    (hs.PoissonSubsampled(hs.Gaussian(0.6), 0.2) ** 3, of_sampled(0.2, 0.6, 3)),
    (hs.Gaussian(10.0) ** 20, of_gaussian(10.0, 20)),
    (hs.Gaussian(0.3), of_gaussian(0.3, 1)),
    (hs.PureDP(0.1) ** 100, of_response(0.1, 100)),
    (
        STEP**300 @ hs.PureDP(0.2) @ hs.Gaussian(4.0),
        lambda k: of_sampled(0.01, 1.1, 300)(k) + of_response(0.2, 1)(k) + of_gaussian(4.0, 1)(k),
    ),
]
each_plan = pytest.mark.parametrize(("plan", "moment"), PLANS, ids=[str(p) for p, _ in PLANS])


def certified(answer: hs.Certified | hs.Approximate) -> hs.Certified:
    assert isinstance(answer, hs.Certified)
    return answer


@each_plan
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-12, 1e-200])
def test_epsilon_is_the_least_over_32_moments(
    plan: hs.Mechanism, moment: Moment, delta: float
) -> None:
    with mp.workdps(40):
        exact = min((moment(k) - mp.log(mp.mpf(delta))) / k for k in range(1, 33))
        # No loss exceeds the sum of the largest.
        exact = min(exact, mp.mpf(hs.epsilon(plan, 0.0).lower))
    found = certified(hs.epsilon(plan, delta, accountant="moments"))
    assert exact <= found.upper
    assert found.upper == found.estimate == pytest.approx(float(exact), rel=1e-11)


@each_plan
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_delta_is_the_least_over_32_moments(
    plan: hs.Mechanism, moment: Moment, epsilon: float
) -> None:
    with mp.workdps(40):
        exact = min(mp.exp(moment(k) - k * mp.mpf(epsilon)) for k in range(1, 33))
    found = certified(hs.delta(plan, epsilon, accountant="moments"))
    assert min(exact, 1) <= found.upper
    assert found.upper == found.estimate == pytest.approx(min(float(exact), 1.0), rel=1e-9)


def test_where_no_moment_is_known_nothing_is_promised() -> None:
    plan = hs.TCDP(0.1, 1.5)
    assert certified(hs.epsilon(plan, 1e-5, accountant="moments")).upper == math.inf
    assert certified(hs.delta(plan, 1.0, accountant="moments")).upper == 1.0
    assert log_moment_upper(((ConcentratedLoss(0.1, 1.5), 3),), 1) == math.inf
    two = hs.TCDP(0.1, 2.5)
    assert certified(hs.epsilon(two, 1e-5, accountant="moments")).upper == pytest.approx(
        0.2 - math.log(1e-5), rel=1e-12
    )


def test_failures_are_set_apart() -> None:
    found = certified(hs.epsilon(hs.ApproxDP(0.1, 1e-7) ** 50, 1e-5, accountant="moments"))
    assert found.lower <= hs.epsilon(hs.ApproxDP(0.1, 1e-7) ** 50, 1e-5).estimate <= found.upper
    assert found.upper < 5.0
