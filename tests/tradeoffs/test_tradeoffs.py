"""Trade-off functions against closed forms in many digits, and the laws that all of them obey."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs import (
    GaussianProfile,
    ProfileTradeOff,
    SampledProfile,
    SwappedSampledProfile,
)
from hockeystick.tradeoffs.functions.piecewise import (
    ApproxTradeOff,
    PiecewiseLinearTradeOff,
    discrete_tradeoff,
)
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
from hockeystick.tradeoffs.operations.mixture import mixture
from hockeystick.tradeoffs.operations.renyi_integral import renyi_divergence
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiLine, RenyiPoints

RATES = np.array([1e-12, 1e-6, 0.01, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-6, 1 - 1e-12])
SAMPLED = ProfileTradeOff(
    (SampledProfile(GaussianProfile(1.5), 0.1), SwappedSampledProfile(GaussianProfile(1.5), 0.1))
)
BY_PROFILE = ProfileTradeOff((GaussianProfile(1.0), GaussianProfile(1.0)))
EXAMPLES: dict[str, hs.tradeoffs.TradeOff] = {
    "identity": hs.tradeoffs.GaussianTradeOff(0),
    "G_1": hs.tradeoffs.GaussianTradeOff(1),
    "G_6": hs.tradeoffs.GaussianTradeOff(6),
    "G_2 by its profile": ProfileTradeOff((GaussianProfile(2.0), GaussianProfile(2.0))),
    "C_p(G_1) by its profile": BY_PROFILE.subsample(0.2),
    "f_p of G_1.5": SAMPLED,
    "its inverse": SAMPLED.inverse(),
    "both": SAMPLED.symmetrize(),
}
each = pytest.mark.parametrize("f", EXAMPLES.values(), ids=EXAMPLES.keys())


@pytest.mark.parametrize("mu", [0.01, 0.3, 10.0])
def test_the_gaussian_holds_the_truth_with_ten_digits_in_both_tails(mu: float) -> None:
    assert_holds(hs.tradeoffs.GaussianTradeOff(mu), mu, "1e-10", "1e-10")


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_the_route_by_profiles_holds_the_truth_too(mu: float) -> None:
    f = ProfileTradeOff((GaussianProfile(mu), GaussianProfile(mu)))
    assert_holds(f, mu, "3e-8", "1e-9")


def assert_holds(f: hs.tradeoffs.TradeOff, mu: float, width: str, above: str) -> None:
    lower, upper = f.bounds(RATES)
    power = f.power(RATES)
    with mp.workdps(40):
        for k, alpha in enumerate(RATES):
            truth = mp.ncdf(-mp.sqrt(2) * mp.erfinv(2 * mp.mpf(alpha) - 1) - mu)
            assert lower[k] <= truth <= upper[k]
            assert upper[k] - lower[k] <= mp.mpf(width) * truth
            assert 1 - truth <= power[k] <= (1 - truth) * (1 + mp.mpf(above))


@each
def test_epsilon_and_delta_belong_together(f: hs.tradeoffs.TradeOff) -> None:
    for delta in (0.3, 1e-3, 1e-8):
        epsilon = f.epsilon(delta)
        assert f.delta(epsilon.upper).upper <= delta
        assert epsilon.lower == 0.0 or f.delta(epsilon.lower).lower > delta
        assert epsilon.upper - epsilon.lower <= 1e-6 * epsilon.upper


@each
def test_the_readings_are_those_of_the_function(f: hs.tradeoffs.TradeOff) -> None:
    alpha = np.linspace(0.0, 1.0, 2001)
    assert f.advantage == pytest.approx(float((1 - alpha - f(alpha)).max()), abs=1e-3)
    for prior in (0.5, 0.1, 0.8):
        errors = prior * alpha + (1 - prior) * f(alpha)
        assert f.bayes_error(prior) <= errors.min() + 1e-9
        assert f.bayes_error(prior) == pytest.approx(errors.min(), abs=1e-3)
    assert f.bayes_error(0.0) == f.bayes_error(1.0) == 0.0


@pytest.mark.parametrize("mu", [0.5, 3.0])
@pytest.mark.parametrize("log_alpha", [-1e-12, -0.7, -40.0, -800.0, -1e6])
def test_the_gaussian_holds_the_truth_in_log_space(mu: float, log_alpha: float) -> None:
    f = hs.tradeoffs.GaussianTradeOff(mu)
    with mp.workdps(40):
        quantile = _quantile(log_alpha)
        type_ii, power = _log_ncdf(-quantile - mu), _log_ncdf(quantile + mu)
    for (lower, upper), truth in (
        (f.log_bounds(log_alpha), type_ii),
        (f.log_power_bounds(log_alpha), power),
    ):
        assert lower <= truth <= upper
        assert upper - lower <= 1e-9 * abs(truth) + 1e-300


def _log_ncdf(x: Any) -> Any:
    if x > 0:
        return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def _quantile(log_alpha: float) -> Any:
    start = -mp.sqrt(-2 * mp.mpf(log_alpha)) if log_alpha < -1 else mp.mpf(1)
    if log_alpha > -1e-6:
        start = mp.mpf(7)
    return mp.findroot(lambda x: _log_ncdf(x) - log_alpha, (start, start + 0.1), tol=1e-60)


def test_other_functions_take_logarithms_too() -> None:
    logs, g = np.array([-600.0, -30.0, -0.5]), hs.tradeoffs.GaussianTradeOff(1)
    close, wide = g.log_bounds(logs), BY_PROFILE.log_bounds(logs)
    assert (wide[0] <= close[1]).all()
    assert (close[0] <= wide[1]).all()
    assert np.allclose(g.log_power_bounds(logs), BY_PROFILE.log_power_bounds(logs), rtol=1e-9)
    with pytest.raises(hs.errors.ParameterError, match="log_alpha must be at least -700"):
        BY_PROFILE.log_bounds(-701)
    with pytest.raises(hs.errors.ParameterError, match="log_alpha must be a number <= 0"):
        BY_PROFILE.log_bounds(0.1)


def test_the_largest_loss_of_the_other_direction_is_rounded_up() -> None:
    source = random.Random("largest loss")
    with mp.workdps(40):
        for _ in range(500):
            rate = source.choice([source.random(), 1 - 10 ** source.uniform(-15, -1)])
            inner = hs.tradeoffs.LaplaceTradeOff(10 ** source.uniform(-2, 12)).forward
            kept = 1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp(-mp.mpf(inner.supremum))
            found = SwappedSampledProfile(inner, rate).supremum
            assert -mp.log(kept) <= found <= -mp.log(kept) * (1 + mp.mpf(10) ** -14)


G_1 = hs.tradeoffs.GaussianTradeOff(1)
NAN = float("nan")
REFUSED: list[tuple[Callable[..., object], str, list[Any]]] = [
    (G_1, "(alpha|fpr) must be a number from 0 to 1", [-0.1, 1.1, NAN, [0.5, 2.0], "x", None]),
    (G_1.bounds, "alpha must be a number from 0 to 1", [-0.1, 1.1, NAN, "x"]),
    (G_1.power, "(alpha|fpr) must be a number from 0 to 1", [-0.1, 1.1, NAN, "x"]),
    (G_1.group, "size must be an integer from 1", [0, -1, 1.5, NAN, "2", None, 10**16]),
    (hs.tradeoffs.GaussianTradeOff, "mu must be a finite number >= 0", [-1, NAN, math.inf, "1"]),
    (hs.tradeoffs.LaplaceTradeOff, "scale must be a number > 0", [0, -1, NAN, "1", None]),
    (lambda mu: SampledGaussianTradeOff(mu, 0.5), "must be", [-1, math.inf]),
    (lambda rate: SampledGaussianTradeOff(1, rate), "must be", [1.5, "x"]),
    (lambda given: ApproxTradeOff(*given), "must be", [(-1, 0), (1, 2), (NAN, 0), (1, "x")]),
    (
        lambda given: PiecewiseLinearTradeOff(*given),
        "^alphas must be",
        [([1.5], [0.5]), (0.5, 0.5), (["x"], [0.5])],
    ),
    (lambda betas: PiecewiseLinearTradeOff([0.5], betas), "^betas must be", [[0.5, 0.2], [NAN]]),
    (
        lambda powers: PiecewiseLinearTradeOff([0.1], [0.2], powers=powers),
        "powers must be one less each of betas",
        [[0.7]],
    ),
    (
        lambda given: discrete_tradeoff(*given),
        "^p must be",
        [([0.5, 0.4], [0.5, 0.5]), ([], []), ([[1.0]], [[1.0]])],
    ),
    (
        lambda given: discrete_tradeoff(*given),
        "^q must be",
        [([0.5, 0.5], [1.5, -0.5]), ([1.0], [0.5, 0.5])],
    ),
    (RenyiPoints, "divergences must be at least one pair", [[]]),
    (RenyiPoints, "order must be a finite number > 1", [[(1, 1)]]),
    (RenyiPoints, "divergence must be a finite number >= 0", [[(2, math.inf)]]),
    (RenyiLine, "rho must be a finite number >= 0", [-1]),
    (lambda omega: RenyiLine(1, omega), "omega must be a number > 1 or inf", [1]),
    (
        mixture,
        "parts must be pairs",
        [[], [(0.5, G_1)], [(0.5, G_1), (0.6, G_1)], [(1.0, 3.0)], [(1.0,)], None],
    ),
    (
        lambda weight: mixture([(weight, G_1)]),
        "weight must be a number from 0 to 1",
        [-0.5, NAN, "1"],
    ),
    (lambda order: renyi_divergence(G_1, order), "order must be", [1, 0.5, math.inf, NAN, "2"]),
]


@pytest.mark.parametrize(
    ("make", "reason", "value"),
    [(make, reason, value) for make, reason, values in REFUSED for value in values],
)
def test_what_is_out_of_the_domain_is_refused_by_name(
    make: Callable[..., object], reason: str, value: Any
) -> None:
    with pytest.raises(hs.errors.ParameterError, match=reason):
        make(value)
