"""Lower ends and theorems of conversions, by closed forms."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.conversions import convert, lower_ends
from hockeystick.conversions import theorems as t
from hockeystick.mechanisms import Exponential
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, RenyiDP
from hockeystick.numerics.multiprecision import mp


@pytest.mark.parametrize("omega", [math.inf, 1.5, 5.0])
@pytest.mark.parametrize("rho", [1e-4, 0.5, 50.0])
@pytest.mark.parametrize("delta", [0.05, 1e-100])
def test_concentrated_privacy_costs_more_than_the_gaussian_and_less_than_by_the_textbook(
    rho: float, delta: float, omega: float
) -> None:
    epsilon = convert(TCDP(rho, omega), ApproxDP, delta=delta).epsilon
    gaussian = t.balle_wang(math.sqrt(2 * rho) * (1 - 1e-15), delta=delta)
    textbook = t.canonne_kamath_steinke_concentrated(rho, omega, delta=delta)
    assert gaussian <= epsilon <= textbook * (1 + 1e-14)
    first = t.bun_dwork_rothblum_steinke(rho, omega, delta=delta)
    assert textbook <= first * (1 + 1e-15)
    assert omega < math.inf or first == t.bun_steinke(rho, delta=delta)


@pytest.mark.parametrize(
    ("plan", "rho"),
    [
        (hs.Gaussian(10) ** 100, 0.5),
        (hs.DiscreteGaussian(10) ** 102, 0.51),
        (hs.Gaussian(10) ** 30 @ hs.DiscreteGaussian(10) ** 70, 0.5),
        (hs.Gaussian(10) ** 100 @ hs.ZCDP(0.25), 0.75),
        (Exponential(0.5) ** 30, 0.9375),
    ],
)
def test_the_rhos_of_runs_add_up_before_they_are_rounded(plan: hs.Mechanism, rho: float) -> None:
    assert hs.convert(plan, hs.ZCDP).rho == rho
    assert not hs.convert(plan @ hs.Gaussian(1e6), hs.ZCDP).rho <= rho


RATE, SIGMA, STEPS = 0.01, 1.1, 1000
SAMPLED = hs.PoissonSubsampled(hs.Gaussian(SIGMA), rate=RATE) ** STEPS


def laplace_divergence(order: Any, scale: Any) -> Any:
    """Mironov 2017, proposition 6."""
    first = order / (2 * order - 1) * mp.exp((order - 1) / scale)
    return mp.log(first + (order - 1) / (2 * order - 1) * mp.exp(-order / scale)) / (order - 1)


def test_a_sampled_plan_needs_the_rho_and_the_mu_of_what_is_not_sampled() -> None:
    """``D_alpha / alpha`` tends to ``steps / (2 sigma^2)`` from below."""
    limit = STEPS / (2 * SIGMA**2)
    (rho,) = lower_ends(SAMPLED, convert(SAMPLED, ZCDP))
    assert limit * (1 - 1e-4) < rho <= limit
    (mu,) = lower_ends(SAMPLED, convert(SAMPLED, GDP))
    assert math.sqrt(2 * limit) * (1 - 1e-4) < mu <= math.sqrt(2 * limit)


def test_bounded_losses_need_the_slope_of_small_orders() -> None:
    plan = hs.Parallel((hs.Laplace(2), hs.RandomizedResponse(0.1, categories=9)))
    (rho,) = lower_ends(plan, convert(plan, ZCDP))
    with mp.workdps(40):
        order = 1 + mp.mpf(2) ** -10
        truth = float(laplace_divergence(order, 2) / order)
    assert rho == pytest.approx(truth, rel=1e-9)


def test_parts_that_are_worst_for_different_records_cost_what_one_record_pays() -> None:
    halves = hs.Parallel((hs.Gaussian(1.0), hs.Gaussian(2.0)), split="halves")
    other = hs.Parallel((hs.Gaussian(2.0), hs.Gaussian(1.0)), split="halves")
    mixed = convert(halves @ other, RenyiDP, orders=2)
    # Whoever is in the first half pays 1 + 1/4 at order 2, and so does everybody else.
    assert mixed.divergences[0][1] == pytest.approx(1.25, rel=1e-12)
    assert mixed.origin is not None
    assert mixed.origin.kind == "exact"


def test_of_what_is_exact_and_of_what_nothing_is_known_there_are_none() -> None:
    plan = hs.Gaussian(2)
    assert lower_ends(plan, convert(plan, ZCDP)) == ()
    assert lower_ends(SAMPLED, convert(SAMPLED, FDP)) == ()
    answer = hs.epsilon(SAMPLED, 1e-5)
    assert lower_ends(SAMPLED, convert(SAMPLED, ApproxDP, delta=1e-5)) == (answer.lower, 0.0)
    answer = hs.delta(SAMPLED, 2.0)
    assert lower_ends(SAMPLED, convert(SAMPLED, ApproxDP, epsilon=2)) == (0.0, answer.lower)


PRINTED: list[tuple[Callable[[], float], str]] = [
    (lambda: t.balle_wang(1, epsilon=1), "0.126936737506643945800829624758"),
    (lambda: t.balle_wang(0.5, epsilon=5), "4.41544347029961926997758165125e-24"),
    (lambda: t.balle_wang(1, delta=1e-5), "4.37717809568122462765011629324"),
    (lambda: t.canonne_kamath_steinke(10, 1, epsilon=3), "5.90040620015666167320335816846e-10"),
    (lambda: t.mironov(10, 1, epsilon=3), "1.52299797447126284361e-8"),
    (lambda: t.asoodeh(10, 1, epsilon=3), "5.8996780322246956e-10"),
    (lambda: t.asoodeh(2, 0.5, epsilon=0.5), "0.19273716917025031555"),
    (lambda: t.canonne_kamath_steinke_concentrated(0.5, delta=1e-5), "4.72838698494331389997"),
    (lambda: t.bun_steinke(0.5, delta=1e-5), "5.29852591218808120757"),
    (lambda: t.bun_dwork_rothblum_steinke(0.1, 5, delta=1e-5), "3.378231366242557105"),
    (lambda: t.response_divergence(1, 2), "0.735325664055519224709930424887"),
    (lambda: t.steinke_rho(1), "0.462117157260009758502318483644"),
    (lambda: t.kairouz_oh_viswanath(2, epsilon=1), "0.556769941145939744"),
    (lambda: t.bun_steinke_rho(1), "0.5"),
]


@pytest.mark.parametrize("case", PRINTED, ids=lambda case: case[1])
def test_the_printed_values_come_out(case: tuple[Callable[[], float], str]) -> None:
    value = case[0]()
    assert value == pytest.approx(float(case[1]), rel=3e-15)


@pytest.mark.parametrize("mu", [1e-3, 0.4, 2.0, 20.0])
@pytest.mark.parametrize("delta", [0.01, 1e-7, 1e-250])
def test_epsilon_of_the_gaussian_is_proven_and_the_least(mu: float, delta: float) -> None:
    epsilon = t.balle_wang(mu, delta=delta)
    assert t.balle_wang(mu, epsilon=epsilon) <= delta
    if epsilon > 0.0:
        assert t.balle_wang(mu, epsilon=epsilon * (1 - 1e-12)) > delta


@pytest.mark.parametrize("order", [1.01, 2.0, 7.5, 300.0])
@pytest.mark.parametrize("tau", [1e-4, 0.3, 5.0])
@pytest.mark.parametrize("delta", [0.2, 1e-6, 1e-200])
def test_the_best_conversion_beats_the_textbook_ones_and_its_inverse_agrees(
    order: float, tau: float, delta: float
) -> None:
    best = t.asoodeh(order, tau, delta=delta)
    textbook = t.canonne_kamath_steinke(order, tau, delta=delta)
    assert best <= textbook * (1 + 1e-15)
    assert textbook <= t.mironov(order, tau, delta=delta)
    assert t.asoodeh(order, tau, epsilon=best) <= delta * (1 + 1e-9)
    if best > 0.0:
        assert t.asoodeh(order, tau, epsilon=best * (1 - 1e-9)) > delta * (1 - 1e-13)


def test_the_worst_approximate_release_meets_the_formula() -> None:
    with mp.workdps(30):
        own, failure, at = mp.mpf(2), mp.mpf(1) / 16, mp.mpf(1) / 2
        p = (1 - failure) * mp.exp(own) / (1 + mp.exp(own))
        q = (1 - failure) / (1 + mp.exp(own))
        truth = failure + p - mp.exp(at) * q
        found = t.kairouz_oh_viswanath(2, 1 / 16, epsilon=0.5)
        assert truth <= found <= truth * (1 + mp.mpf(2) ** -51)
    assert t.kairouz_oh_viswanath(2, 1 / 16, delta=found) == pytest.approx(0.5, rel=1e-14)
    assert t.kairouz_oh_viswanath(2, 0.1, delta=0.1) == 2.0
    assert t.kairouz_oh_viswanath(2, 0.1, delta=0.05) == math.inf
    assert t.kairouz_oh_viswanath(2, 0.1, epsilon=7) == 0.1


@pytest.mark.parametrize("theorem", [t.mironov, t.canonne_kamath_steinke, t.asoodeh])
def test_wrong_parameters_are_named(theorem: Callable[..., float]) -> None:
    for order, divergence, given, told in (
        (1.0, 1.0, {"epsilon": 1}, "order must be"),
        (2.0, math.inf, {"epsilon": 1}, "divergence must be"),
        (2.0, 1.0, {"delta": 0}, "delta must be"),
        (2.0, 1.0, {}, "exactly one of epsilon and delta"),
        (2.0, 1.0, {"epsilon": 1, "delta": 0.1}, "exactly one of epsilon and delta"),
    ):
        with pytest.raises(hs.errors.ParameterError, match=told):
            theorem(order, divergence, **given)
