"""Tails are at least those of arithmetic in 50 digits, and little more."""

from __future__ import annotations

from math import comb

import mpmath
import numpy as np
import pytest

from hockeystick.audit.recording import checks as tails

CASES = [(3, 20, 0.1), (0, 20, 0.1), (20, 20, 0.9), (12, 1000, 0.001), (400, 1000, 0.3)]
WIDER = 1 + 3e-6


def _exact(trials: int, rate: float, counts: range) -> float:
    with mpmath.workdps(50):
        q = mpmath.mpf(rate)
        terms = (
            mpmath.binomial(trials, one) * q**one * (1 - q) ** (trials - one) for one in counts
        )
        return float(mpmath.fsum(terms))


@pytest.mark.parametrize(("count", "trials", "rate"), CASES)
def test_binomial_tails_are_no_less_than_the_truth(count: int, trials: int, rate: float) -> None:
    above = _exact(trials, rate, range(count, trials + 1))
    below = _exact(trials, rate, range(count + 1))
    assert above <= tails.binomial_at_least(count, trials, rate) <= min(above * WIDER, 1)
    fewer = tails.binomial_at_least(trials - count, trials, 1 - rate)
    assert below <= fewer <= min(below * WIDER, 1)


@pytest.mark.parametrize(("trials", "rate"), [(20, 0.1), (1000, 0.001), (40, 0.25), (7, 1.0)])
def test_the_largest_probability_is_no_less_than_the_truth(trials: int, rate: float) -> None:
    most = max(_exact(trials, rate, range(one, one + 1)) for one in range(trials + 1))
    assert most <= tails.binomial_largest(trials, rate) <= min(most * WIDER, 1)


@pytest.mark.parametrize(
    ("total", "number"), [(1.0, 2), (50.0, 100), (1600.0, 2000), (9500.0, 10_000)]
)
def test_chi_square_tails_are_no_less_than_the_truth(total: float, number: int) -> None:
    with mpmath.workdps(50):
        half = mpmath.mpf(number) / 2
        truth = float(mpmath.gammainc(half, 0, mpmath.mpf(total) / 2, regularized=True))
    assert truth <= tails.squares_at_most(total, number) <= truth * WIDER


@pytest.mark.parametrize(("correlation", "number"), [(0.5, 10), (-0.1, 2000), (0.0, 5), (0.3, 2)])
def test_correlations_are_no_less_likely_than_in_truth(correlation: float, number: int) -> None:
    with mpmath.workdps(50):
        half = (mpmath.mpf(number) - 1) / 2
        at = (1 - abs(mpmath.mpf(correlation))) / 2
        truth = float(2 * mpmath.betainc(half, half, 0, at, regularized=True))
    assert truth * (1 - 1e-15) <= tails.correlation_beyond(correlation, number)
    assert tails.correlation_beyond(correlation, number) <= min(truth * WIDER, 1)


def test_hypergeometric_sums_are_bounded() -> None:
    """The chance of 10 and of 0 in common of 10 of 40, three times over, is below the bound."""
    one = np.array([comb(10, k) * comb(30, 10 - k) / comb(40, 10) for k in range(11)])
    law = np.convolve(np.convolve(one, one), one)
    for count in (0, 2, 16, 30):
        tail = law[: count + 1].sum() if count < 7.5 else law[count:].sum()
        assert tail <= tails.hypergeometric_sum(count, 30, 0.25)
    assert tails.hypergeometric_sum(0, 30, 0.25) < 4e-4


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (tails.binomial_at_least(0, 5, 0.5), 1.0),
        (tails.binomial_at_least(5, 5, 1.0), 1.0),
        (tails.distance_beyond(0.0, 10), 1.0),
        (tails.correlation_beyond(0.0, 10), 1.0),
        (tails.binomial_largest(3, 0.0), 1.0),
    ],
)
def test_nothing_is_more_likely_than_certain(found: float, expected: float) -> None:
    assert found == expected
