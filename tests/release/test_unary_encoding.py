"""Reports by unary encoding: their distribution, and the error of what is estimated."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import unary_error, unary_frequencies, unary_reports

KINDS = ["symmetric", "optimized"]


@pytest.mark.parametrize(
    ("kind", "share", "error"),
    [
        ("optimized", 0.0, 3.68269437683116927578e-3),
        ("optimized", 0.3, 3.98269437683116927578e-3),
        ("symmetric", 0.0, 3.91769808903276376e-3),
        ("symmetric", 0.6, 3.91769808903276376e-3),
    ],
)
def test_the_error_has_its_check_values(kind: str, share: float, error: float) -> None:
    found = unary_error(hs.mechanisms.UnaryEncoding(1.0, kind), 1000, share)
    assert found == pytest.approx(error, rel=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("local", [0.001, 0.7, 6.0])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_error_is_that_of_its_two_probabilities(kind: str, local: float, share: float) -> None:
    with mp.workdps(40):
        root = mp.exp(mp.mpf(local) / 2)
        p = root / (1 + root) if kind == "symmetric" else mp.mpf(1) / 2
        q = 1 / (1 + root) if kind == "symmetric" else 1 / (1 + root**2)
        truth = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (40 * (p - q) ** 2)
        found = unary_error(hs.mechanisms.UnaryEncoding(local, kind), 40, share)
        assert found == pytest.approx(float(truth), rel=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_bits_and_estimates_follow_the_mechanism_at_the_level_of_one_in_a_million(
    kind: str,
) -> None:
    mechanism, rng = hs.mechanisms.UnaryEncoding(1.5, kind), np.random.default_rng(23)
    users, rounds = 1000, 400
    data = np.repeat(np.arange(3), [700, 300, 0])
    found = np.array(
        [
            unary_frequencies(mechanism, unary_reports(mechanism, data, 3, rng))
            for _ in range(rounds)
        ]
    )
    for k, share in enumerate((0.7, 0.3, 0.0)):
        error = unary_error(mechanism, users, share)
        assert abs(found[:, k].mean() - share) < 5.0 * math.sqrt(error / rounds)
        statistic = float(np.square(found[:, k] - share).sum()) / error
        assert chi2.ppf(1e-6, rounds) < statistic < chi2.ppf(1 - 1e-6, rounds)


def test_edges_have_their_answers() -> None:
    rng, data = np.random.default_rng(3), np.array([0, 2])
    bits = unary_reports(hs.mechanisms.UnaryEncoding(math.inf), data, 3, rng)
    assert bits.tolist() == [[True, False, False], [False, False, True]]
    assert unary_frequencies(hs.mechanisms.UnaryEncoding(math.inf), bits).tolist() == [
        0.5,
        0.0,
        0.5,
    ]
    assert unary_error(hs.mechanisms.UnaryEncoding(math.inf), 10, 0.3) == 0.0
    assert unary_error(
        hs.mechanisms.UnaryEncoding(math.inf, "optimized"), 10, 0.3
    ) == pytest.approx(0.03)
    for least in (0.0, 1e-200):
        assert unary_error(hs.mechanisms.UnaryEncoding(least), 10, 0.3) == math.inf
    with pytest.raises(hs.errors.ParameterError, match="epsilon must be a number > 0"):
        unary_frequencies(hs.mechanisms.UnaryEncoding(0.0), bits)


@pytest.mark.parametrize("bad", [[3], [-1], [0.5], "ab"])
def test_what_is_no_category_is_refused(bad: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="values must be a row of integers"):
        unary_reports(hs.mechanisms.UnaryEncoding(1.0), bad, 3, np.random.default_rng(1))


@pytest.mark.parametrize("bad", [[True], [[0, 1]], [[0.5]], np.zeros((0, 3), dtype=bool)])
def test_what_are_no_bits_is_refused(bad: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="reports must be an array of bits"):
        unary_frequencies(hs.mechanisms.UnaryEncoding(1.0), bad)


def test_numbers_outside_their_domains_are_refused() -> None:
    for users, share in ((0, 0.5), (10, -0.1), (10, math.nan)):
        with pytest.raises(hs.errors.ParameterError):
            unary_error(hs.mechanisms.UnaryEncoding(1.0), users, share)
    with pytest.raises(hs.errors.ParameterError, match="categories"):
        unary_reports(hs.mechanisms.UnaryEncoding(1.0), np.array([0]), 0, np.random.default_rng(1))
