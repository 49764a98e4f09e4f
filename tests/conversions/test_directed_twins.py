"""Directed twins: each theorem at random arguments, beside its own formula in sixty digits."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hockeystick.conversions import by_losses, to_renyi
from hockeystick.conversions import theorems as t
from hockeystick.numerics import Ball, decimal, least_reading
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import PrivacyLoss, RandomizedResponseLoss
from hockeystick.privacy_loss.core.base import CGFEstimate
from hockeystick.tradeoffs.reading import least_epsilon, up

DRAWS = 60


def sizes(seed: int, *ends: tuple[float, float]) -> Iterator[list[float]]:
    """Yield random numbers whose logarithms to base 10 are between ends."""
    draw = np.random.default_rng(seed)
    for _ in range(DRAWS):
        yield [float(10 ** draw.uniform(*one)) for one in ends]


def cks(c: Any) -> Any:
    """Return the logarithm of the factor of Canonne, Kamath and Steinke."""
    return c * mp.log(c) - (1 + c) * mp.log(1 + c)


FORMULAS: list[tuple[Callable[[float, float, float], float], Callable[[Any, Any, Any], Any]]] = [
    (
        lambda c, x, y: t.mironov(1 + c, x, delta=math.exp(-y)),
        lambda c, x, y: x - mp.log(mp.mpf(math.exp(-y))) / (mp.mpf(1 + float(c)) - 1),
    ),
    (
        lambda c, x, y: t.mironov(1 + c, x, epsilon=x + y),
        lambda c, x, y: mp.exp((mp.mpf(1 + float(c)) - 1) * (x - mp.mpf(float(x) + float(y)))),
    ),
    (
        lambda c, x, y: t.canonne_kamath_steinke(1 + c, x, epsilon=x + y),
        lambda c, x, y: mp.exp(
            (mp.mpf(1 + float(c)) - 1) * (x - mp.mpf(float(x) + float(y)))
            + cks(mp.mpf(1 + float(c)) - 1)
        ),
    ),
    (
        lambda c, x, y: t.balle_wang(x, epsilon=y),
        lambda c, x, y: mp.ncdf(x / 2 - y / x) - mp.exp(y) * mp.ncdf(-x / 2 - y / x),
    ),
    (lambda c, x, y: t.steinke_rho(x), lambda c, x, y: x * mp.tanh(x / 2)),
    (lambda c, x, y: t.bun_steinke_rho(x), lambda c, x, y: x**2 / 2),
    (t.up_product, lambda c, x, y: c * x * y),
    (
        lambda c, x, y: t.bun_steinke(x, epsilon=x + y),
        lambda c, x, y: mp.exp(-((mp.mpf(float(x) + float(y)) - x) ** 2) / (4 * x)),
    ),
    (
        lambda c, x, y: t.kairouz_oh_viswanath(x + y, 0.25, epsilon=x),
        lambda c, x, y: (
            mp.mpf(1) / 4
            + mp.mpf(3)
            / 4
            * (mp.exp(mp.mpf(float(x) + float(y))) - mp.exp(x))
            / (1 + mp.exp(mp.mpf(float(x) + float(y))))
        ),
    ),
    (
        lambda c, x, y: t.response_divergence(x, 1 + c),
        lambda c, x, y: (
            lambda a: mp.log((mp.exp(a * x) + mp.exp((1 - a) * x)) / (1 + mp.exp(x))) / (a - 1)
        )(mp.mpf(1 + float(c))),
    ),
]


@pytest.mark.parametrize("which", range(len(FORMULAS)))
def test_a_theorem_is_its_formula_rounded_up(which: int) -> None:
    found, formula = FORMULAS[which]
    with mp.workdps(60):
        for given in sizes(which, (-1.0, 1.5), (-1.0, 0.5), (-1.0, 0.5)):
            truth = formula(*map(mp.mpf, given))
            assert truth <= found(*given) <= truth * (1 + mp.mpf(10) ** -15)


@pytest.mark.parametrize(("mu", "share"), [(t.liu_mu, "kink"), (t.laplace_mu, "half")])
def test_a_mu_is_the_least(mu: Callable[[float], float], share: str) -> None:
    with mp.workdps(50):
        for k, (e,) in enumerate(sizes(3, (-2.0, 1.5))):
            if k % 10:
                continue
            x = mp.mpf(e)
            rate = 1 / (1 + mp.exp(x)) if share == "kink" else mp.exp(-x / 2) / 2
            found = mp.mpf(mu(e))
            assert mp.ncdf(-found / 2) <= rate <= mp.ncdf(-found / 2 * (1 - mp.mpf(10) ** -14))


def test_the_mu_of_a_budget_is_rounded_down() -> None:
    with mp.workdps(40):
        for epsilon, delta in ((1.0, 1e-5), (0.25, 0.01)):
            mu = t.gaussian_mu(epsilon, delta)
            for size, side in ((mp.mpf(mu), 1), (mu * (1 + mp.mpf(10) ** -12), -1)):
                a = epsilon / size
                truth = mp.ncdf(size / 2 - a) - mp.exp(epsilon) * mp.ncdf(-size / 2 - a)
                assert side * truth <= side * mp.mpf(delta)


@dataclass(frozen=True)
class Known(PrivacyLoss):
    """A loss with one K, known to a radius."""

    k: Ball
    supremum = math.inf

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return CGFEstimate(self.k.midpoint, 1.0, 1.0)

    def cgf_bounds(self, c: float) -> Ball:
        return self.k


def test_divergences_of_plans_are_rounded_outward() -> None:
    for k, (mid, c) in enumerate(sizes(4, (-3.0, 2.0), (-1.0, 2.0))):
        radius, count, order = mid * (k % 2) * 1e-4, 1 + k % 7, 1.0 + c
        terms = ((Known(Ball(mid, radius)), count),)
        lower, upper = to_renyi.plan_divergence(terms, order)
        divisor = Fraction(order) - 1
        ends = [count * (Fraction(mid) + side * Fraction(radius)) / divisor for side in (-1, 1)]
        slack = 1 + Fraction(1, 10**9)
        assert ends[0] / slack <= Fraction(lower) <= ends[0]
        assert ends[1] <= Fraction(upper) <= ends[1] * slack


def test_exact_numbers_and_their_roots_are_rounded_up_in_both_readings() -> None:
    draw = np.random.default_rng(5)
    for _ in range(DRAWS):
        value = Fraction(int(draw.integers(1, 10**9)), int(draw.integers(1, 10**9)))
        found, root = by_losses.above(value), by_losses.root_up(value)
        assert min(Fraction(found), decimal(found)) >= value
        assert found == pytest.approx(float(value), rel=1e-15)
        assert least_reading(root) ** 2 >= value >= Fraction(root) ** 2 * (1 - Fraction(1, 10**14))


def test_a_quantile_is_one_from_below() -> None:
    with mp.workdps(50):
        for (rate,) in list(sizes(6, (-30.0, -0.01)))[::10]:
            found = by_losses._least_quantile(mp.mpf(rate))
            assert mp.ncdf(found) <= rate <= mp.ncdf(found + mp.mpf(10) ** -25 * (1 + abs(found)))


def test_the_mu_of_some_categories_is_rounded_up() -> None:
    with mp.workdps(50):
        for k, (e,) in enumerate(sizes(7, (-1.0, 0.5))):
            if k % 10:
                continue
            found = by_losses.least_mu(RandomizedResponseLoss(e, 3 + k))
            p = mp.exp(mp.mpf(repr(e))) / (mp.exp(mp.mpf(repr(e))) + 2 + k)
            q = 1 / (mp.exp(mp.mpf(repr(e))) + 2 + k)
            truth = mp.sqrt(2) * (mp.erfinv(2 * p - 1) - mp.erfinv(2 * q - 1))
            assert truth <= found <= truth * (1 + 1e-9)


def test_directed_rounding_is_to_the_next_float() -> None:
    draw = np.random.default_rng(8)
    with mp.workdps(50):
        for _ in range(120):
            value = mp.mpf(float(draw.random())) + mp.mpf(float(draw.uniform(-1e-18, 1e-18)))
            assert value <= up(value)
            assert up(value) <= math.nextafter(math.nextafter(float(value), 2.0), 2.0)


def test_the_epsilon_of_a_delta_meets_both_of_its_readings() -> None:
    with mp.workdps(50):
        for delta in np.random.default_rng(9).uniform(0.1, 0.9, 200).tolist():
            estimate = float(1 / mp.mpf(delta) - 1)
            found = least_epsilon(lambda e: 1 / (1 + e), delta, estimate)
            assert 1 / (1 + Fraction(found)) <= least_reading(delta)
            assert found == pytest.approx(estimate, rel=1e-14)
