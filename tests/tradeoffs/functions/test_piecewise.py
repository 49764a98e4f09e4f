"""Polygons against exact fractions, and (epsilon, delta) against its formula in many digits."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs.functions.piecewise import (
    IDENTITY,
    ApproxTradeOff,
    PiecewiseLinearTradeOff,
    discrete_tradeoff,
)

RATES = np.array([0.0, 1e-280, 1e-12, 1e-6, 0.01, 0.2, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12, 1.0])


def most_power(p: list[Fraction], q: list[Fraction], alpha: Fraction) -> Fraction:
    """Return the power of Neyman and Pearson's randomized test, in fractions."""
    order = sorted(range(len(p)), key=lambda k: -q[k] / p[k] if p[k] else -Fraction(10**30))
    power, left = Fraction(0), alpha
    for k in order:
        share = min(Fraction(1), left / p[k]) if p[k] else Fraction(1)
        power, left = power + share * q[k], left - share * p[k]
    return power


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 1.0, 20.0])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-5, 0.3, 1.0])
def test_the_budget_s_function_holds_its_formula(epsilon: float, delta: float) -> None:
    f = ApproxTradeOff(epsilon, delta)
    lower, upper = f.bounds(RATES)
    power = f.power(RATES)
    with mp.workdps(340):
        e, d = mp.exp(epsilon), mp.mpf(delta)
        for k, alpha in enumerate(RATES):
            a = mp.mpf(alpha)
            truth = max(mp.mpf(0), 1 - d - e * a, (1 - d - a) / e)
            assert lower[k] <= truth <= upper[k]
            assert 1 - truth <= power[k] <= (1 - truth) * (1 + mp.mpf("1e-12")) + mp.mpf("1e-297")
            # Where f meets 0 the rate's round-off is all there is to see.
            assert upper[k] - lower[k] <= 1e-12 * truth + 2e-14 * min(1.0, 1.0 - alpha) + 1e-297


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.999, 1.0, 1.001, 5.0, 800.0])
def test_the_profile_of_a_budget_is_the_known_one(epsilon: float) -> None:
    for delta in (0.0, 1e-5, 0.2):
        values = ApproxTradeOff(1.0, delta).forward.at(np.array([epsilon]))
        with mp.workdps(40):
            e, d = mp.e, mp.mpf(delta)
            truth = max(d, d + (1 - d) * (e - mp.exp(epsilon)) / (e + 1))
            assert values.lower[0] <= truth <= values.upper[0]
            assert values.upper[0] - values.lower[0] <= 1e-13


def test_the_advantage_under_a_budget_is_the_known_value() -> None:
    value = 0.4621225360884371584
    upper = float(ApproxTradeOff(1.0, 1e-5).forward.at(np.zeros(1)).upper[0])
    with mp.workdps(30):
        truth = (mp.e - 1 + mp.mpf("2e-5")) / (mp.e + 1)
    assert truth <= upper <= truth * (1 + mp.mpf("1e-12"))
    assert upper == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "alpha", "value"),
    [
        (math.inf, 0.0, 0.0, 0.0),
        (1.0, 1.0, 0.0, 0.0),
        (0.0, 0.25, 0.25, 0.5),
        (0.0, 0.25, 0.9, 0.0),
        (1.0, 0.0, 1.0, 0.0),
        (800.0, 0.25, 0.5, 0.0),
    ],
)
def test_each_row_of_the_edge_table_holds(
    epsilon: float, delta: float, alpha: float, value: float
) -> None:
    lower, upper = ApproxTradeOff(epsilon, delta).bounds(alpha)
    assert lower <= value <= upper
    assert upper - lower <= 1e-12


def test_the_envelope_is_convex_and_its_corners_are_the_points() -> None:
    f = PiecewiseLinearTradeOff([0.5, 0.125, 0.25, 0.75], [0.25, 0.5, 0.5, 0.25])
    assert f.corners.alphas == (0.0, 0.125, 0.5, 1.0)
    assert f.corners.betas == (1.0, 0.5, 0.25, 0.0)
    for alpha, beta in zip(f.corners.alphas, f.corners.betas, strict=True):
        lower, upper = f.bounds(alpha)
        assert lower <= beta <= upper
        assert upper - lower <= 1e-14


def test_points_above_the_diagonal_are_absorbed() -> None:
    f = PiecewiseLinearTradeOff([0.2, 0.9, 1.0], [0.9, 0.9, 0.5])
    assert f.corners.alphas == (0.0, 1.0)
    assert PiecewiseLinearTradeOff([], []).corners == f.corners
    assert f.bounds(0.25) == pytest.approx((0.75, 0.75), rel=1e-14)


def test_complements_keep_digits_that_the_rates_have_lost() -> None:
    f = PiecewiseLinearTradeOff([1e-20, 1.0], [1.0, 1e-20], rests=[1, 1e-19], powers=[1e-19, 1])
    assert f.power(1e-20) == pytest.approx(1e-19, rel=1e-13)
    assert f.inverse().power(1e-20) == pytest.approx(1e-19, rel=1e-13)
    assert f.forward.at(np.array([1.0])).upper[0] == pytest.approx(1e-19 - math.e * 1e-20)


