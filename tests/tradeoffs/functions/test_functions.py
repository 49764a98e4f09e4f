"""Trade-off functions against tests, fractions and divergences in many digits."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs.functions.closed_forms import LaplaceTradeOff
from hockeystick.tradeoffs.functions.renyi import RenyiProfile, RenyiTradeOff
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiCurve, RenyiPoints

RATES = np.array([1e-280, 1e-12, 0.01, 0.18, 0.19, 0.3, 0.5, 0.51, 0.9, 1 - 1e-12])
SCALES = [1e-3, 0.1, 1e4]


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


PLACES = np.array([0.0, 1e-280, 1e-12, 1e-6, 0.01, 0.2, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12, 1.0])


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
    f = hs.tradeoffs.ApproxTradeOff(epsilon, delta)
    lower, upper = f.bounds(PLACES)
    power = f.power(PLACES)
    with mp.workdps(340):
        e, d = mp.exp(epsilon), mp.mpf(delta)
        for k, alpha in enumerate(PLACES):
            a = mp.mpf(alpha)
            truth = max(mp.mpf(0), 1 - d - e * a, (1 - d - a) / e)
            assert lower[k] <= truth <= upper[k]
            assert 1 - truth <= power[k] <= (1 - truth) * (1 + mp.mpf("1e-12")) + mp.mpf("1e-297")
            # Where f meets 0 the rate's round-off is all there is to see.
            assert upper[k] - lower[k] <= 1e-12 * truth + 2e-14 * min(1.0, 1.0 - alpha) + 1e-297


@pytest.mark.parametrize(
    ("epsilon", "delta", "alpha"),
    [(math.inf, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.25, 0.9), (800.0, 0.25, 0.5)],
)
def test_a_budget_s_function_ends_at_0(epsilon: float, delta: float, alpha: float) -> None:
    assert hs.tradeoffs.ApproxTradeOff(epsilon, delta).bounds(alpha)[1] <= 1e-12


@pytest.mark.parametrize(
    "plan", [hs.mechanisms.Staircase(2.0), hs.mechanisms.UnaryEncoding(1.6)], ids=str
)
def test_a_profile_that_is_one_line_gives_f_to_round_off(plan: hs.Mechanism) -> None:
    lower, upper = hs.tradeoff(plan).bounds(RATES)
    assert (upper - lower <= 1e-9 * upper).all()


def test_the_envelope_is_convex_and_its_corners_are_the_points() -> None:
    f = hs.tradeoffs.PiecewiseLinearTradeOff([0.5, 0.125, 0.25, 0.75], [0.25, 0.5, 0.5, 0.25])
    assert f.corners.alphas == (0.0, 0.125, 0.5, 1.0)
    assert f.corners.betas == (1.0, 0.5, 0.25, 0.0)
    for alpha, beta in zip(f.corners.alphas, f.corners.betas, strict=True):
        lower, upper = f.bounds(alpha)
        assert lower <= beta <= upper <= lower + 1e-14
    above = hs.tradeoffs.PiecewiseLinearTradeOff([0.2, 0.9, 1.0], [0.9, 0.9, 0.5])
    assert above.corners == hs.tradeoffs.PiecewiseLinearTradeOff([], []).corners


@pytest.mark.parametrize("seed", range(6))
def test_discrete_outcomes_give_neyman_and_pearson_s_tests(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(7, 0.4)), rng.dirichlet(np.full(7, 0.4))
    p[seed % 3], q[3 + seed % 2] = 0.0, 0.0
    p, q = p / p.sum(), q / q.sum()
    f = hs.tradeoffs.discrete_tradeoff(p, q)
    exact = [Fraction(x) / sum(map(Fraction, p)) for x in p]
    other = [Fraction(x) / sum(map(Fraction, q)) for x in q]
    for alpha in np.r_[0.0, rng.random(20), 1e-9, 1 - 1e-9, 1.0]:
        truth = most_power(exact, other, Fraction(alpha))
        lower, upper = f.bounds(alpha)
        assert lower <= 1 - truth <= upper
        assert upper - lower <= 1e-13
        assert truth <= f.power(alpha) <= truth * (1 + Fraction(1, 10**12)) + Fraction(1, 10**300)


def test_impossible_outcomes_make_steps_at_both_ends() -> None:
    f = hs.tradeoffs.discrete_tradeoff([0.0, 0.5, 0.5, 0.0], [0.25, 0.75, 0.0, 0.0])
    assert f.bounds(0.0) == pytest.approx((0.75, 0.75), rel=1e-14)
    assert f.bounds(0.5)[1] <= 1e-14
    assert f.bounds(0.6)[1] <= 1e-300
    beyond = np.array([700.0, 5000.0])
    for profile, value in ((f.forward, 0.25), (f.backward, 0.5)):
        values = profile.at(beyond)
        assert (values.lower <= value).all()
        assert (values.upper >= value).all()
        assert np.allclose(values.lower, value, rtol=1e-13)


def test_the_identity_is_exact_to_the_neighbouring_float() -> None:
    for alpha in np.r_[PLACES, 0.3, 1 / 3]:
        lower, upper = hs.tradeoffs.IDENTITY.bounds(alpha)
        assert Fraction(lower) <= 1 - Fraction(alpha) <= Fraction(upper)
        assert upper <= np.nextafter(lower, 2.0)
    assert hs.tradeoffs.IDENTITY.power(0.3) == 0.3


def test_rates_that_are_one_float_less_one_are_told_apart() -> None:
    f = hs.tradeoffs.PiecewiseLinearTradeOff([1e-20], [0.5])
    for ends in (f.bounds(5e-21), f.inverse().bounds(0.75)[::-1]):
        assert min(ends) <= (0.75 if ends[0] > 0.1 else 5e-21) <= max(ends)
    assert f.bounds(5e-21) == pytest.approx((0.75, 0.75), rel=1e-13)
    type_ii = f.type_ii_of_complement(np.ones(1))
    assert type_ii.lower[0] <= 0.5
    assert type_ii.upper[0] >= 1.0


POINTS = [1e-12, 1e-5, 0.01, 0.05, 0.2, 0.4, 0.7, 0.99, 1 - 1e-9]
CURVES: list[RenyiCurve] = [
    RenyiPoints([(2, 0.5)]),
    RenyiPoints([(4, 1), (1.5, 0.6)]),
    RenyiPoints([(1.1, 1e-3)]),
    RenyiPoints([(30, 12)]),
]


def divergence(a: Any, x: Any, y: Any) -> Any:
    """Return D_a of (1 - y, y) from (x, 1 - x)."""
    return mp.log((1 - y) ** a * x ** (1 - a) + y**a * (1 - x) ** (1 - a)) / (a - 1)


@pytest.mark.parametrize(
    ("order", "size", "rate", "value"),
    [(2, 0.5, 0.1, 0.658370294949044948315063), (4, 1, 0.05, 0.7773506488335668365106915)],
)
def test_the_printed_values_come_out(order: float, size: float, rate: float, value: float) -> None:
    f = RenyiTradeOff(RenyiPoints([(order, size)]))
    lower, upper = f.bounds(rate)
    assert lower <= value <= upper
    assert upper - lower <= 1e-12 * value


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_the_ends_lie_on_either_side_of_where_the_larger_divergence_is_reached(
    curve: RenyiPoints,
) -> None:
    f = RenyiTradeOff(curve)
    lower, upper = f.bounds(POINTS)
    power_lower, power_upper = f.power_bounds(POINTS)

    def over(x: Any, y: Any) -> bool:
        return y <= 0 or any(
            max(divergence(mp.mpf(a), x, y), divergence(mp.mpf(a), y, x)) > size
            for a, size in curve.divergences
        )

    with mp.workdps(60):
        for k, rate in enumerate(POINTS):
            x = mp.mpf(rate)
            assert over(x, mp.mpf(lower[k]))
            assert over(x, 1 - mp.mpf(power_upper[k]))
            assert not over(x, min(mp.mpf(upper[k]), 1 - x))
            assert not over(x, min(1 - mp.mpf(power_lower[k]), 1 - x))
            assert upper[k] - lower[k] <= 1e-6 * upper[k]
            assert power_upper[k] - power_lower[k] <= 1e-6 * power_upper[k]


@pytest.mark.parametrize("divergences", [{2: 0.5}, {1.5: 0.6, 4: 1}, {1.1: 1e-3, 30: 12}], ids=str)
def test_the_profile_holds_the_best_conversion(divergences: dict[float, float]) -> None:
    epsilons = [0.0, 0.3, 1.0, 2.0]
    found = RenyiProfile(RenyiPoints(divergences.items())).at(np.array(epsilons))
    for k, epsilon in enumerate(epsilons):
        best = hs.convert(hs.RenyiDP(divergences), hs.ApproxDP, epsilon=epsilon).delta
        assert found.lower[k] <= best <= found.upper[k] * (1 + 1e-12)


LIMIT = 32


def _phi(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _log_phi(x: Any) -> Any:
    return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(_phi(x))


def around(source: random.Random) -> float:
    return source.uniform(-37, 37) if source.random() < 0.7 else source.gauss(0, 0.01)


def upward(source: random.Random) -> float:
    return float(10 ** source.uniform(-10, 5)) - 1.0 * (source.random() < 0.3)


FUNCTIONS: dict[str, tuple[Any, Any, Callable[[random.Random], float]]] = {
    "ndtr": (special.ndtr, _phi, around),
    "log_ndtr": (special.log_ndtr, _log_phi, lambda source: source.uniform(-1e4, 8)),
    "erfcx": (special.erfcx, lambda x: mp.erfc(x) * mp.exp(x * x), upward),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_good_to_so_many_units(name: str) -> None:
    function, exact, draw = FUNCTIONS[name]
    source = random.Random(f"special {name}")
    points = [draw(source) for _ in range(300)]
    with mp.workdps(40):
        for x, found in zip(points, function(np.array(points)), strict=True):
            truth = exact(mp.mpf(x))
            # The argument's own half unit is not the function's fault, but comes with it.
            assert abs(mp.mpf(float(found)) - truth) <= LIMIT * mp.mpf(2) ** -52 * abs(truth) * (
                1 + abs(x) if name == "ndtr" else 1
            ), x
