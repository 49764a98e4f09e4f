"""Audits against mpmath and against check values that were published or derived elsewhere."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest
from mpmath import mp

from hockeystick.audit.one_run import Guesses, epsilon_by_binomial, largest_rejected, of_gaussians
from hockeystick.audit.region import (
    at_threshold,
    best_of,
    epsilons,
    lower_rate,
    mus,
    rectangle,
    upper_rate,
)

Real: TypeAlias = Any
TERMS = 20_000


def beta_tail(count: int, trials: int, rate: Real) -> Real:
    """``P[Bin(n, p) >= k]``, as an incomplete beta function."""
    return incomplete_beta(mp.mpf(count), mp.mpf(trials - count + 1), rate)


def incomplete_beta(a: Real, b: Real, x: Real) -> Real:
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x in (0, 1):
        return mp.mpf(x)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = mp.exp(
        a * mp.log(x) + b * mp.log1p(-x) + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    )
    value, upper, lower = mp.mpf(1), mp.mpf(1), mp.mpf(0)
    for n in range(1, TERMS):
        m = n // 2
        if n % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / (1 + term * lower)
        upper = 1 + term / upper
        value *= upper * lower
        if abs(upper * lower - 1) < mp.mpf(10) ** -22:
            return front / (a * value)
    raise ArithmeticError("the continued fraction has not converged")


GUESSES = Guesses(1000, 100, 95)


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mp.workdps(26):
        yield


def scores(false_negatives: int, false_positives: int, trials: int) -> tuple[Any, Any]:
    """Scores that a threshold of 0.5 errs on so often."""
    numbers = np.arange(trials)
    return (numbers >= false_negatives).astype(float), (numbers < false_positives).astype(float)


def below(found: float, known: Any, relative: float = 1e-7) -> bool:
    """Whether a bound is at most a number, and hardly less."""
    return bool(known * (1 - mp.mpf(relative)) <= found <= known)


def test_clopper_and_pearson_at_a_threshold_have_the_check_values() -> None:
    rule = at_threshold(*scores(700, 5, 1000), 0.5, rectangle(0.05))
    assert below(best_of([rule], epsilons(1e-5))[0], mp.mpf("3.151196972288175665870741"))
    assert below(best_of([rule], mus)[0], mp.mpf("1.661538408473707943"))


def test_one_run_has_the_check_value_and_is_above_the_bound_that_was_published() -> None:
    assert below(epsilon_by_binomial(GUESSES, 0.0, 0.05), mp.mpf("2.1724340431929"))
    assert epsilon_by_binomial(GUESSES, 1e-5, 0.05) > 2.1651757997140519769 + 0.006


def test_the_recursion_has_the_check_value() -> None:
    found = largest_rejected(GUESSES, 0.05, of_gaussians)
    assert below(found, mp.mpf("0.786811814682") + mp.mpf("5e-13"))


CASES = [(k, n) for n in (3, 100, 10_000, 1_000_000) for k in (0, 1, 2, n // 10, n // 2, n - 1, n)]


@pytest.mark.parametrize("level", [0.45, 0.025, 1e-9])
@pytest.mark.parametrize(("count", "trials"), [*dict.fromkeys(CASES)])
def test_bounds_on_a_rate_are_on_the_safe_side_and_close(
    count: int, trials: int, level: float
) -> None:
    upper = float(upper_rate(count, trials, np.array(level)))
    lower = float(lower_rate(count, trials, np.array(level)))
    near = mp.mpf("1e-8")
    with mp.workdps(40):
        if count < trials:
            others = trials - count
            assert beta_tail(others, trials, 1 - mp.mpf(upper)) <= level
            assert beta_tail(others, trials, 1 - upper * (1 - near)) > level
        else:
            assert upper == 1.0
        if count > 0:
            assert beta_tail(count, trials, mp.mpf(lower)) <= level
            assert beta_tail(count, trials, lower * (1 + near)) > level
        else:
            assert lower == 0.0