@pytest.mark.parametrize("seed", range(6))
def test_discrete_outcomes_give_neyman_and_pearson_s_tests(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(7, 0.4)), rng.dirichlet(np.full(7, 0.4))
    p[seed % 3], q[3 + seed % 2] = 0.0, 0.0
    p, q = p / p.sum(), q / q.sum()
    f = discrete_tradeoff(p, q)
    exact = [Fraction(x) / sum(map(Fraction, p)) for x in p]
    other = [Fraction(x) / sum(map(Fraction, q)) for x in q]
    for alpha in np.r_[0.0, rng.random(20), 1e-9, 1 - 1e-9, 1.0]:
        truth = most_power(exact, other, Fraction(alpha))
        lower, upper = f.bounds(alpha)
        assert lower <= 1 - truth <= upper
        assert upper - lower <= 1e-13
        assert truth <= f.power(alpha) <= truth * (1 + Fraction(1, 10**12)) + Fraction(1, 10**300)


@pytest.mark.parametrize("seed", range(4))
def test_the_profiles_of_discrete_outcomes_are_their_sums(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(9))
    f = discrete_tradeoff(p, q)
    epsilon = np.r_[0.0, 3.0 * rng.random(20), 50.0, 800.0]
    forward, backward = f.forward.at(epsilon), f.backward.at(epsilon)
    with mp.workdps(40):
        for k, one in enumerate(epsilon):
            x = mp.exp(one)
            for values, above, below in ((forward, q, p), (backward, p, q)):
                terms = zip(map(mp.mpf, above), map(mp.mpf, below), strict=True)
                truth = mp.fsum(max(a - x * b, 0) for a, b in terms)
                assert values.lower[k] <= truth <= values.upper[k]
                assert values.upper[k] - values.lower[k] <= 1e-13


def test_impossible_outcomes_make_steps_at_both_ends() -> None:
    f = discrete_tradeoff([0.0, 0.5, 0.5, 0.0], [0.25, 0.75, 0.0, 0.0])
    assert f.bounds(0.0) == pytest.approx((0.75, 0.75), rel=1e-14)
    assert f.bounds(0.5)[1] <= 1e-14
    assert f.bounds(0.6)[1] <= 1e-300
    beyond = np.array([700.0, 5000.0])
    for profile, value in ((f.forward, 0.25), (f.backward, 0.5)):
        values = profile.at(beyond)
        assert (values.lower <= value).all()
        assert (values.upper >= value).all()
        assert np.allclose(values.lower, value, rtol=1e-13)


@pytest.mark.parametrize(
    "f",
    [ApproxTradeOff(1.0, 0.1), discrete_tradeoff([0.5, 0.25, 0.25], [0.25, 0.25, 0.5]), IDENTITY],
)
def test_symmetric_ones_are_their_own_inverse(f: hs.tradeoffs.TradeOff) -> None:
    assert f.is_symmetric
    assert np.array_equal(f.inverse()(RATES), f(RATES))


def test_the_identity_is_exact_to_the_neighbouring_float() -> None:
    for alpha in np.r_[RATES, 0.3, 1 / 3]:
        lower, upper = IDENTITY.bounds(alpha)
        assert Fraction(lower) <= 1 - Fraction(alpha) <= Fraction(upper)
        assert upper <= np.nextafter(lower, 2.0)
    assert IDENTITY.power(0.3) == 0.3


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([0.5], [0.5, 0.2]), "betas"),
        (([1.5], [0.5]), "alphas"),
        (([0.5], [float("nan")]), "betas"),
        ((0.5, 0.5), "alphas"),
        ((["x"], [0.5]), "alphas"),
    ],
)
def test_bad_points_are_refused_by_name(arguments: Any, name: str) -> None:
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        PiecewiseLinearTradeOff(*arguments)


def test_complements_that_contradict_are_refused() -> None:
    with pytest.raises(hs.errors.ParameterError, match="powers must be one less each of betas"):
        PiecewiseLinearTradeOff([0.1], [0.2], powers=[0.7])


@pytest.mark.parametrize(
    ("p", "q", "name"),
    [
        ([0.5, 0.4], [0.5, 0.5], "p"),
        ([0.5, 0.5], [1.5, -0.5], "q"),
        ([1.0], [0.5, 0.5], "q"),
        ([], [], "p"),
        ([[1.0]], [[1.0]], "p"),
    ],
)
def test_what_is_no_pair_of_distributions_is_refused(p: Any, q: Any, name: str) -> None:
    with pytest.raises(hs.errors.ParameterError, match=f"^{name} must be"):
        discrete_tradeoff(p, q)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1, 0), (1, 2), (float("nan"), 0), (1, "x")])
def test_bad_budgets_are_refused(epsilon: Any, delta: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="must be"):
        ApproxTradeOff(epsilon, delta)


def test_rates_that_are_one_float_less_one_are_told_apart() -> None:
    f = PiecewiseLinearTradeOff([1e-20], [0.5])
    for ends in (f.bounds(5e-21), f.inverse().bounds(0.75)[::-1]):
        assert min(ends) <= (0.75 if ends[0] > 0.1 else 5e-21) <= max(ends)
    assert f.bounds(5e-21) == pytest.approx((0.75, 0.75), rel=1e-13)
    type_ii = f.type_ii_of_complement(np.ones(1))
    assert type_ii.lower[0] <= 0.5
    assert type_ii.upper[0] >= 1.0
