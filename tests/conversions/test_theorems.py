"""The named conversions against printed values, and against other routes in many digits."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.conversions import theorems as t
from hockeystick.numerics.multiprecision import mp

PRINTED: list[tuple[Callable[[], float], str]] = [
    (lambda: t.balle_wang(1, epsilon=1), "0.126936737506643945800829624758"),
    (lambda: t.balle_wang(0.5, epsilon=5), "4.41544347029961926997758165125e-24"),
    (lambda: t.balle_wang(1, delta=1e-5), "4.37717809568122462765011629324"),
    (lambda: t.balle_wang(1, delta=1e-10), "6.54792406686495100581928943696"),
    (lambda: t.canonne_kamath_steinke(10, 1, epsilon=3), "5.90040620015666167320335816846e-10"),
    (lambda: t.mironov(10, 1, epsilon=3), "1.52299797447126284361e-8"),
    (lambda: t.asoodeh(10, 1, epsilon=3), "5.8996780322246956e-10"),
    (lambda: t.canonne_kamath_steinke(2, 0.5, epsilon=0.5), "0.25"),
    (lambda: t.asoodeh(2, 0.5, epsilon=0.5), "0.19273716917025031555"),
    (lambda: t.canonne_kamath_steinke_concentrated(0.5, delta=1e-5), "4.72838698494331389997"),
    (lambda: t.bun_steinke(0.5, delta=1e-5), "5.29852591218808120757"),
    (lambda: t.canonne_kamath_steinke_concentrated(0.1, delta=1e-6), "2.14193892838547366139"),
    (lambda: t.bun_steinke(0.1, delta=1e-6), "2.45078800047679961814"),
    (lambda: t.bun_dwork_rothblum_steinke(0.1, 5, delta=1e-5), "3.378231366242557105"),
    (lambda: t.bun_dwork_rothblum_steinke(0.1, 50, delta=1e-5), "2.245966026289347240"),
    (lambda: t.response_divergence(1, 2), "0.735325664055519224709930424887"),
    (lambda: t.response_divergence(0.5, 8), "0.432353706756464873643804873164"),
    (lambda: t.steinke_rho(1), "0.462117157260009758502318483644"),
    (lambda: t.kairouz_oh_viswanath(2, epsilon=1), "0.556769941145939744"),
    (lambda: t.bun_steinke_rho(1), "0.5"),
]


@pytest.mark.parametrize("case", PRINTED, ids=lambda case: case[1])
def test_the_printed_values_come_out(case: tuple[Callable[[], float], str]) -> None:
    value = case[0]()
    assert value == pytest.approx(float(case[1]), rel=3e-15)


@pytest.mark.parametrize("given", [{}, {"epsilon": 1.0, "delta": 0.1}])
def test_a_theorem_of_two_numbers_says_that_it_takes_one_of_them(given: dict[str, float]) -> None:
    with pytest.raises(
        hs.errors.ParameterError, match=r"^exactly one of epsilon and delta must be given"
    ):
        t.balle_wang(1.0, **given)


@pytest.mark.parametrize("mu", [1e-3, 0.4, 2.0, 20.0])
@pytest.mark.parametrize("delta", [0.01, 1e-7, 1e-250])
def test_epsilon_of_the_gaussian_is_proven_and_the_least(mu: float, delta: float) -> None:
    epsilon = t.balle_wang(mu, delta=delta)
    assert t.balle_wang(mu, epsilon=epsilon) <= delta
    if epsilon > 0.0:
        assert t.balle_wang(mu, epsilon=epsilon * (1 - 1e-12)) > delta


def two_outcomes(order: Any, tau: Any, epsilon: Any) -> Any:
    """Return the largest delta of two outcomes whose divergences are at most tau both ways."""

    def divergence(x: Any, v: Any) -> Any:
        sums = v**order * x ** (1 - order) + (1 - v) ** order * (1 - x) ** (1 - order)
        return mp.log(sums) / (order - 1)

    def reach(x: Any) -> Any:
        low, high = x, mp.one
        for _ in range(120):
            v = (low + high) / 2
            good = divergence(x, v) <= tau and divergence(v, x) <= tau
            low, high = (v, high) if good else (low, v)
        return low

    def cost(log_x: Any) -> Any:
        x = mp.exp(log_x)
        return mp.exp(epsilon) * x - reach(x)

    low, high = mp.log(mp.mpf(10) ** -25), mp.log(mp.mpf("0.4999"))
    ratio = (mp.sqrt(5) - 1) / 2
    for _ in range(90):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if cost(a) <= cost(b) else (a, high)
    return -cost((low + high) / 2)


@pytest.mark.parametrize(
    ("order", "tau", "epsilon"),
    [(2, 0.5, 0.5), (2, 0.5, 0.1), (2, 0.5, 0.0), (10, 1, 3), (1.3, 2, 1), (6, 0.01, 0.05)],
)
def test_the_best_conversion_of_one_order_is_what_two_outcomes_reach(
    order: float, tau: float, epsilon: float
) -> None:
    found = t.asoodeh(order, tau, epsilon=epsilon)
    with mp.workdps(30):
        truth = two_outcomes(mp.mpf(order), mp.mpf(tau), mp.mpf(epsilon))
        assert truth * (1 - mp.mpf(10) ** -18) <= found <= truth * (1 + mp.mpf("1e-11"))


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


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1e-3, 0.01, 1.0, 30.0, 700.0])
def test_the_kink_of_the_polygon_lies_on_the_gaussian_curve(epsilon: float) -> None:
    mu = t.liu_mu(epsilon)
    with mp.workdps(360 if epsilon < 1e-200 else 60):
        kink = 1 / (1 + mp.exp(mp.mpf(epsilon)))
        # G_mu(a) <= a iff Phi(-mu/2) <= a
        assert mp.ncdf(-mp.mpf(mu) / 2) <= kink
        assert mp.ncdf(-mp.mpf(mu) * (1 - mp.mpf(2) ** -44) / 2) > kink


@pytest.mark.parametrize("epsilon", [1e-8, 0.2, 1.0, 5.0, 50.0])
def test_no_divergence_of_randomized_response_is_above_the_line_of_zcdp(epsilon: float) -> None:
    rho = t.steinke_rho(epsilon)
    assert rho <= t.bun_steinke_rho(epsilon)
    orders = [1 + 10.0**k for k in range(-6, 7)]
    for order in orders:
        assert t.response_divergence(epsilon, order) <= rho * order * (1 + 1e-15)
    assert t.response_divergence(epsilon, orders[0]) >= rho * (1 - 1e-5)


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
    with pytest.raises(hs.errors.ParameterError, match="order must be"):
        theorem(1.0, 1.0, epsilon=1)
    with pytest.raises(hs.errors.ParameterError, match="divergence must be"):
        theorem(2.0, math.inf, epsilon=1)
    with pytest.raises(hs.errors.ParameterError, match="delta must be"):
        theorem(2.0, 1.0, delta=0)
    with pytest.raises(hs.errors.ParameterError, match="exactly one of epsilon and delta"):
        theorem(2.0, 1.0)
    with pytest.raises(hs.errors.ParameterError, match="exactly one of epsilon and delta"):
        theorem(2.0, 1.0, epsilon=1, delta=0.1)
