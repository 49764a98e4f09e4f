"""Elementary functions and sums over nodes: their round-off, against mpmath at 40 digits."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from hockeystick.kernels import series
from hockeystick.numerics.multiprecision import mp
from tests.precision import twins as twin

LIMIT = 4


def jitted(function: Callable[..., float]) -> Any:
    names = ("a", "b")[: 2 if function is math.atan2 else 1]
    scope: dict[str, Any] = {"f": function}
    exec(f"def call({', '.join(names)}): return f({', '.join(names)})", scope)
    return njit(scope["call"])


def signed(source: random.Random, low: float, high: float) -> float:
    return float(source.choice((-1, 1)) * 10 ** source.uniform(low, high))


def near_zero(source: random.Random) -> float:
    return signed(source, -20, 2.8)


def positive(source: random.Random) -> float:
    close_to_one = source.random() < 0.3
    return 1 + signed(source, -15, -1) if close_to_one else float(10 ** source.uniform(-300, 300))


def above_minus_one(source: random.Random) -> float:
    return max(signed(source, -20, 0) * 0.999999, -0.999999) * source.choice((1.0, 0.5))


def angle(source: random.Random) -> float:
    return signed(source, -6, 6)


FUNCTIONS: dict[str, tuple[Any, Any, Any, Callable[[random.Random], float]]] = {
    "exp": (math.exp, np.exp, mp.exp, near_zero),
    "expm1": (math.expm1, np.expm1, mp.expm1, near_zero),
    "log": (math.log, np.log, mp.log, positive),
    "log1p": (math.log1p, np.log1p, mp.log1p, above_minus_one),
    "sin": (math.sin, np.sin, mp.sin, angle),
    "cos": (math.cos, np.cos, mp.cos, angle),
}


def units(found: float, truth: Any) -> float:
    return float(abs(mp.mpf(float(found)) - truth) / mp.mpf(math.ulp(float(truth))))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("library", ["compiled", "math", "numpy"])
def test_a_function_of_one_number_errs_by_at_most_four_units(name: str, library: str) -> None:
    plain, of_arrays, exact, draw = FUNCTIONS[name]
    source = random.Random(name)
    points = [draw(source) for _ in range(200)]
    if library == "numpy":
        found = of_arrays(np.array(points)).tolist()
    else:
        call = jitted(plain) if library == "compiled" else plain
        found = [call(x) for x in points]
    with mp.workdps(60):
        worst = max(units(y, exact(mp.mpf(x))) for x, y in zip(points, found, strict=True))
    assert worst <= LIMIT


def test_the_angle_of_a_point_errs_by_at_most_four_units() -> None:
    call = jitted(math.atan2)
    source = random.Random(3)
    with mp.workdps(60):
        for _ in range(200):
            y, x = signed(source, -8, 3), signed(source, -8, 3)
            truth = mp.atan2(mp.mpf(y), mp.mpf(x))
            assert units(call(y, x), truth) <= LIMIT
            assert units(float(np.arctan2(y, x)), truth) <= LIMIT


Array = NDArray[np.float64]
ULP = 2.0**-52
DIGITS = 40


@pytest.mark.parametrize("seed", range(2))
def test_e2_is_good_to_a_few_units_in_the_last_place_at_any_size(seed: int) -> None:
    source = random.Random(seed)
    with mp.workdps(DIGITS):
        for _ in range(200):
            x = signed(source, -150, 2.8)
            truth = twin.e2(mp.mpf(x))
            assert abs(series.e2(x) - truth) <= 16 * ULP * truth
    assert series.e2(0.0) == 0.0


@pytest.mark.parametrize("seed", range(2))
def test_weighted_e2_reaches_beyond_the_range_of_exp(seed: int) -> None:
    source = random.Random(100 + seed)
    with mp.workdps(DIGITS):
        for _ in range(100):
            x = signed(source, -8, 3.2)
            log_weight = source.uniform(-700, 100) - max(x, 0.0)
            weight = mp.exp(mp.mpf(log_weight))
            truth = weight * twin.e2(mp.mpf(x))
            parts = mp.exp(mp.mpf(log_weight) + x) + weight * (1 + abs(x))
            size = truth if abs(x) <= 0.5 else parts
            allowed = size * ULP * (16 + abs(log_weight) + abs(x)) + mp.mpf(2) ** -1070
            assert abs(series.weighted_e2(log_weight, x) - truth) <= allowed


def some_nodes(source: random.Random, spread: float, size: int = 40) -> tuple[Array, Array]:
    loss = np.array([source.gauss(0.0, spread) for _ in range(size)])
    log_weight = np.array([source.uniform(-60.0, 0.0) for _ in range(size)])
    return loss, log_weight


@pytest.mark.parametrize("spread", [1e-9, 1e-6, 1e-3, 0.3, 5.0])
@pytest.mark.parametrize("c", [1e-3, 0.7, 30.0])
def test_cumulant_sums_keep_their_digits_however_small_the_losses(spread: float, c: float) -> None:
    loss, log_weight = some_nodes(random.Random(7), spread)
    with mp.workdps(DIGITS):
        shift, *found = series.cumulant_sums(loss, log_weight, c)
        scale = mp.exp(mp.mpf(shift))
        exact = twin.cumulant_sums(loss.tolist(), log_weight.tolist(), c)
        for mine, truth in zip(found, exact, strict=True):
            assert abs(mine * scale - truth) <= 1e-13 * abs(truth)


@pytest.mark.parametrize("spread", [1e-6, 1e-2, 0.4, 4.0])
@pytest.mark.parametrize("seed", range(2))
def test_the_claimed_round_off_of_a_line_bounds_the_true_one(spread: float, seed: int) -> None:
    source = random.Random(seed)
    loss, log_weight = some_nodes(source, spread)
    nothing = np.zeros(loss.size)
    c, step, count = 10 ** source.uniform(-2, 1.3), 10 ** source.uniform(-2, 2), 6
    found = series.mgf_line(loss, log_weight, nothing, nothing, c, step, count)
    with mp.workdps(DIGITS):
        x = [mp.mpf(float(one)) for one in loss]
        weight = [mp.exp(mp.mpf(float(one))) for one in log_weight]
        share = twin.worst_share(found, twin.mgf_line(x, weight, c, step, count))
    assert share <= 1.0


@pytest.mark.parametrize("spread", [1e-6, 1e-2, 0.4, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_claimed_round_off_at_several_orders_bounds_the_true_one(
    spread: float, seed: int
) -> None:
    source = random.Random(100 + seed)
    loss, log_weight = some_nodes(source, spread)
    nothing = np.zeros(loss.size)
    orders = np.array([10 ** source.uniform(-2, 1.3) for _ in range(3)])
    value, error = series.logs_at(loss, log_weight, nothing, nothing, -1000.0, orders)
    with mp.workdps(DIGITS):
        x = [mp.mpf(float(one)) for one in loss]
        weight = [mp.exp(mp.mpf(float(one))) for one in log_weight]
        for c, found, slack in zip(orders, value, error, strict=True):
            truth = mp.log1p(twin.mgf_line(x, weight, c, 0.0, 1)[0])
            assert abs(truth - found) <= slack <= 1e-9 * (1.0 + abs(truth))


def test_what_a_rule_errs_by_is_counted_at_every_order() -> None:
    loss, log_weight = some_nodes(random.Random(4), 0.4)
    log_weight -= np.log(np.exp(log_weight).sum())
    nothing = np.zeros(loss.size)
    orders = np.array([0.1, 2.0])
    values, errors = series.logs_at(loss, log_weight, nothing, nothing, math.log(1e-4), orders)
    for c, value, error in zip(orders, values, errors, strict=True):
        assert error == pytest.approx(1e-4 * math.exp(-value), rel=2e-3)
        line = series.log_line(loss, log_weight, nothing, nothing, math.log(1e-4), c, 0.5, 2)
        assert line[2][0] == pytest.approx(error, rel=2e-3)


@pytest.mark.parametrize("modulus", [1.0, 0.3])
def test_a_value_that_is_hardly_known_has_a_size_that_covers_it(modulus: float) -> None:
    given = (np.array([modulus - 1.0]), np.zeros(1), np.array([0.9 * modulus]), 0.0)
    log, _, error = (float(one[0]) for one in series.logs_of_line(*given))
    assert log >= math.log(1.9 * modulus)
    assert error >= 2.0
    half = (np.array([modulus - 1.0]), np.zeros(1), np.array([0.4 * modulus]), 0.0)
    log, _, error = (float(one[0]) for one in series.logs_of_line(*half))
    assert log - error <= math.log(0.6 * modulus)


def test_what_losses_are_off_is_counted_along_a_line() -> None:
    loss, log_weight = some_nodes(random.Random(5), 0.4, size=8)
    off, nothing = np.full(8, 1e-7), np.zeros(8)
    moved = loss + off * np.where(loss > 0.0, 1.0, -1.0)
    found = series.mgf_line(moved, log_weight, off, nothing, 1.5, 7.0, 5)
    with mp.workdps(DIGITS):
        weight = [mp.exp(mp.mpf(float(one))) for one in log_weight]
        truth = twin.mgf_line([mp.mpf(float(one)) for one in loss], weight, 1.5, 7.0, 5)
        assert 0.05 < twin.worst_share(found, truth) <= 1.0
