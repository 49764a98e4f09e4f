"""Releases without noise among others: what shows is set apart exactly."""

import math
from fractions import Fraction

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision.profiles import gaussian_delta


def shown(rate: float, runs: int) -> hs.Mechanism:
    """Return runs that show the record whenever it is sampled."""
    return hs.PoissonSubsampled(hs.Gaussian(0), rate) ** runs


def truth(epsilon: float, rate: float, runs: int, mu: float) -> float:
    """Return delta of such runs beside one Gaussian, from the two directions' definitions."""
    with mp.workdps(40):
        hidden = (1 - mp.mpf(repr(rate))) ** runs
        shift = mp.log(hidden)
        removing = 1 - hidden + hidden * gaussian_delta(epsilon - shift, mp.mpf(mu))
        adding = gaussian_delta(epsilon + shift, mp.mpf(mu))
        return float(max(removing, adding))


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.01, 0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize(("rate", "runs", "mu"), [(1e-3, 3, 1.0), (0.2, 1, 0.1), (1e-9, 7, 2.0)])
def test_delta_beside_a_gaussian_holds_the_truth(
    epsilon: float, rate: float, runs: int, mu: float
) -> None:
    answer = hs.delta(shown(rate, runs) @ hs.Gaussian(1 / mu), epsilon)
    assert answer.lower <= truth(epsilon, rate, runs, mu) <= answer.upper
    if epsilon > -runs * math.log1p(-rate):
        assert answer.relative_width < 1e-10


@pytest.mark.parametrize("delta", [3e-3, 4e-3, 0.02, 0.3])
def test_epsilon_beside_a_gaussian_holds_the_truth(delta: float) -> None:
    answer = hs.epsilon(shown(1e-3, 3) @ hs.Gaussian(1), delta)
    assert answer.upper < math.inf
    assert truth(answer.upper, 1e-3, 3, 1.0) <= delta
    assert answer.lower == 0.0 or truth(answer.lower, 1e-3, 3, 1.0) >= delta
    assert answer.lower == 0.0 or answer.relative_width < 1e-8


def test_a_delta_below_what_shows_is_out_of_reach() -> None:
    assert hs.epsilon(shown(1e-3, 3) @ hs.Gaussian(1), 0.0029).lower == math.inf


def test_what_shows_alone_costs_nothing_once_delta_covers_it() -> None:
    assert hs.epsilon(shown(1e-3, 3), 0.003).upper == 0.0
    assert hs.delta(shown(1e-3, 3), 2.0).upper == pytest.approx(1 - 0.999**3, rel=1e-11)


@pytest.mark.parametrize("accountant", ["contour", "rdp"])
def test_every_accountant_sees_only_the_rest(accountant: str) -> None:
    training = hs.PoissonSubsampled(hs.Gaussian(1), 0.01) ** 1000
    answer = hs.epsilon(shown(1e-3, 1) @ training, 0.01, accountant=accountant)
    alone = hs.epsilon(training, 0.01, accountant=accountant)
    assert isinstance(answer, hs.Certified)
    assert isinstance(alone, hs.Certified)
    assert alone.upper < answer.upper < 1.2 * alone.upper


@pytest.mark.parametrize("noise", [0, 1])
def test_a_rate_that_rounds_to_1_is_below_it(noise: float) -> None:
    step = hs.PoissonSubsampled(hs.Gaussian(noise), 1 - Fraction(1, 10**20))
    assert hs.epsilon(step**3, 0.0).lower == math.inf
    assert 0.0 < hs.delta(step**3, 1.0).upper <= 1.0


@pytest.mark.parametrize("rest", [None, hs.Gaussian(1)])
@pytest.mark.parametrize(
    "hidden", [hs.Gaussian(0), hs.PoissonSubsampled(hs.Gaussian(0), 0.5) ** 2000]
)
def test_what_surely_shows_costs_everything_up_to_the_last_delta(
    rest: hs.Mechanism | None, hidden: hs.Mechanism
) -> None:
    plan = hidden if rest is None else hidden @ rest
    assert hs.epsilon(plan, 1 - 1e-13).lower == math.inf


@pytest.mark.parametrize("accountant", ["auto", "contour", "rdp"])
@pytest.mark.parametrize("epsilon", [math.inf, 1e300])
def test_far_out_only_what_shows_is_left(accountant: str, epsilon: float) -> None:
    plan = shown(0.1, 1) @ hs.PoissonSubsampled(hs.Gaussian(1), 0.1) ** 100
    answer = hs.delta(plan, epsilon, accountant=accountant)
    assert isinstance(answer, hs.Certified)
    assert answer.lower <= 0.1 <= answer.upper < 0.1 + 1e-11
