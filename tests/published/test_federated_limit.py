"""The published approximation for PriFedSync, and PriFedSync's own answers beside it."""

import math
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.limits import GaussianLimit, limiting_mu
from hockeystick.conversions.published.federated_limit import limit_delta, limit_epsilon, limit_mu
from hockeystick.errors import ParameterError
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import Composition
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss

SETTINGS: dict[str, Any] = {
    "examples": 600,
    "batch_size": 16,
    "noise_multiplier": 2.0,
    "local_steps": 38,
}
LOCAL = hs.federated.LocalTraining(**SETTINGS)
NOISIER = hs.federated.LocalTraining(**(SETTINGS | {"noise_multiplier": 3.0}))
RARER = hs.federated.LocalTraining(**(SETTINGS | {"batch_size": 4}))
PLAN = hs.federated.PriFedSync(clients=LOCAL, rounds=2)


def _theorem_2(local: hs.federated.LocalTraining, rounds: int) -> Any:
    """mu_j as theorem 2 prints it, sigma half the noise multiplier."""
    sigma = mp.mpf(local.noise_multiplier) / 2
    c = mp.mpf(local.batch_size) / local.examples * mp.sqrt(local.local_steps * rounds)
    inside = mp.exp(sigma**-2) * mp.ncdf(1.5 / sigma) + 3 * mp.ncdf(-0.5 / sigma) - 2
    return mp.sqrt(2) * c * mp.sqrt(inside)


def _mu_delta(mu: Any, epsilon: Any) -> Any:
    tail = mp.ncdf(-epsilon / mu + mu / 2)
    return tail - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize("local", [LOCAL, NOISIER, RARER], ids=str)
@pytest.mark.parametrize("rounds", [1, 93])
def test_mu_is_the_printed_formula(local: hs.federated.LocalTraining, rounds: int) -> None:
    with mp.workdps(40):
        wanted = _theorem_2(local, rounds)
        found = limit_mu(hs.federated.PriFedSync(clients=local, rounds=rounds))
        assert found == pytest.approx(float(wanted), rel=1e-12)


def test_delta_and_epsilon_are_those_of_a_gaussian_with_this_mu() -> None:
    plan = hs.federated.PriFedSync(clients=LOCAL, rounds=93)
    with mp.workdps(40):
        wanted = _mu_delta(_theorem_2(LOCAL, 93), mp.mpf(8))
    found = limit_delta(plan, 8.0)
    assert isinstance(found, hs.Approximate)
    assert found.value == pytest.approx(float(wanted), rel=1e-11)
    assert limit_epsilon(plan, found.value).value == pytest.approx(8.0, rel=1e-11)


@pytest.mark.parametrize(
    ("changed", "rounds", "mu", "delta"),
    [
        ({"noise_multiplier": math.inf}, 2, 0.0, 0.0),
        ({"local_steps": 0}, 2, 0.0, 0.0),
        ({}, 0, 0.0, 0.0),
        ({"noise_multiplier": 0.0}, 2, math.inf, 1.0),
    ],
)
def test_the_ends_of_the_scale(
    changed: dict[str, Any], rounds: int, mu: float, delta: float
) -> None:
    plan = hs.federated.PriFedSync(
        clients=hs.federated.LocalTraining(**(SETTINGS | changed)), rounds=rounds
    )
    assert limit_mu(plan) == mu
    assert limit_delta(plan, 1.0).value == delta
    assert limit_epsilon(plan, 1e-5).value == mu
    if mu == 0.0:
        assert hs.epsilon(plan, 1e-5).upper == 0.0


def test_what_is_outside_its_domain_is_named() -> None:
    for bad in (0.0, 1.0, math.nan):
        with pytest.raises(ParameterError, match=r"^delta"):
            limit_epsilon(PLAN, bad)
    for bad in (-1.0, math.inf):
        with pytest.raises(ParameterError, match=r"^epsilon"):
            limit_delta(PLAN, bad)
    with pytest.raises(ParameterError, match="view must be one of 'one-client', 'all-clients'"):
        hs.tradeoff(PLAN, view="two-clients")


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "delta", "ratio"),
    [
        (Fraction(16, 600), 1.0, 38 * 93, 6.826361181e-2, 1.42698),
        (Fraction(16, 600), 0.75, 38 * 245, 1.141172372e-2, 11.5108),
        (Fraction(8, 600), 0.9, 76 * 229, 7.717784539e-2, 1.40772),
        (Fraction(16, 500), 1.0, 32 * 904, 4.303514382e-2, 3.14616),
        (Fraction(16, 500), 0.5, 32 * 405, 7.363941445e-89, 2.06921e87),
    ],
)
def test_the_limit_overstates_delta_of_rows_of_the_tables(
    rate: Fraction, noise: float, steps: int, delta: float, ratio: float
) -> None:
    """Stored values of ``C_(B/n)(G_(1/s))^KR`` at ``mu^2/2 + mu``, and the limit's over them."""
    terms = ((FixedSizeGaussianLoss(rate, noise), steps),)
    mu = limiting_mu(terms)
    assert mu is not None
    epsilon = 0.5 * mu * mu + mu
    exact = Contour().delta_of(terms, epsilon)
    limit = GaussianLimit().delta(Composition(terms, terms), epsilon).estimate
    assert exact.upper < limit
    assert exact.upper - exact.lower < 1e-7 * exact.lower
    assert exact.estimate == pytest.approx(delta, rel=1e-8)
    assert limit / exact.estimate == pytest.approx(ratio, rel=1e-5)


def test_a_plan_costs_at_most_theorem_2_and_less_than_the_limit() -> None:
    # The product of symmetric functions is what theorem 2 proves; the plan's own upper end is it.
    product = hs.delta(hs.FDP(hs.tradeoffs.G(1.0).subsample(16 / 600)) ** (38 * 93), 8.0)
    plan = hs.federated.PriFedSync(clients=LOCAL, rounds=93, client_rate=1.0)
    found = hs.delta(plan, 8.0)
    assert product.upper - product.lower < 1e-9 * product.lower
    assert product.lower <= found.upper <= product.upper * (1 + 1e-3)
    assert found.upper < limit_delta(plan, 8.0).value
