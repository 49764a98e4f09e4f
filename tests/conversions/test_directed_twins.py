"""Directed twins: each theorem at random arguments, beside its own formula in sixty digits."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hockeystick.conversions import by_losses
from hockeystick.conversions import theorems as t
from hockeystick.numerics import Ball, decimal, float_above, least_reading
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import DiscreteLaplaceLoss, PrivacyLoss, RandomizedResponseLoss
from hockeystick.privacy_loss.core.base import CGFEstimate
from hockeystick.tradeoffs.attack_words import least_epsilon

DRAWS = 60


def sizes(seed: int, *ends: tuple[float, float]) -> Iterator[list[float]]:
    """Yield random numbers whose logarithms to base 10 are between ends."""
    draw = np.random.default_rng(seed)
    for _ in range(DRAWS):
        yield [float(10 ** draw.uniform(*one)) for one in ends]


# Of c, x and y in floats, and with a = 1 + c, s = x + y and d = e^-y as floats have them.
FORMULAS: list[tuple[Callable[..., float], Callable[..., Any]]] = [
    (
        lambda c, x, y: t.mironov(1 + c, x, delta=math.exp(-y)),
        lambda c, x, y, a, s, d: x - mp.log(d) / (a - 1),
    ),
    (
        lambda c, x, y: t.mironov(1 + c, x, epsilon=x + y),
        lambda c, x, y, a, s, d: mp.exp((a - 1) * (x - s)),
    ),
    (
        lambda c, x, y: t.canonne_kamath_steinke(1 + c, x, epsilon=x + y),
        lambda c, x, y, a, s, d: mp.exp((a - 1) * (x - s + mp.log(a - 1)) - a * mp.log(a)),
    ),
    (
        lambda c, x, y: t.balle_wang(x, epsilon=y),
        lambda c, x, y, *_: mp.ncdf(x / 2 - y / x) - mp.exp(y) * mp.ncdf(-x / 2 - y / x),
    ),
    (lambda c, x, y: t.steinke_rho(x), lambda c, x, *_: x * mp.tanh(x / 2)),
    (lambda c, x, y: t.bun_steinke_rho(x), lambda c, x, *_: x**2 / 2),
    (t.up_product, lambda c, x, y, *_: c * x * y),
    (
        lambda c, x, y: t.bun_steinke(x, epsilon=x + y),
        lambda c, x, y, a, s, d: mp.exp(-((s - x) ** 2) / (4 * x)),
    ),
    (
        lambda c, x, y: t.kairouz_oh_viswanath(x + y, 0.25, epsilon=x),
        lambda c, x, y, a, s, d: (1 + 3 * (mp.exp(s) - mp.exp(x)) / (1 + mp.exp(s))) / 4,
    ),
    (
        lambda c, x, y: t.response_divergence(x, 1 + c),
        lambda c, x, y, a, s, d: (
            mp.log((mp.exp(a * x) + mp.exp((1 - a) * x)) / (1 + mp.exp(x))) / (a - 1)
        ),
    ),
]


@pytest.mark.parametrize("which", range(len(FORMULAS)))
def test_a_theorem_is_its_formula_rounded_up(which: int) -> None:
    found, formula = FORMULAS[which]
    with mp.workdps(60):
        for c, x, y in sizes(which, (-1.0, 1.5), (-1.0, 0.5), (-1.0, 0.5)):
            truth = formula(*map(mp.mpf, (c, x, y, 1 + c, x + y, math.exp(-y))))
            assert truth <= found(c, x, y) <= truth * (1 + mp.mpf(10) ** -15)


@pytest.mark.parametrize("mu", [t.liu_mu, t.laplace_mu])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 0.2, 1.0, 30.0, 700.0, 1e300])
def test_a_mu_is_the_least(mu: Callable[[float], float], epsilon: float) -> None:
    with mp.workdps(360 if epsilon < 1e-200 else 60):
        x, half = mp.mpf(epsilon), mp.mpf(mu(epsilon)) / 2
        log_rate = -x / 2 - mp.log(2) if mu is t.laplace_mu else -x - mp.log1p(mp.exp(-x))
        ends = (mp.log(mp.ncdf(-half * share)) for share in (1, 1 - mp.mpf(2) ** -51))
        assert next(ends) <= log_rate < next(ends)


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
        lower, upper = by_losses.plan_divergence(terms, order)
        divisor = Fraction(order) - 1
        ends = [count * (Fraction(mid) + side * Fraction(radius)) / divisor for side in (-1, 1)]
        slack = 1 + Fraction(1, 10**9)
        assert ends[0] / slack <= Fraction(lower) <= ends[0]
        assert ends[1] <= Fraction(upper) <= ends[1] * slack


def test_exact_numbers_and_their_roots_are_rounded_up_in_both_readings() -> None:
    draw = np.random.default_rng(5)
    for _ in range(DRAWS):
        value = Fraction(int(draw.integers(1, 10**9)), int(draw.integers(1, 10**9)))
        found, root = float_above(value, least_reading), by_losses.root_up(value)
        assert min(Fraction(found), decimal(found)) >= value
        assert found == pytest.approx(float(value), rel=1e-15)
        assert least_reading(root) ** 2 >= value >= Fraction(root) ** 2 * (1 - Fraction(1, 10**14))


def test_a_quantile_is_one_from_below() -> None:
    with mp.workdps(50):
        for (rate,) in list(sizes(6, (-30.0, -0.01)))[::10]:
            found = t.quantile_below(mp.log(mp.mpf(rate)))
            assert mp.ncdf(found) <= rate <= mp.ncdf(found + mp.mpf(10) ** -23 * (1 + abs(found)))


def test_the_mu_of_categories_and_of_integer_noise_is_that_of_the_worst_vertex() -> None:
    responses = [RandomizedResponseLoss(e, k) for e, k in ((0.3, 3), (2.0, 9), (8.0, 1000))]
    noise = [DiscreteLaplaceLoss(b, d) for b, d in ((0.7, 2), (2.5, 4), (3.0, 7), (0.5, 7))]
    with mp.workdps(50):
        for loss in (*responses, *noise):
            values, own = loss.nodes(0, loss.atoms().loss.size)
            other = [mass * mp.exp(-value) for value, mass in zip(values, own, strict=True)]
            truth = max(
                -mp.sqrt(2) * (mp.erfinv(2 * sum(own[:k]) - 1) + mp.erfinv(2 * sum(other[k:]) - 1))
                for k in range(1, len(own))
            )
            found = by_losses.least_mu(loss)
            assert truth * (1 + mp.mpf(2) ** -48) <= found <= truth * (1 + mp.mpf(2) ** -46)


def test_the_epsilon_of_a_delta_meets_both_of_its_readings() -> None:
    with mp.workdps(50):
        for delta in np.random.default_rng(9).uniform(0.1, 0.9, 200).tolist():
            estimate = float(1 / mp.mpf(delta) - 1)
            found = least_epsilon(lambda e: 1 / (1 + e), delta, estimate)
            assert 1 / (1 + Fraction(found)) <= least_reading(delta)
            assert found == pytest.approx(estimate, rel=1e-14)
